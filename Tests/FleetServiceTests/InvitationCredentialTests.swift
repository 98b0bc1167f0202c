import FleetSeal
import FleetWire
import Foundation
import IdentityCore
import TestSupport
import Testing

/// The credential `identity-fleet.invitation`, at a real daemon and a real service.
@Suite(.enabled(if: isRoot, "the services act as admins of the daemons")) struct InvitationCredentialTests {
  /// Returns the file of an invitation that expires at a time.
  private func invitation(expiring expiry: Timestamp) throws -> String {
    let root = try #require(SecretKey.random())
    let (keys, account) = try (#require(DeviceKeys(seed: root)), #require(AccountKeys(root: root)))
    let meeting = try #require(JoinCode.Meeting.random())
    let device = UUID(high: 1, low: 1)
    let body = Body(
      subject: device, generation: 1, counter: 0, run: Run(high: 1, low: 1), time: Timestamp(milliseconds: 1),
      author: device, fields: Fields())
    let invitation = Invitation(name: "alice", root: root, epoch: account.firstEpoch, rosterSize: 1, expiry: expiry)
    let message = try #require(invitation.sealed(body, for: meeting, by: keys))
    return Invitation.fileHead + Data(meeting.copy() + message.bytes).base64EncodedString() + "\n"
  }

  @Test func `an invitation that has expired is logged once in a run, and changes nothing`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1\nSpread=0")
    device.end(with: SIGTERM)
    try device.give(try invitation(expiring: Timestamp(milliseconds: 1)), as: "identity-fleet.invitation")
    try device.start()
    try device.wait("the reason is logged") { device.log.contains("the invitation has expired") }
    // Another start of the rules in the same run.
    try device.reload("Broker=mqtt://127.0.0.1:2\nSpread=0\nHeartbeat=2h")
    #expect(try device.ask("account create bob") == ["OK"])
    #expect(device.log.matches(of: /the invitation has expired/).count == 1)
    #expect(try device.daemon.ask("account") == "OK bob")
    #expect(
      try device.daemon.ask("item read service=identity-fleet-invitation account=last").hasPrefix("ERR not-found "))
  }

  @Test func `an invitation that is too long to be read is logged`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1\nSpread=0")
    device.end(with: SIGTERM)
    try device.give(String(repeating: "a", count: 8_193), as: "identity-fleet.invitation")
    try device.start()
    try device.wait("the reason is logged") { device.log.contains("the invitation cannot be read") }
    #expect(try device.ask("account create bob") == ["OK"])
  }

  @Test func `an invitation that is valid is used at once, without a broker`() throws {
    let device = try FleetUnderTest("Broker=mqtt://127.0.0.1:1\nSpread=0")
    device.end(with: SIGTERM)
    let now = Int64(Date().timeIntervalSince1970 * 1_000)
    try device.give(
      try invitation(expiring: Timestamp(milliseconds: now + 600_000)), as: "identity-fleet.invitation")
    try device.start()
    try device.wait("it has joined") { try device.daemon.ask("account") == "OK alice" }
    #expect(device.log.contains("joined the account alice by the credential"))
  }
}
