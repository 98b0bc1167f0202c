import FleetWire
import Foundation
import IdentityCore
import Testing

@testable import FleetSeal

/// Compares the messages with those of a second implementation, in Python.
struct TwinTests {
  @Test func `both derive the same names and the same passwords`() throws {
    let account = try Sample.account()
    var key = [UInt8](0x60..<0x80)
    let next = try EpochKey(number: 1 << 16, key: #require(SecretKey(consuming: &key)))
    let answer = try Twin.ask([
      "do": "account", "root": Twin.root, "device": hexadecimal(Sample.device.bytes), "epoch": hexadecimal(0x60..<0x80),
    ])
    #expect(answer["id"] as? String == "\(account.id)")
    #expect(answer["topic"] as? String == MessageTopic.device(account.id, account.tag(of: Sample.device)).text)
    let passwords = try #require(answer["passwords"] as? [String]).map { secret in
      Data(bytes(secret)).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
    }
    #expect([account.firstEpoch, next].map(account.brokerPassword) == passwords)
  }

  @Test func `it reads a record`() throws {
    let account = try Sample.account()
    let keys = try Sample.keys()
    let topic = MessageTopic.device(account.id, account.tag(of: Sample.device))
    let body = try Sample.record(by: keys, name: "Küche")
    let message = try #require(MessageSeal(account).seal(.record, body, epoch: 1, on: topic, by: keys))
    let answer = try Twin.ask([
      "do": "open", "root": Twin.root, "topic": topic.text, "message": hexadecimal(message.bytes),
    ])
    #expect(answer["kind"] as? Int == 1)
    #expect(answer["epoch"] as? Int == 1)
    let read = try #require(answer["body"] as? [String: Any])
    #expect(read["subject"] as? String == hexadecimal(Sample.device.bytes))
    #expect(read["counter"] as? Int == 7)
    #expect(read["run"] as? String == "\(Sample.run)")
    #expect(read["time"] as? Int == 1_790_000_000_000)
    let fields = try #require(read["fields"] as? [[Any]])
    #expect(fields.map { $0[0] as? Int } == [1, 2, 3, 4, 5])
    #expect(fields[0][1] as? String == hexadecimal("Küche".utf8))
  }

