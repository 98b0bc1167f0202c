import Foundation
import TestSupport
import Testing

/// A Mosquitto whose users are accounts, with the access rules of identity-fleet.conf(5).
struct BrokerOfAccounts {
  /// The settings of its devices.
  static let settings = "Username=account"

  /// The broker.
  let broker: BrokerUnderTest
  private let files = try? TemporaryFolder()
  private let passwords: String

  /// Starts a broker without users.
  init() throws {
    let page = try String(
      contentsOf: Document.root.appending(path: "packaging/man/identity-fleet.conf.5"), encoding: .utf8)
    let rules = try #require(page.firstMatch(of: #/tested as access rules\n\.Bd .*\n((?:[^.].*\n)+)\.Ed/#)).1
    let files = try #require(files)
    try files.write("rules", String(rules))
    try files.write("passwords", "")
    passwords = files["passwords"]
    broker = try BrokerUnderTest("allow_anonymous false\nacl_file \(files["rules"])\npassword_file \(passwords)")
  }

  /// Enters the user and the password of an answer to `fleet credentials`, in place of the user's former password.
  func admit(_ credentials: String) throws {
    let words = try #require(credentials.firstMatch(of: /user=(\S+) password=(\S+)/))
    try admit(String(words.1), String(words.2))
  }

  /// Enters a user with a password, in place of the former one.
  func admit(_ user: String, _ password: String) throws {
    #expect(try run(["mosquitto_passwd", "-b", passwords, user, password]).status == 0)
    broker.reload()
  }

  /// Returns the number of retained messages that a user sees on topics; nil if the broker refuses the user.
  func read(_ topics: String, as user: String, _ password: String) throws -> Int? {
    let outcome = try subscribe(to: topics, as: user, password, ["-W", "1", "-F", "%t"])
    return outcome.errors.contains("not authorised") ? nil : outcome.output.split(separator: "\n").count
  }

  /// Returns the topic of a record that a user sees; nil for none.
  func topic(ofRecordIn topics: String, as user: String, _ password: String) throws -> String? {
    let outcome = try subscribe(to: topics, as: user, password, ["-W", "2", "-C", "1", "-F", "%t"])
    return outcome.output.split(separator: "\n").first.map(String.init)
  }

  /// Returns the retained message on a topic, in hexadecimal digits; empty for none.
  func payload(of topic: String, as user: String, _ password: String) throws -> String {
    try subscribe(to: topic, as: user, password, ["-W", "1", "-C", "1", "-F", "%x"]).output
  }

  private func subscribe(
    to topics: String, as user: String, _ password: String, _ options: [String]
  ) throws -> (status: Int32, output: String, errors: String) {
    try run(["mosquitto_sub", "-p", "\(broker.port)", "-u", user, "-P", password, "-t", topics] + options)
  }

  /// Publishes a retained message as a user. Returns whether the broker let the user in.
  func publish(_ text: String, on topic: String, as user: String, _ password: String) throws -> Bool {
    let words = ["mosquitto_pub", "-p", "\(broker.port)", "-u", user, "-P", password, "-r", "-q", "1"]
    return try run(words + ["-t", topic, "-m", text]).status == 0
  }
}
