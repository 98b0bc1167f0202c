import Foundation
import LinuxSystem
import Mosquitto
import TestSupport

/// The owner of a connection.
final class Caller {
  private let connection: BrokerConnection
  private var reports: [BrokerConnection.Report] = []

  init(_ access: BrokerAccess) throws { connection = try BrokerConnection(to: access) }

  /// Connects to a broker on loopback without protection, and waits until the broker has accepted the connection.
  convenience init(at port: UInt16) throws {
    try self.init(BrokerAccess(host: "127.0.0.1", port: port, protection: .none))
    try wait(for: .connected)
  }

  func ask(for filter: String) { connection.subscribe(to: filter) }

  func subscribe(to filter: String) throws {
    ask(for: filter)
    try wait(for: .subscribed(filter))
  }

  func publish(_ payload: String, to topic: String, isRetained: Bool = true) {
    connection.publish(Publication(topic: topic, payload: Array(payload.utf8), isRetained: isRetained))
  }

  /// Returns the next report, and waits for it if necessary.
  func next() throws -> BrokerConnection.Report {
    let deadline = Clock.monotonicMicroseconds + UInt64(patience * 1_000_000)
    while reports.isEmpty {
      guard try TimedWait.wait(for: connection.descriptor, until: deadline) == .readable else {
        throw Failure("no report within \(patience) s")
      }
      reports = connection.takeReports()
    }
    return reports.removeFirst()
  }

  func wait(for expected: BrokerConnection.Report) throws {
    let report = try next()
    guard report == expected else { throw Failure("\(report) instead of \(expected)") }
  }

  /// Returns the number of bytes in the messages that wait.
  func waitingBytes() -> Int {
    reports += connection.takeReports()
    return reports.reduce(0) { sum, report in
      if case .received(let delivery) = report { sum + delivery.payload.count } else { sum }
    }
  }

  /// Returns the next message.
  func message() throws -> Delivery {
    let report = try next()
    guard case .received(let delivery) = report else { throw Failure("\(report) instead of a message") }
    return delivery
  }

  /// Returns the reason for the end of the connection, which has to be the next report.
  func end() throws -> String {
    let report = try next()
    guard case .ended(let reason) = report else { throw Failure("\(report) instead of the end") }
    return reason
  }
}

extension Delivery {
  /// A message in the form `TOPIC PAYLOAD`, with `(retained)` behind it if the broker had kept it.
  var text: String { "\(topic) \(String(decoding: payload, as: UTF8.self))\(isRetained ? " (retained)" : "")" }
}
