import IdentityCore
import IdentityWire
import TestSupport
import Testing

/// Two different names that people confuse, or that a comparison other than by bytes takes for equal.
private struct NamePair {
  let first: String
  let second: String

  /// Pairs of texts that look alike or that some comparison takes for equal.
  private static let twins: [(String, String)] = [
    ("K", "\u{212a}"), ("k", "\u{212a}"), ("\u{c5}", "\u{212b}"), ("\u{c5}", "A\u{30a}"), ("\u{e9}", "e\u{301}"),
    ("s", "\u{17f}"), ("i", "\u{131}"), ("I", "\u{130}"), ("a", "\u{430}"), ("a", "\u{ff41}"), ("fi", "\u{fb01}"),
    ("\u{3a9}", "\u{2126}"), ("\u{ac00}", "\u{1100}\u{1161}"), ("q\u{323}\u{307}", "q\u{307}\u{323}"), ("ss", "\u{df}"),
    ("a", "A"), ("Z", "z"), ("0", "O"), ("l", "1"), ("a.b", "a-b"), ("\u{3bc}", "\u{b5}"), ("e", "e\u{301}"),
  ]
  /// Characters that are easily overlooked at the beginning or end of a name.
  private static let marks = [
    ".", " ", "\u{0}", "\r", "\n", "\t", "\u{200d}", "\u{feff}", "\u{fe0f}", "\u{ad}", "\u{a0}", "\u{301}", "\u{200b}",
    "\u{7f}", "\u{85}", "a", "\u{202e}",
  ]
  private static let letters = ["a", "b", "Z", "k", "0", ".", "-", "\u{e9}", "\u{4e2d}"]

  init(_ random: inout SeededGenerator) {
    func some() -> String {
      (0..<Int.random(in: 0...3, using: &random)).map { _ in random.one(of: Self.letters) }.joined()
    }
    let (front, back) = (some(), some())
    switch Int.random(in: 0..<4, using: &random) {
    case 0, 1:
      let twin = random.one(of: Self.twins)
      (first, second) = (front + twin.0 + back, front + twin.1 + back)
    case 2: (first, second) = ("n" + back, "n" + back + random.one(of: Self.marks))
    default: (first, second) = (front + "n", random.one(of: Self.marks) + front + "n")
    }
  }

  var turned: NamePair { NamePair(first: second, second: first) }

  private init(first: String, second: String) {
    self.first = first
    self.second = second
  }
}

extension String {
  /// Returns the text as a word of a request: a JSON string, in half of the cases with every character escaped.
  fileprivate func quoted(_ random: inout SeededGenerator) -> String {
    let isEscaped = random.once(in: 2)
    let units =
      isEscaped
      ? utf16.map { "\\u" + String(repeating: "0", count: 4 - String($0, radix: 16).count) + String($0, radix: 16) }
      : []
    if isEscaped { return "\"" + units.joined() + "\"" }
    return "\""
      + unicodeScalars.map {
        $0.value < 0x20 ? "\\u00\($0.value < 16 ? "0" : "")\(String($0.value, radix: 16))" : "\($0)"
      }.joined() + "\""
  }
}

