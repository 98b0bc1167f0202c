import Glibc
import IdentityCore
import LinuxSystem
import Testing

@testable import AppManifests

struct UserTests {
  @Test func `users are looked up in the name service`() {
    let found = ManifestReader.userIDs(of: ["root", "no such user"])
    #expect(found.known == ["root": 0])
    #expect(found.faults == ["no such user": "the user no such user does not exist yet"])
  }

  @Test func `no users yield no result`() {
    let found = ManifestReader.userIDs(of: [])
    #expect(found.known.isEmpty && found.faults.isEmpty)
  }

  @Test(arguments: [61_184, 63_000, 65_519] as [UInt32])
  func `a dynamic user is refused, because its number is reused`(id: UInt32) {
    let found = ManifestReader.userIDs(of: ["player"]) { _ in id }
    #expect(found.known == [:])
    let reason = "player is a dynamic user, whose number \(id) is reused for other services; name the unit instead"
    #expect(found.faults == ["player": reason])
  }

  @Test(arguments: [65_534, 65_535] as [UInt32])
  func `the numbers of nobody are refused`(id: UInt32) {
    let found = ManifestReader.userIDs(of: ["nobody"]) { _ in id }
    #expect(found.known == [:])
    #expect(found.faults["nobody"]?.contains("that have no number here") == true)
  }

  @Test(arguments: [0, 1_000, 61_183, 65_520, 4_294_967_294] as [UInt32])
  func `any other user is accepted`(id: UInt32) {
    let found = ManifestReader.userIDs(of: ["player"]) { _ in id }
    #expect(found.known == ["player": id])
    #expect(found.faults == [:])
  }

  @Test func `an error of the name service is reported for its name and not as a missing user`() {
    let found = ManifestReader.userIDs(of: ["player", "other", "third"]) { name throws(SystemError) in
      if name == "player" { throw SystemError(call: "getpwnam player", code: EIO) }
      return name == "other" ? 7 : nil
    }
    #expect(found.known == ["other": 7])
    #expect(
      found.faults == ["player": "getpwnam player: Input/output error", "third": "the user third does not exist yet"])
  }
}
