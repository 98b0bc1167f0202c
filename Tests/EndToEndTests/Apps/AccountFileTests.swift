import Foundation
import TestSupport
import Testing

/// The users of manifests, whose accounts can come and change after the manifest.
@Suite(.enabled(if: isRoot, "an /etc of one's own needs a mount")) struct AccountFileTests {
  private let daemon: DaemonUnderTest

  init() throws { daemon = try DaemonUnderTest() }

  /// Starts a daemon with an /etc of its own and a manifest of an app that is a user named greeter.
  private func start() throws {
    let manifests = daemon.folder.appending(path: "apps")
    try FileManager.default.createDirectory(at: manifests, withIntermediateDirectories: true)
    try Data("[App]\nVendor=org.example\nUser=greeter\n".utf8).write(to: manifests.appending(path: "greeter.app"))
    try daemon.start(through: daemon.privateEtc(), configuration: "[Apps]\nDirectories=\(manifests.path)\n")
  }

  /// Gives the user named greeter another ID, in the way of useradd(8): a new file takes the place of the former one.
  private func change(to user: Int) throws {
    let script =
      "{ grep -v ^greeter: /etc/passwd; echo greeter:x:\(user):\(user)::/:/bin/sh; } > /etc/passwd- && "
      + "mv /etc/passwd- /etc/passwd"
    let result = try run([
      "nsenter", "--mount", "--target", "\(daemon.process.processIdentifier)", "sh", "-c", script,
    ])
    #expect(result.status == 0, "\(result.errors)")
  }

  private func isGreeter(_ user: Int) throws -> Bool {
    try PeerConnection(user, of: daemon).ask("app list").contains { $0.hasPrefix("* greeter ") }
  }

  /// Without a fault there is no further look at the manifests that would find the change by itself.
  @Test func `a user of a manifest that gets another ID is noticed`() throws {
    try start()
    try change(to: 2_001)
    try wait("the user", until: { try isGreeter(2_001) })
    try change(to: 2_002)
    try wait("the other user", until: { try isGreeter(2_002) })
    #expect(try !isGreeter(2_001))
    #expect(daemon.end() == 0)
  }
}
