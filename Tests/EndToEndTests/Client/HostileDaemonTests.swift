import Foundation
import IdentityWire
import TestSupport
import Testing

/// A daemon that puts hidden characters into all of its answers. The client must not write them unescaped.
@Suite(.tags(.slow, .plain)) struct HostileDaemonTests {
  // The release build, if there is one: the client starts two thousand times.
  private static let program = DaemonUnderTest.released.appending(path: "identityctl").path
  private static let secret = Data([0x1b, 0x5b, 0x32, 0x4a, 0x0a, 0xe2, 0x80, 0xae])

  /// Every hidden character of the Basic Multilingual Plane except NUL, which no text contains, and the line feed.
  private static let hidden = (UInt32(1)...0xffff).compactMap(Unicode.Scalar.init).filter {
    WordEncoder.isHidden($0) && $0 != "\n"
  }

  /// A JSON string of the protocol with escapes for all hidden characters.
  private static let word: String = {
    let escapes = hidden.map { WordEncoder.escape(of: $0) }.joined()
    return "\"w\(escapes)\u{202e}\u{2066}\""
  }()

  /// The hidden characters without escapes. The code and the text of an `ERR` line have no escapes.
  private static let raw = "w\u{202e}" + hidden.map { String($0) }.joined()

  /// The answers of the daemon, by their kind.
  private static let answers = [
    "rows": "* \(word) name=\(word) \(word)\n* \(word)\nOK \(word)\n",
    "properties": "* name=\(word)\n* other=\(word)\nOK\n",
    "final": "OK \(word) \(word) name=\(word) data=\(secret.base64EncodedString()) other=\(word)\n",
    "bare": "OK a\u{202e}b name=a\u{2066}b\n",
    "attributes": "OK name=\(word)\n",
    "refusal": "ERR \(raw) \(raw)\n",
    "busy": "ERR busy \(raw)\n",
    "nonsense": "\(raw)\n",
  ]

  /// One request for each verb. The client forwards most words unchecked.
  private static let requests: [[String]] = VerbTable.verbs.compactMap { verb in
    // The client implements these verbs itself. Another test below covers them, except for the help, which needs no daemon.
    guard !["backup", "restore", "help"].contains(verb.words.split(separator: " ")[0]) else { return nil }
    return verb.examples[0].request.split(separator: " ").map { String($0).replacing("\"", with: "") }
  }

  private func expectVisible(_ result: (status: Int32, output: String, errors: String), _ words: [String]) {
    for scalar in (result.output + result.errors).unicodeScalars where WordEncoder.isHidden(scalar) && scalar != "\n" {
      let text = (result.output + result.errors).debugDescription
      Issue.record("\(words): U+\(String(scalar.value, radix: 16)) is shown in \(text)")
      return
    }
  }

  private func run(_ words: [String], _ daemon: PlayedDaemon) throws -> (status: Int32, output: String, errors: String)
  {
    try TestSupport.run([Self.program, "--socket=\(daemon.socket)", "--yes"] + words)
  }

  @Test(arguments: answers.keys.sorted(), [[], ["--json"]])
  func `every request prints hidden characters of the answer escaped`(answer: String, options: [String]) throws {
    let text = try #require(Self.answers[answer])
    let daemon = try PlayedDaemon { _ in .lines(text) }
    for words in Self.requests {
      let result = try run(options + words, daemon)
      expectVisible(result, words)
      // The documents of --json have only the lines that belong to the answer of the verb.
      let isSubset = options == ["--json"] && !["refusal", "busy", "nonsense"].contains(answer)
      #expect(isSubset || (result.output + result.errors).contains("u202e"), "\(words) \(result)")
      guard options == ["--json"] else { continue }
      #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(result.output.utf8)) }
    }
    #expect(daemon.connections == Self.requests.count)
  }

  @Test(arguments: answers.keys.sorted())
  func `hidden characters are escaped on a terminal too`(answer: String) throws {
    let text = try #require(Self.answers[answer])
    let daemon = try PlayedDaemon { _ in .lines(text) }
    for words in ["status", "whoami", "item read", "check x", "version compare 1 2"] {
      let command = "\(Self.program) --socket=\(daemon.socket) \(words)"
      let result = try TestSupport.run(
        ["script", "--quiet", "--return", "--command", command, "/dev/null"],
        environment: ["TERM": "xterm", "NO_COLOR": "1"])
      // Removes the carriage returns that the terminal adds.
      expectVisible((result.status, result.output.replacing("\r\n", with: "\n"), result.errors), [words])
      #expect(result.output.contains("u202e"), "\(words) \(result)")
    }
  }

  @Test(arguments: [[], ["--json"]])
  func `hidden characters in events and in errors of subscriptions are escaped`(options: [String]) throws {
    let event = "EVENT 7 \(Self.word) \(Self.word) name=\(Self.word) time=\(Self.word)\n"
    let daemon = try PlayedDaemon {
      .lines($0 == "subscribe device" ? "OK 6\n\(event)" : "ERR \(Self.raw) \(Self.raw)\n")
    }
    let happened = try run(["wait", "device"] + options, daemon)
    #expect(happened.status == 0 && happened.output.contains("u202e"), "\(happened)")
    expectVisible(happened, options)
    let refused = try run(["wait", "item"] + options, daemon)
    #expect(refused.status == 9 && (refused.output + refused.errors).contains("u202e"), "\(refused)")
    expectVisible(refused, options)
    for (refusal, status) in [("ERR gone \(Self.raw)\n", 20), ("\(Self.raw)\n", 4)] as [(String, Int32)] {
      let other = try PlayedDaemon { _ in .lines(refusal) }
      let missed = try run(["wait", "device"] + options, other)
      #expect(missed.status == status && (missed.output + missed.errors).contains("u202e"), "\(missed)")
      expectVisible(missed, options)
    }
    let full = try PlayedDaemon { _ in .lastLines("ERR busy \(Self.raw)\n") }
    let busy = try run(["wait", "device", "--timeout=0.5"] + options, full)
    #expect(busy.status == 6 && (busy.output + busy.errors).contains("u202e"), "\(busy)")
    expectVisible(busy, options)
  }

  @Test(arguments: ["--openmetrics", "--prometheus"])
  func `hidden characters in metrics are escaped`(option: String) throws {
    let daemon = try PlayedDaemon { _ in
      .lines("* build-info=1 version=\(Self.word)\n* requests=1 verb=\(Self.word) outcome=\(Self.word)\nOK\n")
    }
    let result = try run(["stats", option], daemon)
    #expect(result.status == 0 && result.output.contains(#"{version="w\\u0001"#), "\(result)")
    expectVisible(result, [option])
    let refusing = try PlayedDaemon { _ in .lines("ERR \(Self.raw) \(Self.raw)\n") }
    let refused = try run(["stats", option], refusing)
    #expect(refused.status == 9 && refused.errors.contains("u202e"), "\(refused)")
    expectVisible(refused, [option])
  }

  @Test(arguments: answers.keys.sorted(), [[], ["--json"]])
  func `hidden characters that a finding of check quotes are escaped`(answer: String, options: [String]) throws {
    let text = try #require(Self.answers[answer])
    let daemon = try PlayedDaemon { request in
      // The rows that the checks read, each with hidden characters.
      let status = [
        "store", "store-reason", "master-key", "state-directory", "manifest-fault", "suspect", "clock", "pid",
        "manifest-folder",
      ]
      return switch request {
      case "hello" where answer == "rows": .lines("OK identityd \(Self.word) protocol=\(Self.word)\n")
      case "whoami" where answer == "rows": .lines("OK \(Self.word) uid=\(Self.word) admin=\(Self.word)\n")
      case "status" where answer == "rows": .lines(status.map { "* \($0)=\(Self.word)\n" }.joined() + "OK\n")
      default: .lines(text)
      }
    }
    let result = try run(["check"] + options, daemon)
    #expect(result.status == 8, "\(result)")
    // No finding quotes the other answers.
    if ["rows", "refusal", "busy", "nonsense"].contains(answer) {
      #expect(result.output.contains("u202e"), "\(result)")
    }
    expectVisible(result, options)
    guard options == ["--json"] else { return }
    #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(result.output.utf8)) }
  }

  @Test(arguments: answers.keys.sorted())
  func `hidden characters in messages of backup and restore are escaped`(answer: String) throws {
    let text = try #require(Self.answers[answer])
    let daemon = try PlayedDaemon { _ in .lines(text) }
    let backup = try identityctl(at: daemon.socket, ["backup", "-", "--passphrase-fd=3"])
    #expect(backup.status != 0 && !backup.errors.isEmpty, "\(backup)")
    expectVisible(backup, ["backup"])
    let file = daemon.folder.appending(path: "backup")
    let salt = String(repeating: "0", count: 32)
    try Data("identityd-backup 1 argon2id ops=1 memory=8192 salt=\(salt)\n".utf8).write(to: file)
    let restore = try identityctl(at: daemon.socket, ["restore", file.path, "--passphrase-fd=3", "--yes"])
    #expect((restore.output + restore.errors).contains("u202e"), "\(restore)")
    expectVisible(restore, ["restore"])
  }

  @Test func `hidden characters behind the data of a backup are escaped`() throws {
    let daemon = try PlayedDaemon { _ in .lines("* data=eA==\nOK \(Self.word)\n") }
    let backup = try identityctl(at: daemon.socket, ["backup", "-", "--passphrase-fd=3"])
    #expect(backup.status == 4 && backup.errors.contains("u202e"), "\(backup)")
    expectVisible((backup.status, "", backup.errors), ["backup"])
  }

  @Test func `item read --raw writes the bytes of a secret unescaped`() throws {
    let daemon = try PlayedDaemon { _ in .lines(Self.answers["final"] ?? "") }
    let file = daemon.folder.appending(path: "secret")
    let result = try identityctl(at: daemon.socket, ["item", "read", "--raw"], shell: "> '\(file.path)'")
    #expect(result.status == 0, "\(result)")
    #expect(try Data(contentsOf: file) == Self.secret)
  }
}
