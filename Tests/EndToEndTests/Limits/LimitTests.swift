import Foundation
import TestSupport
import Testing

@Suite(.enabled(if: isRoot, "acting as another user needs root")) struct LimitTests {
  /// Opens connections as a user other than root, and keeps them open while the body runs.
  ///
  /// - Returns: the first line that each connection received.
  private func connections(_ count: Int, _ daemon: DaemonUnderTest, whileOpen body: () throws -> Void = {}) throws
    -> [String]
  {
    let script = """
      import socket, sys
      held = []
      for _ in range(\(count)):
          s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(20)
          try: s.sendall(b"ping\\n")
          except OSError: pass
          held.append(s); print(s.recv(100).decode().split("\\n")[0], flush=True)
      sys.stdin.read()
      """
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script, daemon.socket,
    ]
    let input = Pipe()
    let output = Pipe()
    process.standardInput = input
    process.standardOutput = output
    try process.runUnmasked()
    var text = ""
    while text.split(separator: "\n").count < count {
      let data = output.fileHandleForReading.availableData
      if data.isEmpty { break }
      text += String(decoding: data, as: UTF8.self)
    }
    try body()
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    return text.split(separator: "\n").map(String.init)
  }

  @Test func `row 27: a user's connections are limited, the refusal says so, and root still gets in`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nConnectionsPerUser=3\n")
    let answers = try connections(6, daemon) { () throws in
      #expect(try daemon.ask("ping") == "OK")
      try daemon.waitForStatus("connections", "4")
    }
    #expect(answers.prefix(3) == ["OK", "OK", "OK"])
    #expect(answers.dropFirst(3).allSatisfy { $0.hasPrefix("ERR busy ") }, "\(answers)")
    #expect(answers.count == 6)
    // Closed connections make room for new ones.
    try daemon.waitForStatus("connections", "1")
    #expect(try connections(3, daemon) == ["OK", "OK", "OK"])
  }

  @Test func `row 27: all connections are limited, and the last ones are reserved for root`() throws {
    let daemon = try DaemonUnderTest().start(configuration: "[Limits]\nConnections=32\nReservedConnections=8\n")
    // 24 connections are not root's, and 22 of these are not in reserve. A sole user gets half of the 22. Other users
    // get their first connections, up to all 24.
    let answers = try connections(40, daemon) { () throws in
      let others = try (0..<13).map { try PeerConnection(70_000 + $0, of: daemon) }
      for other in others { #expect(try other.ask("ping") == ["OK"]) }
      let last = try PeerConnection(70_013, of: daemon)
      #expect(try last.line() == "ERR busy there are 24 connections, which is the limit; try again later")
      #expect(try daemon.ask("ping") == "OK")
    }
    #expect(answers.filter { $0 == "OK" }.count == 11)
    #expect(answers.filter { $0.hasPrefix("ERR busy ") }.count == 29)
  }

  @Test func `row 26: without free descriptors existing clients are served, and new ones get in later`() throws {
    let daemon = try DaemonUnderTest().start(through: ["prlimit", "--nofile=40:40"])
    let client = try daemon.client()
    do {
      var held: [Client] = []
      for _ in 0..<60 { held.append(try daemon.client()) }
      try daemon.waitForLog("A connection was refused: the daemon is out of descriptors")
      for _ in 0..<100 { #expect(try client.ask("ping") == ["OK"]) }
    }
    #expect(try daemon.ask("ping") == "OK")
  }
}
