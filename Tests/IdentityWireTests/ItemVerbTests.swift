import IdentityCore
import IdentityWire
import Testing

private let mail = ItemName(service: "mail", account: "alice", group: nil)
private let named = "service=mail account=alice"
/// The secret `hunter2`, and the attribute with its Base64.
private let secret = sealed("hunter2")
private let data = "data=aHVudGVyMg=="

struct ItemVerbTests {
  @Test(
    arguments: [
      ("item add \(named) \(data)", .storeItem(mail, secret, ItemDescription(), replaces: false)),
      ("item put \(named) \(data)", .storeItem(mail, secret, ItemDescription(), replaces: true)),
      (
        "ITEM Add Account=\"two words\" DATA=\"\" SERVICE=s group=org.shared",
        .storeItem(
          ItemName(service: "s", account: "two words", group: "org.shared"), sealed(""), ItemDescription(),
          replaces: false)
      ),
      (
        "item add \(named) \(data) label=\"\" this-device-only=no",
        .storeItem(mail, secret, ItemDescription(label: ""), replaces: false)
      ),
      (
        "item put attr.Host=MX1 \(named) lifetime=installation attr.a.b=\"\" \(data) label=\"my mail\" this-device-only=yes",
        .storeItem(
          mail, secret,
          ItemDescription(
            label: "my mail", attributes: [.init(name: "host", value: "MX1"), .init(name: "a.b", value: "")],
            isThisDeviceOnly: true, endsWithInstallation: true), replaces: true)
      ),
      ("item read \(named)", .readItem(mail)),
      ("item read \(named) group=g", .readItem(ItemName(service: "mail", account: "alice", group: "g"))),
      ("item update \(named)", .updateItem(mail, ItemUpdate())),
      (
        "item update \(named) \(data) label=\"\" attr.x=\"\" attr.y=1",
        .updateItem(
          mail,
          ItemUpdate(
            secret: secret, label: "", attributes: [.init(name: "x", value: ""), .init(name: "y", value: "1")])
        )
      ),
    ] as [(String, RegistryCommand)])
  func `requests for one item are parsed to commands`(line: String, expected: RegistryCommand) throws {
    #expect(try command(line, by: alice) == .registry(expected))
  }

