import Foundation
import TestSupport
import Testing

/// A transaction with many changes, which the daemon takes in in pieces.
@Suite(.enabled(if: isRoot, "acting as another user needs root")) struct LargeCommitTests {
  /// The number of changes of a connection: less than a connection may have at the writer.
  private static let renewals = 100

  /// Another user, who asks without a pause, so that requests wait whenever the daemon looks.
  private struct Reader: ~Copyable {
    private let process = Process()
    private let output: URL

    init(of daemon: DaemonUnderTest) throws {
      let script = """
        import socket, sys, threading
        s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
        def ask():
            while True: s.sendall(b"get device\\n" * 1000)
        threading.Thread(target=ask, daemon=True).start()
        last, rest = b"", b""
        while data := s.recv(1 << 20):
            *lines, rest = (rest + data).split(b"\\n")
            for line in dict.fromkeys(lines):
                if line != last:
                    last = line
                    sys.stdout.buffer.write(line + b"\\n")
                    sys.stdout.buffer.flush()
        """
      output = daemon.folder.appending(path: "read")
      try Data().write(to: output)
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = [
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script, daemon.socket,
      ]
      process.standardInput = FileHandle.nullDevice
      process.standardOutput = try FileHandle(forWritingTo: output)
      try process.runUnmasked()
    }

    /// The answers that differ from the one before.
    func answers() throws -> [String] {
      try String(contentsOf: output, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    deinit {
      process.terminate()
      process.waitUntilExit()
    }
  }

  @Test func `the requests of another user are served between the changes of a large transaction`() throws {
    let daemon = try DaemonUnderTest(of: DaemonUnderTest.released).start()
    let client = try daemon.client()
    let first = try client.ask("get device")
    // The transaction with the first renewals waits for the disk. The others become one transaction, because only one
    // user is connected when they come.
    var seen: [String] = []
    try Fault.inject("fdatasync:delay_enter=2000000", into: daemon) { () throws in
      let clients = try (0..<4).map { _ in try daemon.client() }
      for client in clients { try client.send(String(repeating: "renew device\n", count: Self.renewals)) }
      let reader = try Reader(of: daemon)
      try wait("the first answer to the other user", until: { try reader.answers() == first })
      for client in clients {
        for _ in 0..<Self.renewals { #expect(try client.answer().last?.hasPrefix("OK ") == true) }
      }
      let last = try client.ask("get device").last
      try wait("the last answer to the other user", until: { try reader.answers().last == last })
      seen = try reader.answers()
    }
    // A transaction that is taken in at once shows only its end: three answers altogether.
    #expect(seen.count > 5 && Set(seen).count == seen.count, "\(seen.count)")
    #expect(daemon.end() == 0)
  }
}