  @Test func `its record is read, with fields that this release does not know`() throws {
    let account = try Sample.account()
    let answer = try Twin.ask([
      "do": "seal", "root": Twin.root, "kind": 1, "seed": hexadecimal(0x20..<0x40),
      "body": [
        "subject": hexadecimal(Sample.device.bytes), "generation": 2, "counter": 9, "run": "\(Sample.run)",
        "time": -1, "author": hexadecimal(Sample.device.bytes),
        "fields": [
          [1, hexadecimal("phone".utf8)], [2, "signing"], [3, "box"], [4, "0000000000000001"],
          [5, hexadecimal(0..<16)], [200, "aa"], [200, ""],
        ],
      ] as [String: Any],
    ])
    let message = bytes(try #require(answer["message"] as? String))
    let topicText = try #require(answer["topic"] as? String)
    let topic = try #require(MessageTopic(parsing: topicText))
    let opened = try MessageSeal(account).open(message, on: topic)
    #expect(hexadecimal(opened.digest) == answer["sha256"] as? String)
    #expect(opened.body.generation == 2 && opened.body.counter == 9 && opened.body.time.milliseconds == .max)
    #expect(opened.body.fields.all.suffix(2).map(\.type) == [200, 200])
    #expect(opened.body.fields.all.suffix(2).map(\.value) == [[0xaa], []])
    let description = try #require(DeviceDescription(opened.body.fields))
    let keys = try Sample.keys()
    #expect(description.name == "phone")
    #expect(description.signingKey == keys.signingKey && description.boxKey == keys.boxKey)
    #expect(description.home.bytes == Array(0..<16))
  }

  @Test func `each opens the records of the other in version 2`() throws {
    let account = try Sample.account()
    let keys = try Sample.keys()
    let topic = MessageTopic.device(account.id, account.tag(of: Sample.device))
    var body = try Sample.record(by: keys)
    body.fields[.readableVersion] = [EnvelopeVersion.two.rawValue]
    let message = try #require(MessageSeal(account).seal(.record, body, epoch: 1, .two, on: topic, by: keys))
    let answer = try Twin.ask([
      "do": "open", "root": Twin.root, "topic": topic.text, "message": hexadecimal(message.bytes),
    ])
    #expect(answer["kind"] as? Int == 1 && answer["epoch"] as? Int == 1)
    let read = try #require(answer["body"] as? [String: Any])
    let fields = try #require(read["fields"] as? [[Any]])
    #expect(fields.map { $0[0] as? Int } == [1, 2, 3, 4, 5, 36])
    #expect(fields.last?[1] as? String == "02")
    // The twin seals what it has read.
    var command: [String: Any] = [
      "do": "seal", "root": Twin.root, "kind": 1, "version": 2, "seed": hexadecimal(0x20..<0x40), "body": read,
    ]
    let made = bytes(try #require(Twin.ask(command)["message"] as? String))
    let opened = try MessageSeal(account).open(made, on: topic)
    #expect(opened.version == .two && opened.body == body && opened.signer == keys.signingKey)
    #expect(made != message.bytes)
    // With the same nonce, both make the same bytes.
    command["nonce"] = hexadecimal(message.bytes[8..<32])
    #expect(try Twin.ask(command)["message"] as? String == hexadecimal(message.bytes))
  }

  @Test func `both derive the same meeting from a join code, however people type it`() throws {
    let code = try #require(JoinCode.random())
    let typed = "\(code)".lowercased().replacing("-", with: " ").replacing("0", with: "o").replacing("1", with: "l")
    let answer = try Twin.ask(["do": "code", "root": Twin.root, "code": typed])
    let meeting = try #require(code.meeting())
    #expect(answer["rendezvous"] as? String == "\(meeting.rendezvous)")
    #expect(answer["key"] as? String == hexadecimal(meeting.key.key.copy()))
  }

  @Test func `it opens a key that is handed to a device, and hands one on`() throws {
    let account = try Sample.account()
    let keys = try Sample.keys()
    let next = EpochKey(number: 0x1_aa81, key: try Sample.secret(from: 0x80))
    let topic = MessageTopic.grant(account.id, account.tag(of: Sample.device))
    var fields = Fields()
    fields[.signingKey] = keys.signingKey.bytes
    fields[.epoch] = next.number.bigEndianBytes
    fields[.sealedBox] = next.boxed(to: keys.boxKey)
    let body = Body(
      subject: Sample.device, generation: 1, counter: 0, run: Sample.run, time: Sample.time, author: Sample.device,
      fields: fields)
    let message = try #require(MessageSeal(account).seal(.grant, body, epoch: 1, on: topic, by: keys))
    let seed = hexadecimal(0x20..<0x40)
    let answer = try Twin.ask([
      "do": "unbox", "root": Twin.root, "seed": seed, "topic": topic.text, "message": hexadecimal(message.bytes),
    ])
    #expect(answer["epoch"] as? Int == 0x1_aa81)
    #expect(answer["key"] as? String == hexadecimal(0x80..<0xa0))
    let handed = try Twin.ask(["do": "box", "root": Twin.root, "seed": seed, "key": hexadecimal(0x80..<0xa0)])
    let box = bytes(try #require(handed["box"] as? String))
    #expect(keys.unboxed(box)?.copy() == Array(0x80..<0xa0))
  }

  @Test func `it opens a message for one reader, and makes one`() throws {
    let account = try Sample.account()
    let (keys, sender) = (try Sample.keys(), try Sample.keys(0x60))
    let topic = MessageTopic.tokens(ReaderID(of: sender.boxKey), account.tag(of: Sample.device))
    let body = try Sample.tokens(by: keys)
    let message = try #require(keys.box(.tokens, body, to: sender.boxKey, on: topic))
    let answer = try Twin.ask([
      "do": "read", "root": Twin.root, "seed": hexadecimal(0x60..<0x80), "topic": topic.text,
      "message": hexadecimal(message.bytes),
    ])
    #expect(answer["kind"] as? Int == 33)
    #expect(answer["reader"] as? String == "\(ReaderID(of: sender.boxKey))")
    #expect(answer["tokens"] as? [[String]] == [["org.example.mail", "apns", "production", "org.example.mail", "abc"]])
    let back = MessageTopic.feedback(ReaderID(of: sender.boxKey), account.tag(of: Sample.device))
    let made = try Twin.ask([
      "do": "tell", "root": Twin.root, "seed": hexadecimal(0x60..<0x80), "to": hexadecimal(keys.boxKey.bytes),
      "topic": back.text, "device": hexadecimal(Sample.device.bytes),
      "tokens": [["org.example.mail", "apns", "production", "org.example.mail", "abc"]],
    ])
    let opened = try keys.openBox(bytes(try #require(made["message"] as? String)), on: back)
    #expect(opened.kind == .feedback && opened.signer == sender.signingKey)
    #expect(opened.body.fields.tokens(.invalidToken) == body.fields.tokens(.token))
  }
}
