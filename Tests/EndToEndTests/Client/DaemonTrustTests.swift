import Foundation
import TestSupport
import Testing

/// The client's trust in a daemon. The client sends nothing to a socket that another user may listen on.
@Suite(.enabled(if: isRoot, "acting as other users needs root"), .tags(.plain)) struct DaemonTrustTests {
  private let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
  private let other = 4_711
  private var setpriv: [String] { ["setpriv", "--reuid=\(other)", "--regid=\(other)", "--clear-groups"] }

  /// Creates a folder in which every user may create a socket.
  private func openFolder() throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    try FileManager.default.setAttributes([.posixPermissions: 0o1777], ofItemAtPath: folder.path)
    return folder
  }

  // MARK: Listener

  @Test(arguments: [
    ["ping"], ["status"], ["item", "put", "service=s", "account=a", "data=c2VjcmV0"], ["monitor"],
    ["wait", "device"], ["stats", "--openmetrics"], ["backup", "-", "--passphrase-fd=3"], ["item", "read", "--raw"],
  ])
  func `nothing is sent to another user's process, however its path was named`(words: [String]) throws {
    let folder = try openFolder()
    let listener = try OtherListener(at: folder["socket"], user: other)
    // The socket file belongs to root. Only the listening process belongs to another user.
    try FileManager.default.setAttributes([.ownerAccountID: 0], ofItemAtPath: folder["socket"])
    for (named, options) in [(folder["socket"], []), ("/nonexistent", ["--socket=\(folder["socket"])"])] {
      let result = try identityctl(at: named, options + words)
      #expect((result.status, result.output) == (3, ""))
      #expect(
        result.errors.hasPrefix(
          "identityctl: nothing was sent to \(folder["socket"]): the process that listens there runs as uid \(other), "),
        "\(result.errors)")
      #expect(
        result.errors.contains("run the command as that user, or name another socket with --socket"), "\(result.errors)"
      )
      #expect(try listener.received() == "")
    }
  }

  @Test func `a daemon that runs as another user is trusted by that user alone`() throws {
    let folder = try openFolder()
    let listener = try OtherListener(at: folder["socket"], user: other)
    #expect(try identityctl(at: folder["socket"], ["ping"], asUser: other).status == 0)
    #expect(try listener.received() == "ping/")
    #expect(try identityctl(at: folder["socket"], ["ping"], asUser: other + 1).status == 3)
    #expect(try listener.received() == "")
  }

  @Test func `a daemon that runs as the user identityd is trusted like one that runs as root`() throws {
    let folder = try openFolder()
    let listener = try OtherListener(at: folder["socket"], user: other)
    let accounts = try String(contentsOfFile: "/etc/passwd", encoding: .utf8).split(separator: "\n")
      .filter { !$0.hasPrefix("identityd:") }.joined(separator: "\n")
    for (account, status) in [("", 3), ("identityd:x:\(other):\(other)::/:/bin/false\n", 0)] as [(String, Int32)] {
      try folder.write("passwd", "\(accounts)\n\(account)")
      let replaced = ["unshare", "--mount", "sh", "-c", "mount --bind \"$0\" /etc/passwd && exec \"$@\""]
      let result = try run(replaced + [folder["passwd"], program, "--socket=\(folder["socket"])", "ping"])
      #expect(result.status == status, "\(result)")
      #expect(try listener.received() == (status == 0 ? "ping/" : ""))
    }
  }

  @Test func `monitor exits if another user has taken the socket of a daemon that is gone`() throws {
    let daemon = try DaemonUnderTest().start()
    try FileManager.default.setAttributes([.posixPermissions: 0o1777], ofItemAtPath: daemon.folder.path)
    let errors = daemon.folder.appending(path: "errors")
    try Data().write(to: errors)
    let monitor = Process()
    monitor.executableURL = URL(filePath: program)
    monitor.arguments = ["--socket=\(daemon.socket)", "monitor"]
    monitor.standardOutput = FileHandle.nullDevice
    monitor.standardError = try FileHandle(forWritingTo: errors)
    try monitor.runUnmasked()
    defer { kill(monitor.processIdentifier, SIGKILL) }
    try daemon.waitForStatus("subscribers", "1")
    #expect(daemon.end() == 0)
    let listener = try OtherListener(at: daemon.socket, user: other)
    #expect(try listener.received() == "")
    let deadline = Date(timeIntervalSinceNow: patience)
    while monitor.isRunning, Date() < deadline { usleep(5_000) }
    #expect(!monitor.isRunning && monitor.terminationStatus == 3)
    #expect(try String(contentsOf: errors, encoding: .utf8).contains("nothing was sent to \(daemon.socket)"))
  }

  // MARK: Socket and folder

  @Test(
    arguments: [
      ("chown 4711 SOCKET", "SOCKET belongs to uid 4711"),
      ("chown 4711 FOLDER", "the directory FOLDER belongs to uid 4711"),
      ("chmod 0777 FOLDER", "the directory FOLDER is world-writable without the sticky bit"),
      ("chmod 1777 FOLDER", nil), ("chmod 0770 FOLDER", nil),
      ("chown 4711 SOCKET; mkdir FOLDER/sub; ln -s SOCKET LINK", "SOCKET belongs to uid 4711"),
      ("mkdir FOLDER/sub; ln -s SOCKET LINK", nil),
      ("mkdir FOLDER/sub; ln -s SOCKET LINK; chown -h 4711 LINK", "LINK belongs to uid 4711"),
      ("mkdir FOLDER/sub; ln -s SOCKET LINK; chmod 0777 FOLDER/sub", "the directory FOLDER/sub is world-writable"),
    ] as [(String, String?)])
  func `root's listener is trusted only if the socket, links and folders are safe too`(making: String, cause: String?)
    throws
  {
    let daemon = try PlayedDaemon { _ in .lines("OK\n") }
    let link = daemon.folder.appending(path: "sub/socket").path
    func filled(_ text: String) -> String {
      text.replacing("SOCKET", with: daemon.socket).replacing("FOLDER", with: daemon.folder.path)
        .replacing("LINK", with: link)
    }
    #expect(try run(["sh", "-ec", filled(making)]).status == 0)
    let path = making.contains("ln -s") ? link : daemon.socket
    let result = try identityctl(at: path, ["ping"])
    #expect(result.status == (cause == nil ? 0 : 3), "\(result)")
    if let cause { #expect(result.errors.contains(filled(cause)), "\(result.errors)") }
    #expect(daemon.requests == (cause == nil ? ["ping"] : []))
  }

  @Test func `a relative socket path is checked against the working directory`() throws {
    let daemon = try PlayedDaemon { _ in .lines("OK\n") }
    let here = ["sh", "-c", "cd \"$0\" && exec \"$@\"", daemon.folder.path, program, "--socket=socket", "ping"]
    #expect(try run(here).status == 0)
    #expect(try run(["chmod", "0777", daemon.folder.path]).status == 0)
    let refused = try run(here)
    #expect(refused.status == 3 && refused.errors.contains("the directory . is world-writable"), "\(refused)")
    #expect(daemon.requests == ["ping"])
  }

  @Test func `check's repair command closes a world-writable socket folder`() throws {
    let daemon = try DaemonUnderTest().start()
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: daemon.folder.path)
    let found = try daemon.diagnosis()
    let socket = try found["socket"]
    #expect(!found.ok && socket.result == "failed")
    #expect(socket.cause?.hasPrefix("nothing was sent to \(daemon.socket): every user can replace the socket") == true)
    #expect(socket.mend == "chmod +t \(daemon.folder.path)")
    #expect(found.findings.count { $0.cause.contains("world-writable") || $0.cause.contains("every user") } == 1)
    #expect(try found["peer"].cause == "the daemon was not reached")
    try daemon.mend(socket)
    #expect(try daemon.diagnosis()["socket"].result == "ok")
  }

  // MARK: Search for the socket

  @Test func `root ignores XDG_RUNTIME_DIR in the search for a daemon, and other users do not`() throws {
    let daemon = try PlayedDaemon { _ in .lines("OK\n") }
    let link = "mkdir \"$0/identityd\" && ln -s ../socket \"$0/identityd/identityd.sock\""
    #expect(try run(["sh", "-c", link, daemon.folder.path]).status == 0)
    // Hides /run, and so the system's daemon.
    let hidden = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /run && exec \"$@\"", "-"]
    let environment = ["XDG_RUNTIME_DIR": daemon.folder.path, "IDENTITYD_SOCKET": ""]
    let root = try run(hidden + [program, "ping"], environment: environment)
    #expect(root.status == 3)
    #expect(root.errors.contains("no identityd at /run/identityd/identityd.sock"), "\(root)")
    #expect(daemon.requests == [])
    #expect(try run(hidden + setpriv + [program, "ping"], environment: environment).status == 0)
    #expect(daemon.requests == ["ping"])
  }

  // MARK: Unmapped user IDs

  @Test(arguments: ["", "mount -t proc -o subset=pid proc /proc && "])
  func `in a user namespace without root, the system's daemon is still trusted`(proc: String) throws {
    let daemon = try DaemonUnderTest().start()
    let inside =
      ["unshare", "--mount", "--pid", "--fork", "sh", "-c", "\(proc)exec \"$@\"", "-"] + setpriv
      + ["unshare", "--user", "--map-root-user", program, "--socket=\(daemon.socket)"]
    let result = try run(inside + ["hello"])
    #expect(result.status == 0 && result.output.hasPrefix("identityd "), "\(result)")
  }

  @Test func `uid 65534 is not trusted if the user namespace maps every user`() throws {
    let folder = try openFolder()
    let listener = try OtherListener(at: folder["socket"], user: 65_534)
    let result = try identityctl(at: folder["socket"], ["ping"])
    #expect(result.status == 3 && result.errors.contains("uid 65534"), "\(result)")
    #expect(try listener.received() == "")
  }
}
