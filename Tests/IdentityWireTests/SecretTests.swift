import IdentityCore
import IdentityWire
import Testing

private let named = "service=s account=a"

/// The requests that take a secret: the line without the secret, and the name of its attribute.
private let takers = [
  ("item add \(named)", "data"), ("item put \(named)", "data"), ("item update \(named)", "data"), ("backup", "key"),
  ("restore begin", "key"),
]

struct SecretTests {
  /// Returns the Base64 that the intake receives for a value, written as in the line.
  private func taken(_ value: String, room: Int = Bound.lineLength) -> [String] {
    let intake = TestIntake(room: room)
    _ = try? command("item add \(named) data=\(value)", secrets: intake)
    return intake.texts
  }

  @Test(arguments: [
    ("aGVsbG8/", "aGVsbG8/"), ("\"aGVsbG8/\"", "aGVsbG8/"), ("\"aGVsbG8\\/\"", "aGVsbG8/"),
    ("\"\\/\\/\\/\\/\"", "////"), ("\"\\u0061GVsbG8\\u002f\"", "aGVsbG8/"), ("\"\"", ""), ("aGVsbG8", "aGVsbG8"),
    ("=", "="), ("a=b=c", "a=b=c"), ("\"é\\u00e9\\ud83d\\ude00\\n\"", "éé😀\n"), ("é😀", "é😀"),
  ])
  func `escapes in a secret are resolved`(value: String, text: String) {
    #expect(taken(value) == [text])
  }

  @Test(arguments: takers)
  func `a command contains a secret only in encrypted form`(line: String, name: String) throws {
    let intake = TestIntake()
    let command = try command("\(line) \(name)=\"aHVu\\u0064GVyMg==\"", secrets: intake)
    #expect(intake.texts == ["aHVudGVyMg=="])
    let dumped = "\(command)"
    #expect(!dumped.contains("hunter2") && !dumped.contains("aHVudGVyMg"))
    #expect(dumped.contains("\(sealed("hunter2").bytes)"))
  }

  @Test(arguments: takers, ["x", "aGVsbG8", "aGVsbG8=x", "\"aGVs bG8=\"", "aGVsbG-_", "\"\\n\"", "é"])
  func `a secret that is not Base64 is refused and not repeated`(taker: (String, String), value: String) {
    let verb = taker.0.split(separator: " ").prefix { !$0.contains("=") }.joined(separator: " ")
    #expect(
      refused("\(taker.0) \(taker.1)=\(value)") == .badArgument(verb: verb, .notBase64(name: taker.1)))
  }

  @Test(arguments: takers)
  func `the length of a secret is limited`(line: String, name: String) {
    // Base64 of 65,536 bytes, then of one byte more.
    let longest = String(repeating: "AAAA", count: 21_845) + "AA=="
    #expect(refused("\(line) \(name)=\(longest)") == nil)
    #expect(refused("\(line) \(name)=\(longest.dropLast(2))A=") == .limit("a secret has at most 65536 bytes"))
  }

  @Test(arguments: ["aHVudGVyMg==", "\"aHVudGVyMg=\\u003d\"", "\"aHVudGVy\\ud83d\\ude00\"", "hunter2!\u{1F600}"])
  func `a secret that does not fit into the memory is refused`(value: String) {
    for room in 0..<12 {
      let refusal = refused("item add \(named) data=\(value)", secrets: TestIntake(room: room))
      #expect(refusal == .limit("a secret has at most 65536 bytes"), "\(room)")
    }
    #expect(taken("aHVudGVyMg==", room: 12) == ["aHVudGVyMg=="])
  }

  @Test(arguments: [
    "item add service=s data=AAAA", "item add \(named) data=AAAA data=AAAA", "item add \(named) data=AAAA DATA=AAAA",
    "item add \(named) data=AAAA frob=1", "item add \(named) data=AAAA frob", "item add data=AAAA \(named) service=t",
    "item add \(named) data=AAAA attr.=x", "item update where.x=a data=AAAA", "backup key=AAAA key=AAAA",
    "restore begin key=AAAA x", "item find data=AAAA", "item frob data=AAAA", "data=AAAA", "migrate device data=AAAA",
  ])
  func `no secret is encrypted for a request with wrong names`(line: String) {
    let intake = TestIntake()
    #expect(refused(line, secrets: intake) != nil)
    #expect(intake.texts.isEmpty)
  }

  @Test func `no secret is encrypted for a peer that may not use the verb`() {
    let intake = TestIntake()
    for line in ["backup key=AAAA", "restore begin key=AAAA"] {
      #expect(refused(line, by: alice, secrets: intake)?.code == .denied)
    }
    #expect(intake.texts.isEmpty)
  }

  @Test(
    arguments: takers,
    ["c2VjcmV0c2VjcmV0", "c2Vjcm/0+2Vjcg==", "c2VjcmV0c2VjcmU=", "secretsecret-", "\u{e9}ecretsecret"])
  func `no error text repeats a secret, however wrong the request`(taker: (String, String), secret: String) {
    let (line, name) = taker
    let escaped = secret.replacing("/", with: "\\/")
    for value in [secret, "\"\(secret)\"", "\"\(escaped)\"", "\"\(secret)\\n\""] {
      for request in [
        // The secret without its name, or behind another name.
        "\(line) \(value)", "\(line) \(name) \(value)", "\(line) \(name) = \(value)", "\(line) \(name):\(value)",
        "\(line) \(name)= \(value)", "\(line) \(name)\(value)", "\(line) =\(value)", "\(line) \(name)=AAAA \(value)",
        "\(line) dta=\(value)", "\(line) \(name)x=\(value)", "\(line) attr=\(value)", "\(line) attr.=\(value)",
        "\(line) \(value)=x", "\(line) x\(value)=", "\(line) 1=\(value)",
        // Another fault in the request.
        "\(line) \(name)=\(value) \(name)=\(value)", "\(line) \(name)=\(value) \(name.uppercased())=AAAA",
        "\(line) \(name)=\(value) frob", "\(line) \(name)=\(value) frob=1", "\(line) \(name)=\(value) group=*",
        "\(line) \(name)=\(value) lifetime=x", "\(line) \(name)=\(value) \(String(repeating: "x ", count: 300))",
        "\(line) \(name)=\(value)x", "\(line) \(name)=\(value)\"", "\(line) \(name)=\"\(secret)",
        "\(line) \(name)=\"\(secret)\\x\"", "\(line) \(name)=\(value)\u{1}", "\(line) \(name)=\"\(secret)\\u0000\"",
        "\(line) \(name)=\"\(secret)\"\"\"", "\(line) \(name)=\(secret)%\(secret)", "item frob \(name)=\(value)",
        "item \(name)=\(value)", "\(name)=\(value)", "\(name)=\(value) frob", "migrate \(name)=\(value)",
        "migrate device \(name)=\(value)", "item find \(name)=\(value)",
      ] {
        for peer in [root, alice] {
          guard let refusal = refused(request, by: peer) else { continue }
          var bytes: [UInt8] = []
          refusal.append(to: &bytes)
          let text = String(decoding: bytes, as: UTF8.self).lowercased()
          // Not even a part of the secret may be repeated.
          for part in ["c2vj", "secret", secret.lowercased()] { #expect(!text.contains(part), "\(request): \(text)") }
        }
      }
    }
  }
}
