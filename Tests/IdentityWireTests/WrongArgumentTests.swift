import Foundation
import IdentityCore
import IdentityWire
import Testing

/// Requests with arguments that the verb does not take.
struct WrongArgumentTests {
  private static let uuid = "557e5958-d390-4cbf-b928-2a2b19a1399a"
  private static let item = "service=s account=a"

  @Test(arguments: VerbTable.verbs.map(\.words))
  func `every verb refuses unknown, surplus, repeated and missing arguments`(words: String) throws {
    let verb = try #require(VerbTable.verbs.first { $0.words == words })
    let request = try #require(verb.examples.first?.request)
    var lines = ["\(request) frob=1"]
    if !verb.operands.contains(where: \.repeats) {
      lines.append(request + String(repeating: " x", count: verb.operands.count + 1))
    }
    for attribute in verb.attributes {
      let name = attribute.name + (attribute.suffix == nil ? "" : "x")
      lines.append("\(request) \(name)=1 \(name.uppercased())=1")
    }
    if verb.operands.contains(where: { !$0.isOptional }) || verb.attributes.contains(where: \.isRequired) {
      lines.append(words)
    }
    for line in lines {
      let refusal = refused(line)
      #expect(refusal?.code == .badArgument, "\(line)")
      #expect(refusal?.text.hasPrefix("\(words): ") == true, "\(line): \(refusal?.text ?? "")")
    }
  }

  @Test(arguments: [
    ("renew", "LEVEL is missing"), ("resolve \(uuid) \(uuid)", "unexpected word \"\(uuid)\""),
    ("history device since=1", "unknown attribute \"since\""), ("item add service=s", "account= is missing"),
    ("renew device dry-run=yes Dry-Run=yes", "\"dry-run\" is given twice"),
    ("item find attr.x=1 ATTR.X=2", "\"attr.x\" is given twice"), ("token invalidate t", "TOKEN is missing"),
    ("account set a b", "unexpected word \"b\""), ("backup key=AAAA KEY=AAAA", "\"key\" is given twice"),
    // Levels.
    ("get frob", "LEVEL cannot be \"frob\"; allowed: uuid, key, session, boot, installation, vendor, device"),
    ("migrate vendor \(uuid)", "LEVEL cannot be \"vendor\"; allowed: device, installation"),
    ("renew session", "LEVEL cannot be \"session\"; allowed: installation, vendor, device"),
    ("history uuid", "LEVEL cannot be \"uuid\"; allowed: installation, vendor, device"),
    // Names and values.
    ("renew device dry-run=1", "dry-run cannot be \"1\"; allowed: yes, no"),
    ("renew device dry-run=YES", "dry-run cannot be \"YES\"; allowed: yes, no"),
    ("renew device dry-run=\"\"", "dry-run cannot be \"\"; allowed: yes, no"),
    ("get key \"\"", "NAME cannot be \"\"; allowed: 1 to 255 bytes"),
    ("account set \"\"", "NAME cannot be \"\"; allowed: 1 to 255 bytes"),
    ("devices put \(uuid) name=\"\"", "name cannot be \"\"; allowed: 1 to 255 bytes"),
    ("item read service=\"\" account=a", "service cannot be \"\"; allowed: 1 to 255 bytes"),
    ("item find account=\"\"", "account cannot be \"\"; allowed: 1 to 255 bytes"),
    ("item delete group=\"\"", "group cannot be \"\"; allowed: 1 to 255 bytes"),
    ("item find attr.=x", "attr.NAME cannot be \"\"; allowed: 1 to 64 bytes"),
    ("item add \(item) data=eA== lifetime=boot", "lifetime cannot be \"boot\"; allowed: installation"),
    ("item put \(item) data=eA== this-device-only=1", "this-device-only cannot be \"1\"; allowed: yes, no"),
    ("restore end dry-run=maybe", "dry-run cannot be \"maybe\"; allowed: yes, no"),
    ("restore end adopt-device=\"\"", "adopt-device cannot be \"\"; allowed: yes, no"),
    ("token put \"\" t", "PROVIDER has an invalid value; allowed: 1 to 255 bytes"),
    ("token list stale=-1", "stale cannot be \"-1\"; allowed: 0 to 3155760000"),
    ("token list stale=3155760001", "stale cannot be \"3155760001\"; allowed: 0 to 3155760000"),
    ("token list stale=\"\"", "stale cannot be \"\"; allowed: 0 to 3155760000"),
    ("version state of=system", "of cannot be \"system\"; allowed: app, os"),
    ("version history of=o\u{17f}", "of cannot be \"o\u{17f}\"; allowed: app, os"),
    ("version compare 1 2 order=rpm", "order cannot be \"rpm\"; allowed: numeric, semver, debian, linux, auto"),
    // Combinations.
    ("version state of=os app=org.a", "app= cannot be combined with of=os"),
    ("version history app=org.a of=os", "app= cannot be combined with of=os"),
    ("item delete", "give at least one condition: service=, account=, group=, label= or attr.NAME="),
    ("migrate device", "give VALUE, or item=ACCOUNT and service=S"),
    ("migrate device commit=yes", "give VALUE, or item=ACCOUNT and service=S"),
    ("migrate device \(uuid) item=a service=s", "VALUE cannot be combined with item="),
    ("migrate device \(uuid) item=a", "VALUE cannot be combined with item="),
    ("migrate device item=a group=g", "service= is missing"),
    ("migrate device service=s group=g", "service= and group= require item=ACCOUNT"),
    ("migrate installation \(uuid) group=g", "service= and group= require item=ACCOUNT"),
    ("migrate device item=\"\" service=s", "item cannot be \"\"; allowed: 1 to 255 bytes"),
    (
      "migrate device item=a service=s group=*",
      "group cannot be \"*\"; allowed: the name of one group; only 'item find' takes *"
    ),
  ])
  func `an error names the wrong argument`(line: String, message: String) throws {
    let refusal = try #require(refused(line))
    #expect(refusal.code == .badArgument)
    let parts = refusal.text.components(separatedBy: ": ")
    #expect(line.lowercased().hasPrefix(parts[0]), "the error begins with the verb: \(refusal.text)")
    #expect(parts.dropFirst().joined(separator: ": ") == message)
  }

  @Test(arguments: ["item", "item remove", "token", "token putt fcm t", "version", "version forget", "key", "restore"])
  func `an incomplete or misspelled verb is unknown`(line: String) {
    #expect(refused(line)?.code == .unknownVerb)
  }
}
