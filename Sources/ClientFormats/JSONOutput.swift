package import IdentityClient
package import IdentityCore
package import IdentityWire

/// Formats answers, events and errors as JSON (RFC 8259), one document with a line feed each.
///
/// The declaration of the verb (``Verb/answer``) decides the names and the types. The document of an answer is an object
/// for one line, and an array of objects for rows. Attributes without a declaration, such as those of a later daemon, are
/// strings.
package struct JSONOutput {
  private let format: UUIDFormat

  package init(_ format: UUIDFormat) { self.format = format }

  /// Returns the document of an answer to the words of a request.
  ///
  /// - Parameter declared: the declaration of the answer, if the request is none of the verbs.
  package func document(
    _ answer: DaemonConnection.Answer, to request: [String], _ declared: Verb.Answer? = nil
  ) -> String {
    switch answer.final {
    case .error(let code, let text): Self.error(code: "\(code)", message: "\(text)")
    case .ok(let content), .row(let content), .event(_, let content):
      value(content, answer.rows, (declared ?? VerbTable.verb(of: request)?.answer)?.answer(to: request)) + "\n"
    }
  }

  /// Returns the document of an error: `{"error":{"code":…,"message":…}}`.
  package static func error(code: String, message: String) -> String {
    var error = JSONObject()
    error.add("code", WordEncoder.quoted(code))
    error.add("message", WordEncoder.quoted(message))
    return "{\"error\":\(error.text)}\n"
  }

  /// Returns the document of an event: its sequence number, epoch, time, topic and action, then its attributes.
  ///
  /// - Parameter epoch: the epoch of the sequence number; nil if unknown.
  package func document(_ event: ReceivedEvent, epoch: Text?) -> String {
    var object = JSONObject()
    object.add("sequence", "\(event.sequence)")
    // In no other form than the daemon's: the epoch is sent back to it.
    if let epoch { object.add("epoch", WordEncoder.quoted("\(epoch)")) }
    if let time = event.attributes.first(where: { $0.name == "time" }) { object.add("time", string(time.value)) }
    let line = Verb.Line([Verb.Field("topic", .word), Verb.Field("action", .word)])
    add(event.words, event.attributes, line, to: &object)
    return object.text + "\n"
  }

  // MARK: Answers

  private func value(_ final: ReplyLine.Content, _ rows: [ReplyLine.Content], _ answer: Verb.Answer?) -> String {
    switch answer {
    case .object(let line): document(final, line) ?? object(final, line)
    case .list(let line): list(rows, line)
    case .report(let line, let name, let row): object(final, line) { $0.add(name, list(rows, row)) }
    case .properties(let line): object(joined(rows), line)
    case .status: status(rows)
    case .metrics: metrics(rows)
    // A verb of a later daemon.
    case .either, nil: rows.isEmpty ? object(final, Verb.Line()) : list(rows, Verb.Line())
    }
  }

  /// Returns the document that is the only value of an answer; nil for any other answer.
  private func document(_ content: ReplyLine.Content, _ line: Verb.Line) -> String? {
    guard case .document? = line.words.first?.kind, let text = content.words.first else { return nil }
    return JSONValue(parsing: text.bytes)?.json
  }

  private func joined(_ rows: [ReplyLine.Content]) -> ReplyLine.Content {
    var content = ReplyLine.Content()
    content.attributes = rows.flatMap(\.attributes)
    return content
  }

  private func list(_ rows: [ReplyLine.Content], _ line: Verb.Line) -> String {
    JSONObject.array(rows.map { object($0, line) })
  }

  private func object(
    _ content: ReplyLine.Content, _ line: Verb.Line, _ more: (inout JSONObject) -> Void = { _ in }
  ) -> String {
    var object = JSONObject()
    add(content.words, content.attributes, line, to: &object)
    more(&object)
    return object.text
  }

  /// Adds the words and attributes of a line. Words without a declaration become the array `words`.
  private func add(
    _ words: [Text], _ attributes: [ReplyLine.Attribute], _ line: Verb.Line, to object: inout JSONObject
  ) {
    for (word, field) in zip(words, line.words) { object.add(field.name, value(word, field)) }
    let others = words.dropFirst(line.words.count)
    if !others.isEmpty { object.add("words", JSONObject.array(others.map(string))) }
    for attribute in attributes {
      let name = "\(attribute.name)"
      if let field = line.attributes.first(where: { $0.prefix.map(name.hasPrefix) == true }) {
        object.add(field.name, members(of: attributes, field))
      } else if let field = line.attributes.first(where: { $0.name == name }) {
        object.add(name, value(attribute.value, field))
      } else {
        object.add(name, string(attribute.value))
      }
    }
  }

  /// Returns an object of the attributes whose names begin with the prefix of a field.
  private func members(of attributes: [ReplyLine.Attribute], _ field: Verb.Field) -> String {
    let prefix = field.prefix ?? ""
    var object = JSONObject()
    for attribute in attributes where "\(attribute.name)".hasPrefix(prefix) {
      object.add(String("\(attribute.name)".dropFirst(prefix.count)), WordEncoder.quoted("\(attribute.value)"))
    }
    return object.text
  }

  // MARK: Status and metrics

  private func status(_ rows: [ReplyLine.Content]) -> String {
    var values = NamedValues()
    for attribute in rows.flatMap(\.attributes) {
      let row = StatusRow.all.first { Text($0.name) == attribute.name }
      values.add("\(attribute.name)", row.map { value(attribute.value, $0.kind) } ?? string(attribute.value))
    }
    let repeating = Set(StatusRow.all.filter(\.repeats).map(\.name))
    return object(of: values) { repeating.contains($0) || values[$0].count > 1 }
  }

  private func metrics(_ rows: [ReplyLine.Content]) -> String {
    var values = NamedValues()
    for row in rows {
      if let sample = MetricSample(row) {
        values.add(sample.metric.name, value(sample))
      } else if let head = row.attributes.first {
        values.add("\(head.name)", object(row, Verb.Line()))
      }
    }
    // Metrics of a later daemon may have labels.
    let single = Set(Metric.all.filter(\.labels.isEmpty).map(\.name))
    return object(of: values) { !single.contains($0) }
  }

  /// Returns an object of values, each alone or in an array.
  private func object(of values: NamedValues, isArray: (String) -> Bool) -> String {
    var object = JSONObject()
    for name in values.names {
      object.add(name, isArray(name) ? JSONObject.array(values[name]) : values[name].first ?? "null")
    }
    return object.text
  }

  /// Returns the value of a series: a number alone if it has no labels, otherwise an object.
  private func value(_ sample: MetricSample) -> String {
    var object = JSONObject()
    for label in sample.labels { object.add(label.name, WordEncoder.quoted("\(label.value)")) }
    switch sample.value {
    case .number(let number):
      guard !sample.labels.isEmpty else { return value(Text(number), .number) }
      object.add("value", value(Text(number), .number))
    case .histogram(let count, let sum, let buckets):
      object.add("count", "\(count)")
      object.add("sum", value(Text(sum), .number))
      var bounds = JSONObject()
      for bucket in buckets { bounds.add(bucket.bound, "\(bucket.count)") }
      object.add("buckets", bounds.text)
    }
    return object.text
  }

  // MARK: Values

  private func value(_ text: Text, _ field: Verb.Field) -> String {
    field.isNullable && text.isEmpty ? "null" : value(text, field.kind)
  }

  /// Returns a value in JSON, in which a UUID has the chosen format.
  private func value(_ text: Text, _ kind: Verb.Field.Kind) -> String {
    kind == .uuid ? string(text) : kind.json(of: text)
  }

  /// Returns a string in which hidden characters are escaped, and in which a UUID has the chosen format.
  private func string(_ text: Text) -> String { WordEncoder.quoted(format.apply(to: text)) }
}

/// Values by name, with the names in the order in which they came first.
struct NamedValues {
  private(set) var names: [String] = []
  private var values: [String: [String]] = [:]

  mutating func add(_ name: String, _ value: String) {
    if values[name] == nil { names.append(name) }
    values[name, default: []].append(value)
  }

  subscript(name: String) -> [String] { values[name] ?? [] }
}
