import ConfigurationFiles
import FleetWire
import IdentityCore
import IdentityWire

@testable import FleetService

/// Request lines of admins to the service of the fleet. Each must parse to a request, or be refused in one line that
/// repeats no secret.
final class FleetControlTarget: FuzzTarget {
  init() throws {}

  func run(_ input: [UInt8]) throws {
    for line in input.split(separator: UInt8(ascii: "\n")) where line.count < ControlSocket.longestLine {
      try take(Array(line))
    }
  }

  private func take(_ line: [UInt8]) throws {
    let refusal: Refusal
    do throws(Refusal) {
      _ = try ControlLine(parsing: line)
      return
    } catch {
      refusal = error
    }
    try WireCheck.refusal(refusal, to: line)
    var parser = WordParser()
    guard (try? parser.parse(line.span)) != nil else { return }
    for word in parser.words where word.isAttribute {
      let value = "\(parser.text(word, in: line.span))"
      // A short value may occur in a text by chance, and the text may quote another word that contains the value.
      guard ["data", "meeting"].contains(parser.name(word, in: line.span)), value.utf8.count >= 16,
        parser.words.count(where: { "\(parser.text($0, in: line.span))".contains(value) }) == 1
      else { continue }
      try require(!refusal.text.contains(value), "\(refusal.text) repeats a secret")
    }
  }
}

/// The content of `identity-fleet.conf`. The settings must be within their bounds, and no password may go to another
/// machine in plain text unless the file allows this.
final class FleetConfigurationTarget: FuzzTarget {
  private let scratch: Scratch
  private let account = AccountID(high: 0xa5 << 56, low: 1)

  init() throws { scratch = try Scratch() }

  func run(_ input: [UInt8]) throws {
    try scratch.restore(["identity-fleet.conf": input])
    let configuration: FleetConfiguration
    do throws(ConfigurationFailure) {
      configuration = try FleetConfiguration.load(file: scratch.state + "/identity-fleet.conf", folders: [])
        .configuration
    } catch {
      return try require(!error.reason.isEmpty, "a file is refused without a reason")
    }
    try require(configuration.brokers.count <= FleetConfiguration.mostBrokers, "there are too many brokers")
    try require(configuration.senders.count <= FleetConfiguration.mostSenders, "there are too many senders")
    for broker in configuration.brokers {
      try require(BrokerPattern(broker.description) == broker, "\(broker) is read as another broker")
      try require(
        broker.isEncrypted || configuration.allowsPlaintext || broker.isLoopback, "\(broker) is not encrypted")
      let address = broker.address(for: account)
      try require(!address.host.isEmpty && address.port > 0, "\(broker) has no address")
      try require(broker.dependsOnAccount || address == broker.address(for: nil), "\(broker) depends on the account")
    }
  }
}
