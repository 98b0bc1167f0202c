import Foundation
import TestSupport
import Testing

/// A transaction with many changes, which the daemon takes in in pieces.
@Suite(.enabled(if: isRoot, "acting as another user needs root")) struct LargeCommitTests {
  /// The number of changes of a connection: less than a connection may have at the writer.
  private static let renewals = 120

  @Test func `a large transaction is answered in pieces while another user is connected`() throws {
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released).start()
    let clients = try (0..<4).map { _ in try daemon.client() }
    let record = daemon.folder.appending(path: "record")
    // The transaction with the first renewals waits for the disk. The others become one transaction, because only one
    // user is connected when they come.
    try Fault.inject("fdatasync:delay_enter=2000000", into: daemon, recording: ("sendto", record)) { () throws in
      for client in clients { try client.send(String(repeating: "renew device\n", count: Self.renewals)) }
      // Answered after the renewals have come in, since the loop takes in all events before it answers a new user.
      let other = try PeerConnection(65_534, of: daemon)
      #expect(try other.ask("ping") == ["OK"])
      for client in clients {
        for _ in 0..<Self.renewals { #expect(try client.answer().last?.hasPrefix("OK ") == true) }
      }
    }
    // A piece has at most eight changes. A transaction that is taken in at once is answered with one call for each
    // connection.
    let answers = try String(contentsOf: record, encoding: .utf8).split(separator: "\n").filter {
      $0.contains("sendto(") && $0.contains("\"OK ")
    }
    #expect(answers.count > 8, "\(answers.count)")
    #expect(daemon.end() == 0)
  }
}
