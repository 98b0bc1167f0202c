import Foundation
import TestSupport
import Testing

/// Answers from a damaged store, for each line of the table in Decisions/0048.
@Suite(.enabled(if: isRoot, "it takes an admin")) struct DamagedAnswerTests {
  /// A kind of damage, the requests that are refused because of it, and the value of `store-unproven`.
  struct Damage: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let sql: String
    let refused: Set<String>
    let unproven: String?

    init(_ testDescription: String, _ sql: String, refused: Set<String>, unproven: String?) {
      self.testDescription = testDescription
      self.sql = sql
      self.refused = refused
      self.unproven = unproven
    }
  }

  /// The requests that read from the store.
  private static let questions = [
    "get device", "get installation", "get vendor", "history device", "history installation", "resolve DEVICE",
    "renew device dry-run=yes", "app list", "account", "devices", "item read service=s account=a1",
    "item read service=s account=a2", "item find", "item find group=*", "version state", "version history",
    "token get apns", "token get fcm", "token list", "whoami", "subscribe", "subscribe since=0",
    "subscribe account snapshot=yes", "subscribe item snapshot=yes", "subscribe token snapshot=yes",
    "subscribe device snapshot=yes", "subscribe version snapshot=yes", "subscribe devices snapshot=yes",
    "account set zoe dry-run=yes", "item delete service=s dry-run=yes", "token delete fcm dry-run=yes",
  ]
  private static let ofIdentifiers: Set = [
    "get device", "get installation", "get vendor", "history device", "history installation", "resolve DEVICE",
    "renew device dry-run=yes", "subscribe device snapshot=yes",
  ]
  private static let ofItems: Set = [
    "item read service=s account=a1", "item read service=s account=a2", "item find", "item find group=*",
    "subscribe item snapshot=yes", "item delete service=s dry-run=yes",
  ]
  private static let ofTokens: Set = [
    "token get apns", "token get fcm", "token list", "subscribe token snapshot=yes", "token delete fcm dry-run=yes",
  ]
  /// The dry run of another account depends on three kinds of records.
  private static let ofAnotherAccount: Set = ["account set zoe dry-run=yes"]
  private static let ofEvents = Set(questions.filter { $0.hasPrefix("subscribe") })

  private static let damages: [Damage] = [
    Damage(
      "the account", "UPDATE setting SET account = 'x'",
      refused: ofAnotherAccount.union(["account", "subscribe account snapshot=yes"]),
      unproven: "settings"),
    Damage(
      "an identifier", "UPDATE identifier SET value = upper(value) WHERE level = 'installation'",
      refused: ofIdentifiers.union(ofAnotherAccount).subtracting(["get device", "get vendor"]), unproven: "identifiers"),
    Damage(
      "a deleted identifier", "DELETE FROM identifier WHERE level = 'vendor'",
      refused: ofIdentifiers.union(ofAnotherAccount).union(["devices"]), unproven: "identifiers"),
    Damage(
      "a deleted device", "DELETE FROM device WHERE n = 2",
      refused: ofAnotherAccount.union(["devices", "subscribe devices snapshot=yes"]),
      unproven: "devices"),
    Damage(
      "an item", "UPDATE item SET owner = 'x' WHERE account = 'a1'",
      refused: ofItems.subtracting(["item read service=s account=a2"]), unproven: "items"),
    Damage("a deleted item", "DELETE FROM item WHERE account = 'a1'", refused: ofItems, unproven: "items"),
    Damage(
      "a version", "UPDATE installed_release SET version = '9' WHERE app NOT NULL",
      refused: ["version state", "version history", "subscribe version snapshot=yes"], unproven: "versions"),
    Damage(
      "a token", "UPDATE token SET token = 'x' WHERE provider = 'fcm'",
      refused: ofTokens.subtracting(["token get apns"]),
      unproven: "push tokens"),
    Damage(
      "a deleted token", "DELETE FROM token WHERE provider = 'fcm'", refused: ofTokens, unproven: "push tokens"),
    Damage(
      "an app", "UPDATE app SET installed = '2020-01-01T00:00:00.000Z'",
      refused: ofIdentifiers.union(ofItems).union(["app list", "whoami"]), unproven: "apps"),
    Damage(
      "a forged use of an app", "INSERT INTO app_use VALUES ('user:7', 1, 1, 1, x'00')", refused: ["app list"],
      unproven: "uses of apps"),
    Damage(
      "a forged message of the fleet", "INSERT INTO fleet VALUES ('x', 1, 1, 0, 0, 'x', 1, x'00')",
      refused: ["devices"], unproven: "fleet"),
    Damage(
      "a forged time of a backup", "INSERT INTO backup VALUES (1, '2020-01-01T00:00:00.000Z', 1, x'00')", refused: [],
      unproven: "last backup"),
    Damage(
      "a forged recovery key", "INSERT INTO recovery_key VALUES (1, '2020-01-01T00:00:00.000Z', x'00', 1, x'00')",
      refused: [], unproven: "recovery key"),
    Damage(
      "a deleted event",
      "DELETE FROM event_batch WHERE last = (SELECT last FROM event_batch ORDER BY last LIMIT 1 OFFSET 1)",
      refused: ofEvents, unproven: "events"),
    Damage(
      "the deleted row of the store", "DELETE FROM store", refused: Set(questions),
      unproven:
        "settings, apps, uses of apps, identifiers, devices, fleet, items, versions, push tokens, last backup, "
        + "recovery key, events, proof keys"
    ),
  ]

  @Test(arguments: damages) func `a damaged store answers verified data and refuses the rest with the reason`(
    damage: Damage
  ) throws {
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let device = try daemon.uuid("get device")
    for request in [
      "get installation", "get vendor", "account set alice", "devices put 11111111-1111-4111-8111-111111111111",
      "item put service=s account=a1 data=eA==", "item put service=s account=a2 data=eA==", "version report 1.0",
      "token put apns abc", "token put fcm def", "devices",
    ] {
      try #require(try client.ask(request).last?.hasPrefix("OK") == true, "\(request)")
    }
    func ask(_ question: String) throws -> [String] {
      try daemon.client().ask(question.replacing("DEVICE", with: device))
    }
    var answers: [String: [String]] = [:]
    for question in Self.questions { answers[question] = try ask(question) }
    let session = try daemon.ask("get session")
    daemon.end()
    try daemon.edit(damage.sql)
    try daemon.start()
    #expect(try daemon.client().statusValue("store") == "damaged")
    #expect(
      try daemon.client().statusValue("store-unproven") == damage.unproven.map { $0.contains(" ") ? "\"\($0)\"" : $0 })
    for question in Self.questions {
      let answer = try ask(question)
      if damage.refused.contains(question) {
        #expect(answer.last?.hasPrefix("ERR internal the store is damaged: ") == true, "\(question): \(answer)")
      } else {
        #expect(answer == answers[question], "\(question)")
      }
    }
    // The session identifier is computed from the store key, which other data in the store or beside it verifies.
    #expect(try daemon.ask("get session") == session)
    for change in ["account set bob", "item put service=s account=a9 data=eA==", "token put x y", "renew device"] {
      #expect(try daemon.ask(change).hasPrefix("ERR internal the store is damaged: "), "\(change)")
    }
  }
}
