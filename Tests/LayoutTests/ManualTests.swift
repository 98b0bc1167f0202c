import Doctor
import Foundation
import IdentityWire
import Testing

/// Tests of the parts of the manual that are generated from tables.
@Suite(.serialized) struct ManualTests {
  /// Whether to rewrite the generated parts instead of comparing them.
  private let updates = ProcessInfo.processInfo.environment["IDENTITYD_UPDATE_MANUAL"] != nil

  /// Returns a list of verbs in mdoc(7).
  private func list(of verbs: [Verb.Declaration]) -> String {
    var text = ".Bl -tag -width Ds\n"
    for verb in verbs {
      text += ".It Ic \(escaped(verb.words))"
      // Not `Op`, which would enclose the rest of its line.
      for operand in verb.operands {
        text += operand.isOptional ? " Oo Ar \(operand.name) Oc" : " Ar \(operand.name)"
      }
      for attribute in verb.attributes {
        let suffix = attribute.suffix.map { " Ns Ar \($0)" } ?? ""
        let plain = "Cm \(attribute.name)\(suffix) Ns = Ns Ar \(attribute.value)"
        text += attribute.isRequired ? " \(plain)" : " Oo \(plain) Oc"
        text += attribute.suffix == nil ? "" : " Ns ..."
      }
      text += "\n\(escaped(verb.summary))\n"
      text += ".Bd -literal -offset indent -compact\n"
      for example in verb.examples {
        text += "> \(escaped(example.request))\n"
        for line in example.reply { text += "\(escaped(line))\n" }
      }
      text += ".Ed\n"
    }
    return text + ".El\n"
  }

  /// Escapes backslashes, dashes and a leading dot or quote, so that mandoc shows the text unchanged.
  private func escaped(_ text: String) -> String {
    let plain = text.replacing("\\", with: "\\e").replacing("-", with: "\\-").replacing("…", with: "\\&...")
    return plain.hasPrefix(".") || plain.hasPrefix("'") ? "\\&\(plain)" : plain
  }

  /// The list of metrics in mdoc(7).
  private var metrics: String {
    lists(Metric.all, of: "metrics", \.audience) { metric in
      let labels = metric.labels.isEmpty ? "" : " Pq Va \(metric.labels.joined(separator: " , "))"
      let kind = metric.kind.rawValue.capitalized
      return ".It Va \(escaped(metric.name))\(labels)\n\(kind).\n\(sentences(metric.summary))"
    }
  }

  /// The list of the rows of `status` in mdoc(7).
  private var statusRows: String {
    lists(StatusRow.all, of: "rows", \.audience) { row in
      ".It Va \(escaped(row.name))\n\(sentences(row.summary))"
    }
  }

  /// Returns a list for each audience, with a line above it that names the audience.
  private func lists<Element>(
    _ elements: [Element], of noun: String, _ audience: (Element) -> RowAudience, _ entry: (Element) -> String
  ) -> String {
    var text = ""
    for reader in RowAudience.allCases {
      let own = elements.filter { audience($0) == reader }
      guard !own.isEmpty else { continue }
      let readers =
        switch reader {
        case .everybody: "Every peer is told of these \(noun):"
        case .monitors: "Only a peer that may monitor the daemon is told of these \(noun):"
        case .sharingMonitors:
          "Only such a peer is told of these \(noun), and only if it is an admin or its app shares the device identifier:"
        }
      text += "\(readers)\n.Bl -tag -width Ds\n\(own.map(entry).joined()).El\n.Pp\n"
    }
    return String(text.dropLast(".Pp\n".count))
  }

  /// Returns the text with each sentence on its own line.
  private func sentences(_ text: String) -> String { escaped(text).replacing(". ", with: ".\n") + "\n" }

  @Test(arguments: ["packaging/man/identityctl.1", "packaging/man/identityd-protocol.7"])
  func `the manual lists the verbs of the table`(path: String) throws {
    try compare(list(of: VerbTable.verbs.map(\.declaration)), with: "VERBS", in: path)
  }

