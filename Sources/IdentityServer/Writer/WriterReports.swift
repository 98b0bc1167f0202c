import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

extension Server {
  /// Takes in the writer's reports: first the changes of the state, then the answers.
  func takeReports() {
    var touched: [Connection] = []
    let reports = outbox.takeAll(waits: false)
    let now = Clock.monotonicMicroseconds
    for report in reports {
      take(report)
      for outcome in report.outcomes {
        connections.finishChange(of: outcome.principal)
        measurements.take(outcome, at: now)
        // The client may have gone. Its changes are made all the same.
        guard let connection = connections[outcome.connection] else { continue }
        connection.session.finishJob()
        switch outcome.result {
        case .success(let answer): append(answer, to: connection)
        case .failure(let refusal): refusal.append(to: &connection.output)
        }
        if touched.last !== connection { touched.append(connection) }
      }
      if report.hasStopped {
        handOver()
        return loop.exit(status: 0)
      }
    }
    // A connection may be in the list more than once, which is harmless.
    for connection in touched where connections[connection.token] === connection {
      // If several principals are connected, sending the answers is part of the principal's turn.
      if connections.isShared { waitForTurn(connection) } else { advance(connection) }
    }
  }

  /// Applies a report, whose changes are durable.
  func take(_ report: WriterReport) {
    known.forgetAll()
    if let heartbeat = report.heartbeat { watchdog?.take(heartbeat) }
    if let replacement = report.registry {
      let fault = registry.itemFault
      registry = replacement
      if registry.itemFault != fault { sayItemFault() }
    }
    if let reopened = report.reopened {
      itemReader = reopened.reader
      keySource = reopened.keySource
    }
    if let source = report.keySource { keySource = source }
    for recorded in report.changes {
      registry.apply(recorded)
      if let event = recorded.event {
        events.append(event)
        measurements.events += 1
      }
      announce(recorded.change)
    }
    for notice in report.notices {
      switch notice {
      case .store(let notice): say(.store(notice))
      case .noMachineIdentifier(let reason): say(.noMachineIdentifier(reason))
      case .systemUnknown(let reason): say(.systemUnknown(reason))
      case .secretFault(let item, let refusal): sayFault(of: item, refusal)
      case .keyRotated(let source): say(.keyRotated(source))
      case .unusedForgotten(let count, let days): say(.unusedForgotten(count, days: days))
      case .closing(let reason): say(.storeNotClosed(reason))
      }
    }
    if let settled = report.isSettled { isSettled = settled }
    if let subordinates = report.subordinates {
      attestation.subordinates = subordinates
      registry.use(subordinates)
    }
    if let survey = report.survey { take(survey) }
    measurements.take(report)
    if let new = report.condition { condition = new }
    if report.condition != nil || report.changes.contains(where: \.change.isShown) { publishStatus() }
    if report.changes.contains(where: { $0.event != nil }) { publish() }
  }

  private func take(_ survey: WriterReport.Survey) {
    attestation.claims = survey.claims
    for fault in survey.faults where !manifestFaults.contains(fault) { say(.manifestFault(fault)) }
    if survey.faults.isEmpty, !manifestFaults.isEmpty { say(.manifestsInOrder) }
    manifestFaults = survey.faults
    appFolders?.take(isInOrder: survey.faults.isEmpty)
  }

  private func announce(_ change: Change) {
    switch change {
    case .identifierMade(let identifier) where identifier.scope == .device:
      say(.deviceMade(identifier.value, identifier.origin, identifier.cause))
    case .identifierMade(let identifier) where identifier.cause != .firstUse:
      say(.identifierChanged(identifier.scope, identifier.cause))
    case .machineRecorded(let record):
      if let suspicion = record.suspicion { say(.deviceSuspected(suspicion.cause)) }
    case .appInstalled(let app, _): say(.appInstalled(app))
    case .appUninstalled(let app): say(.appUninstalled(app))
    case .sealed: say(.sealed)
    case .version(.reported(.system, let report)) where report.state != .unchanged: say(.systemChanged(report))
    case .identifierMade, .identifierRemembered, .identifierEnded, .identifierForgotten, .appUpdated, .appUsed,
      .appUseForgotten, .dayBegan, .deviceSuspected, .accountSet,
      .deviceListed, .deviceDescribed, .deviceReplaced, .deviceUnlisted, .itemStored, .itemDeleted, .version,
      .tokenStored, .tokenDeleted:
      break
    case .epochBegan(let epoch): events.begin(epoch)
    }
  }
}

extension Change {
  /// Whether the change may alter the status that the service manager shows; see ``PublishedStatus``.
  fileprivate var isShown: Bool {
    switch self {
    case .tokenStored, .tokenDeleted, .itemStored, .itemDeleted, .version, .appUsed, .appUseForgotten, .dayBegan,
      .identifierForgotten:
      false
    default: true
    }
  }
}
