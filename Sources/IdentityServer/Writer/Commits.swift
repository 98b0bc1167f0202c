import IdentityStore
import LinuxSystem

/// The writer's commits, which are applied to every part of the loop before the answers after them are sent.
final class Commits {
  private let state: CommittedState
  private let known: KnownAnswers
  private let uuids: FreshUUIDs
  private let lifetimes: CurrentLifetimes
  private let admission: Admission
  private let measurements: Measurements
  private let lifeCycle: LifeCycle
  private let publisher: Publisher

  init(
    _ state: CommittedState, _ known: KnownAnswers, _ uuids: FreshUUIDs, _ lifetimes: CurrentLifetimes,
    _ admission: Admission, _ measurements: Measurements, lifeCycle: LifeCycle, publisher: Publisher
  ) {
    self.state = state
    self.known = known
    self.uuids = uuids
    self.lifetimes = lifetimes
    self.admission = admission
    self.measurements = measurements
    self.lifeCycle = lifeCycle
    self.publisher = publisher
  }

  /// Applies a report, whose changes are durable.
  func apply(_ report: WriterReport) {
    known.forgetAll()
    state.apply(report)
    if let resumption = report.resumption {
      uuids.forgetReserve()
      lifetimes.value.resumption = resumption
    }
    if let survey = report.survey { admission.use(survey.claims) }
    if let subordinates = report.subordinates { admission.use(subordinates) }
    measurements.record(report)
    lifeCycle.note(report)
    if !report.results.events.isEmpty { publisher.startRound() }
  }
}
