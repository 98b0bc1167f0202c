package import IdentityCore

/// Texts in one field: for each, the length (2 bytes) and the text in UTF-8.
private func encoded(_ texts: [Text]) -> [UInt8] {
  texts.flatMap { UInt16(truncatingIfNeeded: $0.bytes.count).bigEndianBytes + $0.bytes }
}

/// Reads a number of texts from a field; nil for anything else, also for texts that may be in no answer.
private func decoded(_ bytes: [UInt8], _ count: Int) -> [Text]? {
  var rest = bytes[...]
  var texts: [Text] = []
  while !rest.isEmpty {
    guard texts.count < count, rest.count >= 2 else { return nil }
    let length = Int(UInt16(bigEndian: rest.prefix(2)))
    rest = rest.dropFirst(2)
    guard rest.count >= length else { return nil }
    guard let text = length == 0 ? "" : Text(validating: Array(rest.prefix(length))) else { return nil }
    texts.append(text)
    rest = rest.dropFirst(length)
  }
  return texts.count == count ? texts : nil
}

/// An app in a device's report.
package struct ReportedApp: Equatable, Sendable {
  /// The app.
  package let app: Text
  /// The version; empty if it is unknown.
  package let version: Text
  /// The build; empty if it is unknown.
  package let build: Text

  package init(app: Text, version: Text, build: Text) {
    self.app = app
    self.version = version
    self.build = build
  }

  /// Reads a field; nil for other bytes.
  package init?(_ field: [UInt8]) {
    guard let texts = decoded(field, 3), !texts[0].bytes.isEmpty else { return nil }
    self.init(app: texts[0], version: texts[1], build: texts[2])
  }

  /// The bytes of the field.
  package var field: [UInt8] { encoded([app, version, build]) }
}

/// A push token of a device.
package struct CarriedToken: Equatable, Sendable {
  /// The app and the provider, which have one token at a device.
  package struct Place: Hashable, Sendable {
    /// The app.
    package let app: Text
    /// The provider.
    package let provider: Text

    package init(app: Text, provider: Text) {
      self.app = app
      self.provider = provider
    }
  }

  /// The app and the provider.
  package let place: Place
  /// The environment; empty if the provider has none.
  package let environment: Text
  /// The topic; empty if the provider has none.
  package let topic: Text
  /// The token.
  package let value: Text

  package init(_ place: Place, environment: Text = "", topic: Text = "", value: Text) {
    self.place = place
    self.environment = environment
    self.topic = topic
    self.value = value
  }

  /// Reads a field; nil for other bytes.
  package init?(_ field: [UInt8]) {
    guard let texts = decoded(field, 5), !texts[0].bytes.isEmpty, !texts[1].bytes.isEmpty, !texts[4].bytes.isEmpty
    else { return nil }
    self.init(Place(app: texts[0], provider: texts[1]), environment: texts[2], topic: texts[3], value: texts[4])
  }

  /// The bytes of the field.
  package var field: [UInt8] { encoded([place.app, place.provider, environment, topic, value]) }
}

extension Fields {
  /// The apps of a report, one line each; nil if a field has another form.
  package var apps: [ReportedApp]? { whole(values(of: .app).map { ReportedApp($0) }) }

  /// Replaces the apps.
  package mutating func set(_ apps: [ReportedApp]) { set(.app, apps.map(\.field)) }

  /// The tokens of a device, or those that a sender found invalid. Nil if a field has another form, or if an app has two
  /// tokens of one provider.
  package func tokens(_ type: FieldType) -> [CarriedToken]? {
    guard let tokens = whole(values(of: type).map { CarriedToken($0) }) else { return nil }
    return Set(tokens.map(\.place)).count == tokens.count ? tokens : nil
  }

  /// Replaces the tokens.
  package mutating func set(_ type: FieldType, _ tokens: [CarriedToken]) { set(type, tokens.map(\.field)) }

  private func whole<Value>(_ values: [Value?]) -> [Value]? {
    let known = values.compactMap(\.self)
    return known.count == values.count ? known : nil
  }
}
