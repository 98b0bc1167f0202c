import IdentityCore
import IdentityWire
import Testing

private let value = "557e5958-d390-4cbf-b928-2a2b19a1399a"

@Suite struct AccessTests {
  @Test(arguments: [
    ("seal", ""), ("renew", "device"), ("account set", "alice"), ("account clear", ""), ("devices put", value),
    ("devices remove", value), ("devices forget", value), ("key rotate", ""), ("backup", "key=AAAA"),
    ("restore begin", "key=AAAA"), ("restore add", "data=AAAA"), ("restore end", ""),
  ])
  func `a verb for admins is denied to others before its arguments are read`(verb: String, operand: String) {
    let denied = Refusal.denied(app: "user:1000", userID: 1_000, grant: "admin rights for '\(verb)'")
    for rest in [operand, "", "x y z", "frob=1", "a=1 a=1", "app=org.a \(operand)", "\(operand) dry-run=maybe"] {
      #expect(refused("\(verb) \(rest)", by: alice) == denied, "\(rest)")
    }
    #expect(refused("\(verb) \(operand)", by: root) == nil)
    #expect(refused("\(verb) x y z", by: root)?.code != .denied)
  }

  @Test func `only the listed verbs are for admins`() {
    #expect(
      Set(VerbTable.verbs.filter { $0.access == .admin }.map(\.words))
        == [
          "seal", "renew", "account set", "account clear", "devices put", "devices remove", "devices forget",
          "key rotate", "backup", "restore begin", "restore add", "restore end",
        ])
  }

  @Test(arguments: [
    "ping", "hello", "help", "whoami", "status", "quit", "get uuid", "get key a", "get session", "get boot",
    "get installation", "get vendor", "get device", "check x", "resolve \(value)", "history device",
    "migrate device \(value)", "migrate installation \(value) commit=yes", "app list", "app forget user:1000",
    "account", "devices", "subscribe", "unsubscribe", "item add service=s account=a data=AAAA",
    "item put service=s account=a data=AAAA", "item read service=s account=a", "item find",
    "item update service=s account=a", "item delete service=s", "migrate device item=a service=s",
  ])
  func `other verbs are open to any peer`(line: String) {
    #expect(refused(line, by: alice) == nil)
  }

  @Test func `help shows whether a verb is for admins`() throws {
    var bytes: [UInt8] = []
    try VerbTable.help(["devices"]).append(to: &bytes)
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 5)
    #expect(lines[0].hasPrefix("* devices usage=devices access=app "))
    #expect(
      lines[1].hasPrefix("* \"devices put\" usage=\"devices put UUID [name=NAME] [seen=TIME]\" access=admin "))
  }
}
