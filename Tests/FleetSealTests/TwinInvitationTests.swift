import ClientSecrets
import FleetWire
import Foundation
import IdentityClient
import IdentityCore
import LinuxSystem
import TestSupport
import Testing

@testable import FleetSeal

/// Invitations that the second implementation opens and makes.
struct TwinInvitationTests {
  private let keys: DeviceKeys
  private let invitation: Invitation
  private let body: Body

  init() throws {
    keys = try Sample.keys()
    invitation = Invitation(
      name: "home", root: try Sample.secret(from: 0), epoch: EpochKey(number: 3, key: try Sample.secret(from: 0x80)),
      rosterSize: 600, expiry: Sample.time, removed: Sample.others)
    body = Body(
      subject: Sample.device, generation: 1, counter: 0, run: Sample.run, time: Sample.time, author: Sample.device,
      fields: Fields())
  }

  /// Compares the invitation with the content that the other implementation has read.
  private func compare(_ answer: [String: Any]) {
    #expect(answer["fields"] as? [Int] == [1, 2, 20, 21, 22, 25, 26, 29])
    #expect(answer["name"] as? String == "home")
    #expect(answer["signer"] as? String == hexadecimal(keys.signingKey.bytes))
    #expect(answer["root"] as? String == Twin.root)
    #expect(answer["epoch"] as? Int == 3)
    #expect(answer["key"] as? String == hexadecimal(0x80..<0xa0))
    #expect(answer["devices"] as? Int == 600)
    #expect(answer["expiry"] as? Int == 1_790_000_000_000)
    #expect(answer["removed"] as? [String] == Sample.others.map { hexadecimal($0.bytes) })
  }

  /// Returns a passphrase that a person enters.
  private func entered(_ text: String) throws -> Passphrase {
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    try folder.write("passphrase", text)
    return try Passphrase(from: try InputFile(path: folder["passphrase"]))
  }

  @Test func `it joins with a code, and its answer is read`() throws {
    let code = try #require(JoinCode.random())
    let meeting = try #require(code.meeting())
    let message = try #require(invitation.sealed(body, for: meeting, by: keys))
    let device = Sample.others[0]
    let answer = try Twin.ask([
      "do": "join", "root": Twin.root, "code": "\(code)", "message": hexadecimal(message.bytes),
      "seed": hexadecimal(0x60..<0x80), "device": hexadecimal(device.bytes), "name": "Küche",
    ])
    compare(answer)
    let topic = MessageTopic.answer(meeting.rendezvous)
    #expect(answer["topic"] as? String == topic.text)
    let opened = try meeting.key.open(bytes(try #require(answer["answer"] as? String)), on: topic)
    let newcomer = try Sample.keys(0x60)
    #expect(opened.kind == .answer && opened.epoch == 0 && opened.signer == newcomer.signingKey)
    #expect(opened.body.subject == device && opened.body.author == device)
    #expect(opened.body.generation == 1 && opened.body.counter == 0)
    #expect(opened.body.fields[.name] == Array("Küche".utf8))
    #expect(opened.body.fields[.boxKey] == newcomer.boxKey.bytes)
  }

  @Test(arguments: [nil, "Ku\u{308}che"] as [String?])
  func `it opens a file with an invitation`(passphrase: String?) throws {
    let meeting = try #require(JoinCode.Meeting.random())
    let message = try #require(invitation.sealed(body, for: meeting, by: keys))
    let content = meeting.copy() + message.bytes
    var file = Array(Invitation.fileHead.utf8)
    var command: [String: Any] = ["do": "invitation", "root": Twin.root]
    if let passphrase {
      command["passphrase"] = passphrase
      let header = try BackupHeader()
      let key = try entered(passphrase).key(for: header)
      let sealed = key.seal(content.span)
      file += header.line
      Base64Text.append(sealed.span, to: &file)
    } else {
      Base64Text.append(content.span, to: &file)
    }
    command["file"] = String(decoding: file, as: UTF8.self) + "\n"
    compare(try Twin.ask(command))
  }

  @Test(arguments: [nil, "K\u{fc}che"] as [String?])
  func `its file with an invitation is opened`(passphrase: String?) throws {
    var command: [String: Any] = [
      "do": "invite", "root": Twin.root, "seed": hexadecimal(0x20..<0x40), "device": hexadecimal(Sample.device.bytes),
      "name": "home", "epoch": 3, "key": hexadecimal(0x80..<0xa0), "devices": 600, "expiry": 1_790_000_000_000,
      "removed": Sample.others.map { hexadecimal($0.bytes) },
    ]
    if let passphrase { command["passphrase"] = passphrase }
    let text = try #require(Twin.ask(command)["file"] as? String)
    let content: [UInt8]?
    if let passphrase {
      let lines = text.split(separator: "\n").map { Array($0.utf8) }
      try #require(lines.count == 3 && text.hasPrefix(Invitation.fileHead))
      let last = lines[2]
      let sealed = Base64Text.decode(last.span)
      let secrets = try entered(passphrase).keys(for: BackupHeader(parsing: lines[1]))
      content = secrets.open(try #require(sealed))
    } else {
      let file = Array(text.utf8)
      content = Base64Text.decode(file.span, after: Invitation.fileHead)
    }
    let opened = try #require(content)
    var secret = Array(opened.prefix(JoinCode.Meeting.length))
    let meeting = try #require(JoinCode.Meeting(consuming: &secret))
    var message = try meeting.key.open(
      Array(opened.dropFirst(JoinCode.Meeting.length)), on: .invitation(meeting.rendezvous))
    #expect(message.kind == .invitation && message.signer == keys.signingKey)
    #expect(message.body.fields[.removed] == Sample.others.flatMap(\.bytes))
    let read = try #require(Invitation(taking: &message.body.fields))
    #expect(read.name == "home" && read.rosterSize == 600 && read.expiry == Sample.time && read.epoch.number == 3)
    #expect(read.root.copy() == Array(0..<32) && read.epoch.key.copy() == Array(0x80..<0xa0))
  }
}