  @Test func `the manual of the fleet's service lists the requests of the table`() throws {
    let verbs = list(of: ControlVerb.allCases.map(\.declaration))
    try compare(verbs, with: "REQUESTS", in: "packaging/man/identity-fleet.8")
  }

  @Test func `the manual lists the metrics of the table`() throws {
    try compare(metrics, with: "METRICS", in: "packaging/man/identityd-protocol.7")
  }

  @Test func `the manual lists the rows of status with their audiences`() throws {
    try compare(statusRows, with: "STATUS", in: "packaging/man/identityd-protocol.7")
  }

  @Test func `the manual lists the checks of the table`() throws {
    var list = ".Bl -tag -width Ds\n"
    for check in Check.all {
      list += ".It Cm \(check.name.replacing("-", with: "\\-"))\n\(escaped(check.summary))\n"
      list += "Facts: \(escaped(check.facts.map(\.name).joined(separator: ", "))).\n"
    }
    try compare(list + ".El\n", with: "CHECKS", in: "packaging/man/identityctl.1")
  }

  /// Compares a generated part of a page with its table, or rewrites it.
  private func compare(_ generated: String, with name: String, in path: String) throws {
    let begin = ".\\\" BEGIN \(name)\n"
    let end = ".\\\" END \(name)\n"
    let page = try Tree.text(path)
    let start = try #require(page.range(of: begin))
    let finish = try #require(page.range(of: end))
    let current = String(page[start.upperBound..<finish.lowerBound])
    if updates {
      let new = page[..<start.upperBound] + generated + page[finish.lowerBound...]
      try Data(new.utf8).write(to: Tree.root.appending(path: path))
    } else {
      #expect(current == generated, "run the tests once with IDENTITYD_UPDATE_MANUAL=1")
    }
  }

  @Test func `the manual lists every exit status of the client`() throws {
    let page = try Tree.text("packaging/man/identityctl.1")
    for code in ErrorCode.allCases {
      let name = code.rawValue.replacing("-", with: "\\-")
      #expect(page.contains("\(code.exitStatus)"), "\(code)")
      #expect(page.contains(name) || page.contains(code.rawValue), "\(code)")
    }
  }

  @Test func `the manual lists every kind of log entry, and no other`() throws {
    let page = Set(try Tree.text("packaging/man/identityd.8").matches(of: /\.It ([0-9a-f]{32})\s/).map { String($0.1) })
    let sources = Set(
      try Tree.text("Sources/IdentityServer/Log/Log.swift").matches(of: /"([0-9a-f]{32})"/).map { String($0.1) })
    #expect(page == sources)
    #expect(page.count > 10)
  }

  @Test func `the script of an RPM in the manual is that of the example`() throws {
    let page = try Tree.text("packaging/man/identityd.app.5").replacing("\\-", with: "-")
    let specification = try Tree.text("packaging/examples/app/greeter.spec")
    let script = try #require(specification.range(of: "%postun\n").map { specification[$0.lowerBound...] })
    let lines = script.split(separator: "\n").filter { !$0.hasPrefix("#") }.joined(separator: "\n")
    #expect(page.contains(".Bd -literal -offset indent\n\(lines)\n.Ed\n"), "\(lines)")
  }

  @Test func `the manual describes every setting`() throws {
    let page = try Tree.text("packaging/man/identityd.conf.5")
    let table = try Tree.text("Sources/identityd/ConfigurationKeys.swift")
    for match in table.matches(of: /(?:name: |(?:choice|number|size)\("[A-Za-z]+", )"([A-Za-z]+)"/) {
      #expect(page.contains(match.1), "\(match.1)")
    }
  }

  @Test func `the manual describes every setting of the fleet, and no other`() throws {
    let page = try Tree.text("packaging/man/identity-fleet.conf.5")
    let table = try Tree.text("Sources/FleetService/Configuration/FleetConfigurationKeys.swift")
    let names = table.matches(of: /(?:name: |(?:choice|flag|duration)\("Fleet", |path\()"([A-Za-z0-9]+)"/).map(\.1)
    #expect(names.count > 10)
    #expect(page.matches(of: #/\n\.It Va ([A-Za-z0-9]+) Ns = Ns /#).map(\.1).sorted() == names.sorted())
  }
}