@Suite(.tags(.trial)) struct ConfusedNameTests {
  /// The kinds of names, each with the request that creates one and the request that looks it up.
  private static let kinds: [(what: String, make: String, find: String)] = [
    ("service", "item add service=@ account=a data=eA==", "item read service=@ account=a"),
    ("account", "item add service=s account=@ data=eA==", "item read service=s account=@"),
    ("group", "item add service=s account=a group=@ data=eA==", "item read service=s account=a group=@"),
    ("label", "item put service=s account=a data=eA== label=@", "item find label=@"),
    ("attribute", "item put service=s account=a data=eA== attr.x=@", "item find attr.x=@"),
    ("provider", "token put @ one", "token get @"),
    ("token", "token put p @", "token invalidate p @"),
  ]

  @Test func `row 40b: a name is never taken for another`() throws {
    var random = SeededGenerator(0x40b)
    var life = Life()
    _ = life.answer("version report 1", as: alice.session(1))
    let count = Trial.rounds(20_000, long: 200_000)
    var lost = 0
    var refused = 0
    for _ in 1...count {
      let pair = random.once(in: 2) ? NamePair(&random) : NamePair(&random).turned
      let (first, second) = (pair.first.quoted(&random), pair.second.quoted(&random))
      let confusion =
        switch Int.random(in: 0..<10, using: &random) {
        case 0: Self.confusedApps(pair, second, life)
        case 1: Self.confusedClaims(first, second, life)
        case 2: Self.confusedKeys(first, second)
        default: Self.confusedValues(first, second, random.one(of: Self.kinds), life, &refused)
        }
      if let confusion {
        lost += 1
        Issue.record("\(confusion): \(first) and \(second)")
        if lost == 10 { break }
      }
    }
    // Some of the names are invalid.
    #expect(refused > count / 200 && refused < count / 2, "\(refused)")
    try Trial("names that could be confused").report(tried: count, lost: lost, "\(refused) refused")
  }

  /// Stores a value under the first name. The second name must not find that value, and must be free for another value.
  ///
  /// - Returns: a description of the confusion, or nil.
  private static func confusedValues(
    _ first: String, _ second: String, _ kind: (what: String, make: String, find: String), _ start: Life,
    _ refused: inout Int
  ) -> String? {
    var life = start
    func made(_ name: String) -> String { life.answer(kind.make.replacing("@", with: name), as: root)[0] }
    func found(_ name: String) -> [String] { life.answer(kind.find.replacing("@", with: name), as: root) }
    guard made(first).hasPrefix("OK") else {
      refused += 1
      return found(first)[0].hasPrefix("ERR") ? nil : "a \(kind.what) that is refused is found"
    }
    let own = found(first)
    guard own[0] != "OK unchanged", !own[0].hasPrefix("ERR") else { return "a \(kind.what) is not found" }
    let other = found(second)
    guard other[0] == "OK unchanged" || other[0].hasPrefix("ERR") else { return "one \(kind.what) is found as another" }
    guard !kind.make.hasPrefix("item put"), kind.what != "token" else { return nil }
    let answer = made(second)
    guard !answer.hasPrefix("ERR exists"), !answer.hasPrefix("OK unchanged"), !answer.hasPrefix("OK replaced") else {
      return "one \(kind.what) takes the place of another"
    }
    return found(first) == own ? nil : "one \(kind.what) changes another"
  }

  /// Installs an app with the first name. The second name must not select the app in an admin's request, nor its group
  /// in a request of the app.
  private static func confusedApps(_ pair: NamePair, _ second: String, _ start: Life) -> String? {
    var life = start
    let app = Text(pair.first)
    life.install([app: Manifest("org.v", groups: [app])])
    if life.answer("get device app=\(second)", as: root)[0].hasPrefix("OK") { return "one app is named as another" }
    if life.answer("app forget \(second)", as: root)[0].hasPrefix("ERR conflict") {
      return "one app is forgotten as another"
    }
    let answer = life.answer("item find group=\(second)", as: peer(app))
    return answer[0].hasPrefix("ERR denied") || answer[0].hasPrefix("ERR syntax")
      || answer[0].hasPrefix("ERR bad-argument")
      ? nil : "one group is used as another"
  }

  private static func confusedClaims(_ first: String, _ second: String, _ start: Life) -> String? {
    var life = start
    let alice = alice.session(1)
    guard life.answer("version claim \(first)", as: alice) == ["OK first"] else { return nil }
    guard life.answer("version claim \(first)", as: alice) == ["OK again"] else { return "a claim is forgotten" }
    let other = life.answer("version claim \(second)", as: alice)[0]
    return other == "OK first" || other.hasPrefix("ERR") ? nil : "one claim is another"
  }

  /// Parses `get key` with both names. The commands must differ, because the key is derived from the command.
  private static func confusedKeys(_ first: String, _ second: String) -> String? {
    guard let first = Life.command("get key \(first)"), let second = Life.command("get key \(second)") else {
      return nil
    }
    return first == second ? "one key is another" : nil
  }

  @Test func `row 40b: similar letters are not accepted in verbs, levels, topics and attribute names`() {
    let twins: [Character: [String]] = [
      "k": ["\u{212a}"], "s": ["\u{17f}", "\u{15b}"], "i": ["\u{131}", "\u{130}", "i\u{307}"],
      "a": ["\u{430}", "\u{ff41}", "a\u{301}"], "e": ["\u{435}", "e\u{200d}"], "o": ["\u{43e}", "0"],
    ]
    var life = Life()
    _ = life.answer("item put service=s account=a data=eA== group=g", as: root)
    for line in [
      "item read service=s account=a group=g", "get device", "token list", "devices", "app list",
      "version history of=os",
      "resolve \(given(1))", "check a", "history device", "renew device dry-run=yes", "account", "whoami",
      "unsubscribe item",
    ] {
      let right = life.answer(line, as: root)
      for (place, letter) in line.enumerated() {
        let start = line.index(line.startIndex, offsetBy: place)
        let isValue = line[..<start].split(separator: " ").last?.contains("=") == true || line[..<start].hasSuffix("=")
        for twin in twins[letter] ?? [] where !isValue && !line.hasPrefix("check") && !line.hasPrefix("resolve") {
          let other = line[..<start] + twin + line[line.index(after: start)...]
          #expect(Life.command(String(other)) == nil, "\(other)")
        }
      }
      // ASCII letters are accepted in either case.
      let loud = line.split(separator: " ").map { $0.contains("=") || $0.contains("-") ? String($0) : $0.uppercased() }
      #expect(life.answer(loud.joined(separator: " "), as: root).last == right.last, "\(line)")
    }
  }
}
