import Doctor
import Foundation
import IdentityWire
import Testing
import identityctl

/// The JSON Schema of `identityctl --json`, which is generated from the tables.
struct JSONSchemaTests {
  private typealias Schema = [String: Any]

  private static func reference(_ name: String) -> Schema { ["$ref": "#/$defs/\(name)"] }

  private static func schema(of kind: Verb.Field.Kind) -> Schema {
    switch kind {
    case .word: ["type": "string"]
    case .base64: ["type": "string", "contentEncoding": "base64"]
    case .uuid: reference("uuid")
    case .time: reference("time")
    case .number: ["type": "number"]
    case .boolean: ["type": "boolean"]
    case .list: ["type": "array", "items": ["type": "string"]]
    case .document: ["type": "array", "items": ["type": "object"]]
    }
  }

  private static func schema(of field: Verb.Field) -> Schema {
    let plain = schema(of: field.kind)
    if field.prefix != nil { return ["type": "object", "additionalProperties": plain] }
    return field.isNullable ? ["anyOf": [plain, ["type": "null"]]] : plain
  }

  private static func named(_ schemas: [(String, Schema)]) -> Schema { Dictionary(uniqueKeysWithValues: schemas) }

  private static func object(_ properties: Schema, required: [String] = []) -> Schema {
    ["type": "object", "properties": properties].merging(required.isEmpty ? [:] : ["required": required]) { $1 }
  }

  private static func object(_ line: Verb.Line, _ more: Schema = [:]) -> Schema {
    let fields = named(line.fields.map { ($0.name, schema(of: $0)) })
    let required = line.fields.filter { !$0.isOptional }.map(\.name) + more.keys
    return object(fields.merging(more) { $1 }, required: required)
      .merging(line.isOpen ? ["additionalProperties": ["type": "string"]] : [:]) { $1 }
  }

  private static func list(_ items: Schema) -> Schema { ["type": "array", "items": items] }

  private static func schema(of answer: Verb.Answer) -> Schema {
    switch answer {
    case .object(let line), .properties(let line): object(line)
    case .list(let line): list(object(line))
    case .report(let line, let name, let row): object(line, [name: list(object(row))])
    case .status: status
    case .metrics: metrics
    case .either(_, let first, let second): ["anyOf": [schema(of: first), schema(of: second)]]
    }
  }

  private static var status: Schema {
    object(
      named(
        StatusRow.all.map { row in
          let value = schema(of: row.kind)
          return (row.name, (row.repeats ? list(value) : value).merging(["description": row.summary]) { $1 })
        }))
  }

  private static var metrics: Schema {
    object(
      named(
        Metric.all.map { metric in
          let number = schema(of: .number)
          let labels = named(metric.labels.map { ($0, schema(of: .word)) })
          let values: Schema =
            metric.kind == .histogram
            ? ["count": number, "sum": number, "buckets": ["type": "object", "additionalProperties": number]]
            : ["value": number]
          let isNumber = labels.isEmpty && metric.kind != .histogram
          let properties = labels.merging(values) { $1 }
          let series = isNumber ? number : object(properties, required: properties.keys.sorted())
          return (metric.name, (labels.isEmpty ? series : list(series)).merging(["description": metric.summary]) { $1 })
        }))
  }

  /// The definitions that belong to no verb.
  private static var others: Schema {
    [
      "uuid": [
        "description": "A UUID. The hyphens, the case and a prefix depend on --format.", "type": "string",
        "pattern": "^(urn:uuid:)?[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}$",
      ],
      "time": [
        "description": "A time in UTC (RFC 3339).", "type": "string",
        "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$",
      ],
      "error": object(
        ["error": object(["code": schema(of: .word), "message": schema(of: .word)], required: ["code", "message"])],
        required: ["error"]
      ).merging(["description": "An error of any command. The codes are in identityctl(1)."]) { $1 },
      "check-report": checkReport,
      "event": object(
        Verb.Line(
          [Verb.Field("sequence", .number), Verb.Field("topic", .word), Verb.Field("action", .word)],
          [Verb.Field("time", .time)], isOpen: true)
      ).merging(["description": "An event of monitor and wait, with its attributes."]) { $1 },
    ]
  }

