import Foundation
import TestSupport
import Testing

/// A backup and the verification of one, which the writer does in pieces while others change what is stored.
@Suite(.enabled(if: isRoot, "it takes an admin")) struct BackupPieceTests {
  /// So many that the other client has its turn again and again, on a busy machine, too.
  private static let items = 3_000
  private static let secret = Data(repeating: 7, count: 3_900).base64EncodedString()

  private static let configuration = "[Limits]\nItemsPerApp=4000\nItemBytesPerApp=64M\n"

  private func started() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released).start(configuration: Self.configuration)
    let client = try daemon.client()
    for number in 0..<Self.items {
      let answer = try client.ask("item put service=s account=a\(10_000 + number) data=\(Self.secret)")
      try #require(answer == ["OK created"])
    }
    return daemon
  }

  /// Sends a request whose answer takes long, and other requests until the first line of the answer is there.
  ///
  /// - Parameter next: the next request of the other client, and the start of its answer.
  /// - Returns: the answer, and the number of other requests that were answered before it.
  private func answer(
    to request: String, of client: Client, beside other: Client, _ next: (Int) -> (request: String, answer: String)
  ) throws -> (answer: [String], others: Int) {
    try client.send(request + "\n")
    var others = 0
    while !client.hasInput {
      let (request, answer) = next(others)
      #expect(try other.ask(request).last?.hasPrefix(answer) == true, "\(request)")
      others += 1
    }
    return (try client.answer(), others)
  }

  @Test func `changes come between the pieces of a backup, which shows one state`() throws {
    let daemon = try started()
    let other = try daemon.client()
    let client = try daemon.client()
    let (answer, changes) = try answer(to: "backup key=\(backupKey)", of: client, beside: other) { number in
      // In the opposite order of the backup, so that each change is ahead of it.
      let item = "service=s account=a\(10_000 + Self.items - 1 - number)"
      return switch number {
      case 3: ("key rotate", "OK file")
      case _ where number % 2 == 0: ("item put \(item) data=bmV3", "OK replaced")
      default: ("item delete \(item)", "OK 1")
      }
    }
    // A backup in one piece lets one or two changes through.
    #expect(changes > 8, "\(changes)")
    let target = try DaemonUnderTest().start(configuration: Self.configuration)
    let restored = try target.restore(try Client.backup(in: answer))
    #expect(restored.last?.hasPrefix("OK") == true, "\(restored.suffix(1))")
    let reader = try target.client()
    let states = try (0..<changes).filter { $0 != 3 }.map { number in
      try reader.ask("item read service=s account=a\(10_000 + Self.items - 1 - number)")[0].hasPrefix(
        "OK data=\(Self.secret) ")
    }
    // The first changes came before the backup, and no later one is in it.
    #expect(states.firstIndex(of: true).map { first in states[first...].allSatisfy(\.self) } == true, "\(states)")
  }

  @Test func `changes come between the pieces of a backup's verification`() throws {
    let daemon = try started()
    let bytes = try daemon.backup()
    let client = try daemon.client()
    for request in Client.upload(bytes) { try #require(try client.ask(request).last?.hasPrefix("OK") == true) }
    let other = try daemon.client()
    let (answer, changes) = try answer(to: "restore end dry-run=yes", of: client, beside: other) { number in
      ("token put fcm t\(number)", "OK")
    }
    #expect(answer.last?.hasPrefix("OK") == true)
    #expect(changes > 4, "\(changes)")
  }
}
