import Foundation
import TestSupport
import Testing

/// Other files and other daemons at the path of the socket.
@Suite(.tags(.plain)) struct SocketPathTests {
  @Test(arguments: [
    "ln -s $ELSEWHERE $SOCKET", "ln -s nowhere $SOCKET", "mkdir $SOCKET", "mkfifo $SOCKET", "echo precious > $SOCKET",
    "ln $ELSEWHERE $SOCKET",
  ])
  func `row 39: a file at the socket's path that is no socket is not followed, removed or changed`(making: String)
    throws
  {
    let daemon = try DaemonUnderTest()
    let elsewhere = daemon.folder.appending(path: "elsewhere").path
    try Data("precious".utf8).write(to: URL(filePath: elsewhere))
    let environment = ["SOCKET": daemon.socket, "ELSEWHERE": elsewhere]
    #expect(try run(["sh", "-c", "chmod 0600 $ELSEWHERE; \(making)"], environment: environment).status == 0)
    let listing = ["ls", "-ln", "--time-style=full-iso", "-d", daemon.socket, elsewhere]
    let before = try run(listing).output
    try daemon.launch()
    #expect(daemon.exitStatus() == 69)
    #expect(daemon.log.contains("\(daemon.socket) exists and is not a socket"), "\(daemon.log)")
    #expect(try run(listing).output == before)
    #expect(try String(contentsOfFile: elsewhere, encoding: .utf8) == "precious")
  }

  @Test func `row 39: a link to another daemon's socket is not taken for a stale socket`() throws {
    let first = try DaemonUnderTest().start()
    let second = try DaemonUnderTest()
    try FileManager.default.createSymbolicLink(atPath: second.socket, withDestinationPath: first.socket)
    try second.launch()
    #expect(second.exitStatus() == 69)
    #expect(try first.ask("ping") == "OK")
  }

  @Test(.enabled(if: isRoot, "tracing the daemon needs root"))
  func `row 39: the socket has its mode before it listens, and no path is changed afterwards`() throws {
    let daemon = try DaemonUnderTest()
    let trace = daemon.folder.appending(path: "trace")
    try daemon.start(through: ["strace", "-D", "-f", "-o", trace.path, "-e", "trace=%file,bind,fchmod"])
    let lines = try String(contentsOf: trace, encoding: .utf8).split(separator: "\n")
    let bound = try #require(lines.firstIndex { $0.contains("bind(") && $0.contains(daemon.socket) })
    // A later call with the path could reach another file.
    for line in lines[bound...] {
      #expect(!line.contains("chmod") && !(line.contains("chown") && line.contains("socket\"")), "\(line)")
    }
    let mode = try FileManager.default.attributesOfItem(atPath: daemon.socket)[.posixPermissions] as? Int
    #expect(mode == 0o666)
  }

  @Test(arguments: 0..<20)
  func `row 20b: of two daemons started at once on one path, exactly one keeps it`(round: Int) throws {
    let (first, second) = (try DaemonUnderTest(), try DaemonUnderTest())
    // Leaves behind the socket of a killed daemon.
    try first.start().end(with: SIGKILL)
    try first.launch()
    try second.launch(["--socket", first.socket])
    for daemon in [first, second] where daemon.process.isRunning {
      let deadline = Date(timeIntervalSinceNow: patience)
      while daemon.process.isRunning, !daemon.log.contains("Serving on \(first.socket)") || daemon.log.isEmpty,
        Date() < deadline
      {
        usleep(2_000)
      }
    }
    let deadline = Date(timeIntervalSinceNow: patience)
    while first.process.isRunning, second.process.isRunning, Date() < deadline { usleep(2_000) }
    #expect(first.process.isRunning != second.process.isRunning, "\(first.log) \(second.log)")
    let winner = first.process.isRunning ? first : second
    #expect(try first.client().statusValue("pid") == "\(winner.process.processIdentifier)")
  }
}