  @Test(
    arguments: [
      ("", ItemCondition()), ("group=*", ItemCondition(groups: .all)), ("group=\"*\"", ItemCondition(groups: .all)),
      ("group=g", ItemCondition(groups: .named("g"))), ("service=s", ItemCondition(service: "s")),
      ("service=*", ItemCondition(service: "*")), ("account=a label=l", ItemCondition(account: "a", label: "l")),
      ("label=\"\"", ItemCondition(label: "")),
      (
        "ATTR.X=\"\" attr.y=Z",
        ItemCondition(attributes: [.init(name: "x", value: ""), .init(name: "y", value: "Z")])
      ),
    ] as [(String, ItemCondition)])
  func `conditions of item find and item delete are parsed`(conditions: String, expected: ItemCondition) throws {
    #expect(try command("item find \(conditions)", by: alice) == .registry(.findItems(expected, limit: nil)))
    guard expected.groups != .all, !expected.isEmpty else { return }
    if expected.exactName == nil {
      #expect(try command("item read \(conditions)", by: alice) == .registry(.readItem(matching: expected)))
      let update = ItemUpdate(secret: nil, label: "l", attributes: [.init(name: "y", value: "n")])
      let renamed = conditions.replacing(/label|(?i)attr\./) { "where.\($0.output)" }
      #expect(
        try command("item update \(renamed) label=l attr.y=n", by: alice)
          == .registry(.updateItem(matching: expected, update)))
    }
    #expect(try command("item find data=yes \(conditions)", by: alice) == .registry(.findSecrets(expected, limit: nil)))
    #expect(try command("item delete \(conditions)", by: alice) == .registry(.deleteItems(expected)))
    #expect(try command("item delete \(conditions) dry-run=no", by: alice) == .registry(.deleteItems(expected)))
    #expect(try command("item delete \(conditions) dry-run=yes", by: alice) == .registry(.previewDeletion(expected)))
  }

  @Test(arguments: ["item read", "item update", "item update label=l attr.x=y", "item read group=*"])
  func `a request for one item needs a condition, and one group`(line: String) {
    #expect(refused(line)?.code == .badArgument)
  }

  @Test(
    arguments: [
      ("one", 1), ("all", nil), ("1", 1), ("010", 10), ("9223372036854775807", .max),
    ] as [(String, Int?)])
  func `limit= of item find is parsed`(limit: String, expected: Int?) throws {
    #expect(try command("item find limit=\(limit)") == .registry(.findItems(ItemCondition(), limit: expected)))
  }

  @Test(arguments: ["0", "00", "-1", "+1", "1.0", "two", "ALL", "\"\"", "9223372036854775808", "\u{661}"])
  func `an error about an invalid limit lists the valid ones`(limit: String) throws {
    let refusal = try #require(refused("item find limit=\(limit)"))
    #expect(refusal.code == .badArgument)
    #expect(refusal.text.hasSuffix("; allowed: one, all, or a number from 1"))
  }

  @Test(arguments: [
    "item add \(named) \(data)", "item put \(named) \(data)", "item read \(named)", "item update \(named)",
    "item delete service=s", "item delete",
  ])
  func `only item find accepts * as a group`(line: String) throws {
    let refusal = try #require(refused("\(line) group=*"))
    #expect(refusal.code == .badArgument)
    #expect(
      refusal.text.hasSuffix("group cannot be \"*\"; allowed: the name of one group; only 'item find' takes *"))
  }

  @Test(arguments: ["service", "account", "group"])
  func `the length of each part of an item's key is limited`(name: String) {
    let longest = String(repeating: "a", count: Bound.nameLength)
    #expect(refused("item find \(name)=\(longest)") == nil)
    #expect(refused("item find \(name)=\(longest)a")?.code == .badArgument)
  }

  @Test(
    arguments: [
      "item add \(named) \(data)", "item put \(named) \(data)", "item update \(named)", "item find", "item delete",
    ],
    ["label", "attr.some-name"])
  func `the length of a label and of an attribute's value is limited`(line: String, name: String) {
    let longest = String(repeating: "é", count: Bound.itemTextLength / 2)
    #expect(refused("\(line) \(name)=\(longest)") == nil)
    #expect(refused("\(line) \(name)=\(longest)a") == .limit("\(name) has at most 1024 bytes"))
  }

  @Test func `the length of an attribute's name is limited`() {
    let longest = String(repeating: "a", count: Bound.attributeNameLength)
    #expect(refused("item find attr.\(longest)=1") == nil)
    #expect(refused("item find attr.\(longest)a=1")?.code == .badArgument)
  }

  @Test func `the number of attributes is limited`() throws {
    let most = (1...Bound.attributesPerItem).map { "attr.n\($0)=v" }.joined(separator: " ")
    guard case .registry(let command) = try command("item update \(named) \(most)") else {
      Issue.record("that is no update")
      return
    }
    let update = try #require(command.rule as? UpdateItemRule).update
    #expect(update.attributes.map(\.name) == (1...Bound.attributesPerItem).map { Text("n\($0)") })
    #expect(refused("item update \(named) \(most) attr.x=1") == .limit("an item has at most 64 attributes"))
  }
}

struct StoreVerbTests {
  @Test(
    arguments: [
      ("key rotate", .store(.rotateKey)), ("backup key=aHVudGVyMg==", .store(.backup(key: secret))),
      ("Backup KEY=\"\"", .store(.backup(key: sealed("")))),
      ("restore begin key=aHVudGVyMg==", .local(.beginRestore(key: secret))),
      ("restore add data=AAAA", .local(.addToRestore("AAAA"))),
      ("restore add data=\"not Base64\"", .local(.addToRestore("not Base64"))),
      ("restore end", .store(.restore(dryRun: false, adoptsDevice: false))),
      ("restore end dry-run=yes", .store(.restore(dryRun: true, adoptsDevice: false))),
      ("restore end dry-run=no adopt-device=yes", .store(.restore(dryRun: false, adoptsDevice: true))),
    ] as [(String, Command)])
  func `requests for the store are parsed to commands`(line: String, expected: Command) throws {
    #expect(try command(line) == expected)
  }
}
