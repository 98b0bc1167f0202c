/// The parts of the loop that use the settings of a reloaded configuration.
final class ReloadedSettings {
  private let admission: Admission
  private let connections: ConnectionTable
  private let writer: WriterChannel
  private let lifetimes: CurrentLifetimes
  private let status: StatusAnswers
  private let uses: AppUses
  private let failures: CredentialFailures
  private let turns: LoopTurns

  init(
    _ admission: Admission, _ connections: ConnectionTable, _ writer: WriterChannel, _ lifetimes: CurrentLifetimes,
    _ status: StatusAnswers, _ uses: AppUses, failures: CredentialFailures, turns: LoopTurns
  ) {
    self.admission = admission
    self.connections = connections
    self.writer = writer
    self.lifetimes = lifetimes
    self.status = status
    self.uses = uses
    self.failures = failures
    self.turns = turns
  }

  /// Applies the settings of a reloaded configuration. After a refusal, only `status` changes.
  func apply(_ reloaded: Result<ServerSettings, ConfigurationRefusal>) {
    let settings: ServerSettings
    switch reloaded {
    case .success(let new): settings = new
    case .failure(let refusal): return status.note(refusal)
    }
    turns.pollMicroseconds = settings.pollMicroseconds
    admission.use(settings)
    connections.use(settings.limits)
    writer.send(.limits(settings.limits))
    lifetimes.value.proofs = settings.proofs
    writer.send(.proofs(settings.proofs))
    status.use(settings)
    uses.use(settings)
    failures.use(settings)
  }
}
