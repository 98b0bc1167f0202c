import Foundation
import IdentityCore
import IdentityWire
import TestSupport

/// Accepts secrets without encrypting them.
private struct OpenIntake: SecretIntake {
  func encrypt(_ fill: (inout MutableSpan<UInt8>) -> Int) throws(SecretFault) -> SealedSecret {
    var memory = [UInt8](repeating: 0, count: 1_024)
    var span = memory.mutableSpan
    let length = fill(&span)
    guard let secret = Data(base64Encoded: Data(memory[..<length])) else { throw .notBase64 }
    return SealedSecret(bytes: Array(secret), length: secret.count)
  }
}

// Requests and answers as lines, as a client sees them.
extension Life {
  private static let table = VerbTable()

  /// Executes a request line.
  ///
  /// - Returns: the lines of the answer, as they would be sent.
  mutating func answer(_ line: String, as peer: Peer) -> [String] {
    now += 1
    var output: [UInt8] = []
    do throws(Refusal) {
      try reply(to: Self.parse(line, by: peer), as: peer, &output)
    } catch {
      error.append(to: &output)
    }
    return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// Parses a request line of an admin. Nil if the line is refused.
  static func command(_ line: String) -> Command? { try? parse(line, by: root) }

  private static func parse(_ line: String, by peer: Peer) throws(Refusal) -> Command {
    let bytes = Array(line.utf8)
    var parser = WordParser()
    do { try parser.parse(bytes.span) } catch { throw .syntax(error) }
    return try table.command(parser, in: bytes.span, by: peer, secrets: OpenIntake())
  }

  private mutating func reply(to command: Command, as peer: Peer, _ output: inout [UInt8]) throws(Refusal) {
    switch command {
    case .registry(let command):
      let decision = try registry.decide(command, context(peer))
      _ = try decision.reply.allParts()
      take(decision.changes)
      try decision.reply.append(to: &output) { (item, data) throws(Refusal) in
        data += Data(secrets[item.edition]?.bytes ?? []).base64EncodedString().utf8
      }
    case .local(.check(let text)): Reply.check(text).append(to: &output)
    default: throw .unavailable("this takes a whole daemon")
    }
  }

  /// Returns the line of an event, as it would be sent.
  static func line(_ event: Event) -> String {
    var output: [UInt8] = []
    event.append(to: &output)
    return String(decoding: output.dropLast(), as: UTF8.self)
  }

  /// Restores the registry from its committed data, as a restart after a kill does.
  mutating func restart() {
    var read = Registry()
    read.restore(registry.apps.map { InstalledApp(key: $0.key, app: $0.value) })
    read.restore(registry.history.numbered)
    for device in registry.devices { read.apply(.deviceListed(device)) }
    if let account = registry.account { read.apply(.accountSet(account)) }
    if let machine = registry.machine { read.apply(.machineRecorded(machine)) }
    for former in registry.formerMachines { read.apply(.machineLeft(former)) }
    for left in registry.leftDevices { read.apply(.deviceLeft(left)) }
    for key in registry.proofKeys { read.apply(.proofKeyStored(key)) }
    if let fleet = registry.fleet { read.apply(.fleetAdvanced(fleet)) }
    for record in registry.records.all { read.apply(.fleetRecorded(record)) }
    if let backup = registry.lastBackup { read.apply(.backupTaken(backup)) }
    if registry.isSealed { read.apply(.sealed) }
    read.restore(registry.items.all.map(HeldItem.init))
    for token in registry.tokens.all { read.apply(.tokenStored(token, .confirmed)) }
    for history in registry.versions.all {
      for release in history.releases { read.apply(.version(.installed(history.subject, release))) }
      for report in history.reports { read.apply(.version(.reported(history.subject, report))) }
      for claim in history.claims { read.apply(.version(.claimed(history.subject, claim))) }
    }
    read.resume(after: registry.lastEvent)
    registry = read
  }
}
