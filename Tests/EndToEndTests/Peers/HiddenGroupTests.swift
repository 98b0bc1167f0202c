import Foundation
import TestSupport
import Testing

/// Daemons in a mount namespace without control groups, which cannot tell who any client is.
@Suite(.enabled(if: isRoot, "mounts need root")) struct HiddenGroupTests {
  @Test(arguments: [
    "mount -t tmpfs none /sys", "mount -t tmpfs none /sys/fs/cgroup", "umount --recursive --lazy /sys/fs/cgroup",
  ])
  func `without control groups clients are refused with the reason, and check shows the command that mounts them`(
    hiding: String
  ) throws {
    let daemon = try DaemonUnderTest()
    try daemon.launch(through: ["unshare", "--mount", "sh", "-c", "\(hiding) && exec \"$@\"", "sh"])
    try daemon.waitForLog("Serving on")
    let refusal = "no control groups are mounted on /sys/fs/cgroup where the daemon runs"
    #expect(try daemon.client().line()?.hasPrefix("ERR denied \(refusal), ") == true)
    try daemon.waitForLog(refusal)
    let inside = ["nsenter", "--target=\(daemon.process.processIdentifier)", "--mount"]
    let before = try Diagnosis(of: daemon.socket, through: inside)
    let found = try before["peer"]
    #expect(!before.ok && found.cause?.contains(refusal) == true, "\(before)")
    #expect(try before["socket"].result == "ok", "\(before)")
    // No mount is proposed to a caller that sees control groups.
    let outside = try Diagnosis(of: daemon.socket)["peer"]
    #expect(outside.result == "failed" && outside.mend?.hasPrefix("mount ") != true, "\(outside)")
    let mend = try #require(found.mend)
    let mended = try run(inside + ["bash", "-c", mend])
    #expect(mended.status == 0, "\(mended)")
    let after = try Diagnosis(of: daemon.socket, through: inside)
    #expect(try after["peer"].result == "ok", "\(after)")
    #expect(try daemon.ask("whoami").hasSuffix(" admin=yes"))
  }
}
