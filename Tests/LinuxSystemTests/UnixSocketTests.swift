import Foundation
import LinuxSystem
import TestSupport
import Testing

// The umask of the whole process sets the mode of a socket. Every mode here grants the owner everything, so that files
// of concurrent tests keep their owner's permissions.
@Suite(.serialized) struct UnixSocketTests {
  private let temporary: TemporaryFolder
  private var path: String { temporary["socket"] }
  init() throws { temporary = try TemporaryFolder() }

  private func listen(backlog: Int32 = 5) throws -> Descriptor {
    try UnixSocket.listen(at: path, mode: 0o700, backlog: backlog)
  }

  private func refusal(at path: String? = nil) throws -> UnixSocket.ListenFailure {
    try failure {
      _ = try UnixSocket.listen(at: path ?? self.path, mode: 0o700, backlog: 5).number
    }
  }

  /// Accepts the waiting connection.
  private func accept(on listener: borrowing Descriptor) throws -> Descriptor {
    guard let accepted = try UnixSocket.accept(on: listener) else { throw Failure("nobody waits") }
    return accepted
  }

  @Test func `a client that connects is accepted, and both sides can talk`() throws {
    let listener = try listen()
    let client = try UnixSocket.connect(to: path)
    let server = try accept(on: listener)
    var bytes = [UInt8](repeating: 0, count: 8)
    #expect(try server.receive(into: &bytes) == nil, "nothing came yet, and an accepted socket never blocks")
    #expect(try server.read(into: &bytes) == nil)
    try client.sendAll([1, 2, 3])
    #expect(try server.receive(into: &bytes) == 3)
    let another = try UnixSocket.accept(on: listener)
    #expect(another == nil ? true : false)
    for number in [listener.number, client.number, server.number] { #expect(fcntl(number, F_GETFD) == FD_CLOEXEC) }
  }

  @Test(arguments: [0o700, 0o750, 0o770, 0o777]) func `row 39: a socket has the requested mode`(mode: Int) throws {
    let before = umask(0o022)
    umask(before)
    let listener = try UnixSocket.listen(at: path, mode: UInt32(mode), backlog: 5)
    #expect(try temporary.mode("socket") == mode)
    let after = umask(before)
    #expect(after == before, "the umask is what it was")
    withExtendedLifetime(listener.number) {}
  }

  @Test func `a socket without a listener is replaced`() throws {
    // The shutdown also stops the listener in a process that inherited it for a moment.
    do {
      let gone = try listen()
      try system("shutdown") { shutdown(gone.number, Int32(SHUT_RDWR)) }
    }
    try #require(temporary.kind("socket") == .typeSocket)
    let listener = try listen()
    let client = try UnixSocket.connect(to: path)
    drop(try accept(on: listener))
    withExtendedLifetime(client.number) {}
  }

  @Test func `a socket that answers is never taken over`() throws {
    let listener = try listen()
    let before = UnixSocket.identity(of: path)
    guard case .inUse(path) = try refusal() else {
      Issue.record("taken")
      return
    }
    #expect(UnixSocket.identity(of: path) == before)
    // The probe of the second listener waits here, already closed.
    drop(try accept(on: listener))
    let client = try UnixSocket.connect(to: path)
    drop(try accept(on: listener))
    withExtendedLifetime(client.number) {}
  }

  @Test func `row 20b: a socket with a full queue is never taken over`() throws {
    let listener = try listen(backlog: 0)
    let waiting = try UnixSocket.connect(to: path)
    guard case .inUse(path) = try refusal() else {
      Issue.record("taken")
      return
    }
    drop(try accept(on: listener))
    withExtendedLifetime(waiting.number) {}
  }

  @Test(arguments: ["file", "folder", "fifo", "link", "dangling link", "link to a stale socket"])
  func `row 39: a file that is no socket is left alone`(what: String) throws {
    switch what {
    case "file": try temporary.write("socket", "keep me")
    case "folder": try temporary.makeFolder("socket")
    case "fifo": try temporary.makeFIFO("socket")
    case "link":
      try temporary.write("target", "keep me")
      try temporary.link("socket", to: "target")
    case "dangling link": try temporary.link("socket", to: "nowhere")
    default:
      let gone = try UnixSocket.listen(at: temporary["stale"], mode: 0o700, backlog: 5)
      try system("shutdown") { shutdown(gone.number, Int32(SHUT_RDWR)) }
      try temporary.link("socket", to: "stale")
    }
    let before = try #require(UnixSocket.identity(of: path))
    let names = try temporary.names()
    guard case .notASocket(path) = try refusal() else {
      Issue.record("not refused as it should be")
      return
    }
    #expect(UnixSocket.identity(of: path) == before)
    #expect(try temporary.names() == names)
  }

  @Test func `a missing folder is an error with its path`() throws {
    let error = try refusal(at: temporary["nowhere/socket"])
    #expect(error.description == "bind \(temporary["nowhere/socket"]): No such file or directory")
  }

  @Test func `a path of the maximum length is accepted, and a longer one is an error`() throws {
    let room = 107 - temporary.path.utf8.count - 1
    let longest = temporary[String(repeating: "s", count: room)]
    let listener = try UnixSocket.listen(at: longest, mode: 0o700, backlog: 5)
    drop(try UnixSocket.connect(to: longest))
    guard case .system(let error) = try refusal(at: longest + "s") else {
      Issue.record("not an error of the system")
      return
    }
    #expect(error.code == ENAMETOOLONG)
    #expect(throws: SystemError(call: "connect \(longest)s", code: ENAMETOOLONG)) {
      _ = try UnixSocket.connect(to: longest + "s").number
    }
    #expect(try temporary.names() == [String(repeating: "s", count: room)])
    withExtendedLifetime(listener.number) {}
  }

  @Test func `a socket is removed by its maker`() throws {
    let listener = try listen()
    let made = UnixSocket.identity(of: path)
    UnixSocket.remove(path, ifStill: made)
    #expect(temporary.kind("socket") == nil)
    withExtendedLifetime(listener.number) {}
  }

  @Test func `a socket that was replaced by another is not removed`() throws {
    let first = try listen()
    let made = UnixSocket.identity(of: path)
    // Both sockets exist for a moment, so that the second cannot get the inode number of the first.
    let second = try UnixSocket.listen(at: temporary["other"], mode: 0o700, backlog: 5)
    try Folder(path: temporary.path).rename("other", to: "socket")
    UnixSocket.remove(path, ifStill: made)
    UnixSocket.remove(path, ifStill: nil)
    #expect(temporary.kind("socket") == .typeSocket)
    withExtendedLifetime((first.number, second.number)) {}
  }

  @Test func `a listening socket is no connection, and an accepted one is`() throws {
    let listener = try listen()
    let client = try UnixSocket.connect(to: path)
    let server = try accept(on: listener)
    #expect(UnixSocket.isConnectedStream(listener.number) == false)
    #expect(UnixSocket.isConnectedStream(client.number))
    #expect(UnixSocket.isConnectedStream(server.number))
  }

  @Test func `connecting without a listener is an error`() throws {
    #expect(throws: SystemError(call: "connect \(path)", code: ENOENT)) { _ = try UnixSocket.connect(to: path).number }
  }
}
