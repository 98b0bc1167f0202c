import Foundation
import LinuxSystem
import TestSupport
import Testing

final class SocketOwnersTests {
  private let folder: TemporaryFolder
  private let listener: Descriptor

  init() throws {
    folder = try TemporaryFolder()
    listener = try boundSocket(SOCK_STREAM, to: folder["socket"])
    let number = listener.number
    try system("listen") { listen(number, 5) }
  }

  private func owners(at path: String) throws -> SocketOwners {
    try SocketOwners(of: try UnixSocket.connect(to: folder["socket"]), at: path)
  }

  @Test func `the listener, the socket's owner and its folder are found`() throws {
    let owners = try owners(at: folder["socket"])
    #expect(owners.listener == geteuid())
    #expect(owners.places.map(\.path) == [folder["socket"]])
    #expect(owners.places.map(\.status.kind) == [.socket])
    #expect(owners.places.map(\.status.owner) == [geteuid()])
    #expect(owners.places.map(\.folderPath) == [folder.path])
    #expect(owners.places.map(\.folder.mode) == [0o700])
  }

  @Test func `for a link, both the link and the socket are found`() throws {
    try folder.link("sub/one", to: "two")
    try folder.link("sub/two", to: folder["socket"])
    let owners = try owners(at: folder["sub/one"])
    #expect(owners.places.map(\.status.kind) == [.link, .socket])
    #expect(owners.places.map(\.folderPath) == [folder["sub"], folder.path])
  }

  @Test func `for a socket that was removed, the listener is found`() throws {
    let connection = try UnixSocket.connect(to: folder["socket"])
    try folder.link("link", to: "socket")
    try folder.remove("socket")
    #expect(try SocketOwners(of: connection, at: folder["socket"]).places == [])
    #expect(try SocketOwners(of: connection, at: folder["link"]).places.map(\.status.kind) == [.link])
    #expect(try SocketOwners(of: connection, at: folder["none/socket"]).listener == geteuid())
  }
}
