import Glibc
import IdentityCore
import LinuxSystem
import Testing

@testable import AppManifests

@Suite struct UserTests {
  @Test func `the name service is asked`() {
    let found = ManifestReader.userIDs(of: ["root", "no such user"])
    #expect(found.known == ["root": 0])
    #expect(found.faults == ["no such user": "there is no user no such user yet"])
  }

  @Test func `nobody asks for nothing`() {
    let found = ManifestReader.userIDs(of: [])
    #expect(found.known.isEmpty && found.faults.isEmpty)
  }

  @Test(arguments: [61_184, 63_000, 65_519] as [UInt32]) func `a dynamic user has no number that lasts`(id: UInt32) {
    let found = ManifestReader.userIDs(of: ["player"]) { _ in id }
    #expect(found.known == [:])
    let reason = "player is a dynamic user, whose number \(id) goes on to other services: name the unit instead"
    #expect(found.faults == ["player": reason])
  }

  @Test(arguments: [65_534, 65_535] as [UInt32])
  func `a number that stands for whoever cannot be named is nobody's`(id: UInt32) {
    let found = ManifestReader.userIDs(of: ["nobody"]) { _ in id }
    #expect(found.known == [:])
    #expect(found.faults["nobody"]?.contains("nobody in particular") == true)
  }

  @Test(arguments: [0, 1_000, 61_183, 65_520, 4_294_967_294] as [UInt32]) func `any other user has`(id: UInt32) {
    let found = ManifestReader.userIDs(of: ["player"]) { _ in id }
    #expect(found.known == ["player": id])
    #expect(found.faults == [:])
  }

  @Test func `a name service that fails does not stand for a user who is not there, and fails for one name alone`() {
    let found = ManifestReader.userIDs(of: ["player", "other", "third"]) { name throws(SystemError) in
      if name == "player" { throw SystemError(call: "getpwnam player", code: EIO) }
      return name == "other" ? 7 : nil
    }
    #expect(found.known == ["other": 7])
    #expect(
      found.faults == ["player": "getpwnam player: Input/output error", "third": "there is no user third yet"])
  }
}
