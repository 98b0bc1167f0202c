import Foundation
import TestSupport
import Testing

/// A daemon that the kernel does not tell of mounts.
@Suite(.enabled(if: isRoot, "mounting needs root")) struct UnknownMountTests {
  @Test func `without the list of mounts the daemon says so, and a reload reads a mounted folder`() throws {
    let daemon = try DaemonUnderTest()
    let apps = daemon.folder.appending(path: "apps").path
    try FileManager.default.createDirectory(atPath: apps, withIntermediateDirectories: true)
    // The kernel opens no socket for reading, whatever the rights of the process are.
    let socket = daemon.folder.appending(path: "unreadable").path
    let bind = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
    try #require(try run(["/usr/bin/python3", "-c", bind, socket]).status == 0)
    let hide = #"mount --bind "$0" /proc/$$/mountinfo && exec "$@""#
    try daemon.start(
      through: ["unshare", "--mount", "sh", "-c", hide, socket], configuration: "[Apps]\nDirectories=\(apps)\n")
    #expect(
      daemon.log.contains(
        "mounts are not noticed: open /proc/self/mountinfo: No such device or address; reload the daemon after a mount")
    )

    let mount = #"mount -t tmpfs tmpfs "$0" && printf '[App]\nUser=mail\n' >"$0/reader.app""#
    let process = daemon.process.processIdentifier
    let mounted = try run(["nsenter", "--target", "\(process)", "--mount", "sh", "-c", mount, apps])
    try #require(mounted.status == 0, "\(mounted)")
    kill(process, SIGHUP)
    try wait("the app is installed") { try daemon.client().ask("app list").contains { $0.contains("reader") } }
  }
}