  /// The document of `check` without a VALUE.
  private static var checkReport: Schema {
    let (text, texts) = (schema(of: .word), schema(of: .list))
    let textOrNull: Schema = ["anyOf": [text, ["type": "null"]]]
    let checks = Check.all.map { check in
      let facts = object(named(check.facts.map { ($0.name, schema(of: $0)) }))
      let result: Schema = ["enum": Finding.Result.allCases.map(\.rawValue)]
      let properties = ["name": ["const": check.name], "result": result, "reason": textOrNull, "facts": facts]
      return object(properties, required: properties.keys.sorted())
        .merging(["description": check.summary]) { $1 }
    }
    let faults = Finding.Result.allCases.filter { ![.ok, .skipped].contains($0) }.map(\.rawValue)
    let finding: Schema = [
      "check": ["enum": Check.all.map(\.name)], "result": ["enum": faults], "cause": text,
      "symptom-of": textOrNull, "mend": texts,
    ]
    let findings = object(finding, required: finding.keys.sorted())
    return object(
      ["ok": schema(of: .boolean), "checks": list(["anyOf": checks]), "findings": list(findings)],
      required: ["ok", "checks", "findings"]
    )
    .merging(["description": "The report of check without a VALUE."]) { $1 }
  }

  private static func document() throws -> String {
    // A command of the client with the words of a verb takes the place of the verb.
    let sent = VerbTable.verbs.filter { verb in
      !ClientCommand.all.contains { $0.words == verb.words && $0.answer != nil }
    }
    let verbs: [(String, Schema)] = sent.map { verb in
      let name = verb.words.replacing(" ", with: "-")
      return (name, schema(of: verb.answer).merging(["description": verb.summary, "title": verb.words]) { $1 })
    }
    let commands: [(String, Schema)] = ClientCommand.all.compactMap { command in
      command.answer.map { answer in
        let described = schema(of: answer).merging(["description": command.summary, "title": command.words]) { $1 }
        return (command.words.replacing(" ", with: "-"), described)
      }
    }
    let definitions = named(verbs + commands).merging(others) { $1 }
    let roots = verbs.map(\.0) + commands.map(\.0) + ["error", "event", "check-report"]
    let root: Schema = [
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "title": "The output of identityctl --json",
      "description":
        "The definition of a verb has its words, joined by hyphens. A later release may add properties.",
      "anyOf": roots.map(reference), "$defs": definitions,
    ]
    let data = try JSONSerialization.data(
      withJSONObject: root, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
    return String(decoding: data, as: UTF8.self) + "\n"
  }

  @Test func `the JSON Schema follows the tables of verbs, rows and metrics`() throws {
    let path = "packaging/identityctl.schema.json"
    let expected = try Self.document()
    if ProcessInfo.processInfo.environment["IDENTITYD_UPDATE_MANUAL"] != nil {
      try Data(expected.utf8).write(to: Tree.root.appending(path: path))
    }
    #expect(try Tree.text(path) == expected, "run the tests once with IDENTITYD_UPDATE_MANUAL=1")
  }

  @Test func `no definition of the schema hides another one`() {
    for verb in VerbTable.verbs { #expect(Self.others[verb.words] == nil, "\(verb.words)") }
  }

  @Test func `the names of a line do not repeat`() {
    func check(_ answer: Verb.Answer, _ words: String) {
      switch answer {
      case .object(let line), .list(let line), .properties(let line):
        #expect(Set(line.fields.map(\.name)).count == line.fields.count, "\(words)")
      case .report(let line, let name, let row):
        #expect(Set(line.fields.map(\.name) + [name]).count == line.fields.count + 1, "\(words)")
        check(.list(row), words)
      case .either(_, let first, let second):
        check(first, words)
        check(second, words)
      case .status, .metrics: break
      }
    }
    for verb in VerbTable.verbs { check(verb.answer, verb.words) }
  }
}
