import IdentityCore
import IdentityWire
import Systemd

extension Server {
  /// Takes in what the writer has done: first the state, then the answers.
  func takeReports() {
    var touched: [Connection] = []
    for report in outbox.takeAll() {
      take(report)
      for outcome in report.outcomes {
        // The client may have gone; its changes are made all the same.
        guard let connection = connections[outcome.connection] else { continue }
        connection.inFlight -= 1
        switch outcome.result {
        case .success(let reply): reply.append(to: &connection.output)
        case .failure(let refusal): refusal.append(to: &connection.output)
        }
        if touched.last !== connection { touched.append(connection) }
      }
      if report.hasStopped { return loop.exit(status: 0) }
    }
    // A connection may be in the list more than once; going on with it again does no harm.
    for connection in touched where connections[connection.token] === connection { advance(connection) }
  }

  private func take(_ report: WriterReport) {
    if let heartbeat = report.heartbeat { watchdog?.take(heartbeat) }
    if let replacement = report.registry { registry = replacement }
    for change in report.changes {
      registry.apply(change)
      announce(change)
    }
    for notice in report.notices {
      switch notice {
      case .store(let notice): say(.store(notice))
      case .noMachineIdentifier(let reason): say(.noMachineIdentifier(reason))
      case .closing(let reason): say(.storeNotClosed(reason))
      }
    }
    if let new = report.condition { condition = new }
    if report.condition != nil || !report.changes.isEmpty { publishStatus() }
  }

  private func announce(_ change: Change) {
    switch change {
    case .deviceCreated(let identifier): say(.deviceCreated(identifier.value, identifier.origin))
    case .appInstalled(let app, _): say(.appInstalled(app))
    case .installationCreated: break
    }
  }
}
