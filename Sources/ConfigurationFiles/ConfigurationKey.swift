/// The configuration of a program. A new value has the defaults.
package protocol ProgramConfiguration: SendableMetatype {
  init()
  /// The settings that exist.
  static var keys: [ConfigurationKey<Self>] { get }
}

/// One setting of a configuration file.
package struct ConfigurationKey<Configuration: ProgramConfiguration>: Sendable {
  /// The section, without brackets.
  package let section: String
  /// The name, in systemd's spelling.
  package let name: String
  /// The allowed values, as a text for people.
  package let allowed: String
  /// Stores a value, and returns false if it is not allowed. An empty value means the default, or clears a list, unless
  /// the setting has another use for it.
  package let set: @Sendable (inout Configuration, String) -> Bool

  package init(
    section: String, name: String, allowed: String, set: @escaping @Sendable (inout Configuration, String) -> Bool
  ) {
    self.section = section
    self.name = name
    self.allowed = allowed
    self.set = set
  }

  /// Creates a setting with a fixed list of values.
  package static func choice<Value: RawRepresentable<String> & CaseIterable & SendableMetatype>(
    _ section: String, _ name: String, _ path: any WritableKeyPath<Configuration, Value> & Sendable
  ) -> Self {
    let allowed = Value.allCases.map(\.rawValue).joined(separator: ", ")
    return parsed(section, name, allowed, path) { Value(rawValue: $0) }
  }

  /// Creates a setting with the values yes and no.
  package static func flag(
    _ section: String, _ name: String, _ path: any WritableKeyPath<Configuration, Bool> & Sendable
  ) -> Self {
    parsed(section, name, "yes, no", path) { $0 == "yes" ? true : $0 == "no" ? false : nil }
  }

  /// Creates a setting with a number.
  package static func number(
    _ section: String, _ name: String, _ range: ClosedRange<Int>,
    _ path: any WritableKeyPath<Configuration, Int> & Sendable
  ) -> Self {
    measured(section, name, range, "\(range.lowerBound) to \(range.upperBound)", path) { decimal($0) }
  }

  /// Creates a setting with a number of bytes.
  package static func size(
    _ section: String, _ name: String, _ range: ClosedRange<Int>, _ allowed: String,
    _ path: any WritableKeyPath<Configuration, Int> & Sendable
  ) -> Self {
    measured(section, name, range, "\(allowed), in bytes or with K, M or G", path) { text in
      // As in systemd, the suffixes mean powers of 1,024.
      multiple(text, [("K", 1_024), ("M", 1_048_576), ("G", 1_073_741_824)])
    }
  }

  /// Creates a setting with a duration, which is stored in seconds.
  package static func duration(
    _ section: String, _ name: String, _ range: ClosedRange<Int>, _ allowed: String,
    _ path: any WritableKeyPath<Configuration, Int> & Sendable
  ) -> Self {
    measured(section, name, range, "\(allowed), in seconds or with s, min, h or d", path) { text in
      multiple(text, [("s", 1), ("min", 60), ("h", 3_600), ("d", 86_400)])
    }
  }

  private static func measured(
    _ section: String, _ name: String, _ range: ClosedRange<Int>, _ allowed: String,
    _ path: any WritableKeyPath<Configuration, Int> & Sendable, _ parse: @escaping @Sendable (String) -> Int?
  ) -> Self {
    parsed(section, name, allowed, path) { parse($0).flatMap { range.contains($0) ? $0 : nil } }
  }

  private static func parsed<Value>(
    _ section: String, _ name: String, _ allowed: String,
    _ path: any WritableKeyPath<Configuration, Value> & Sendable, _ parse: @escaping @Sendable (String) -> Value?
  ) -> Self {
    Self(section: section, name: name, allowed: allowed) { result, text in
      guard let value = text.isEmpty ? Configuration()[keyPath: path] : parse(text) else { return false }
      result[keyPath: path] = value
      return true
    }
  }

  /// Parses digits, without sign or white space.
  private static func decimal(_ text: some StringProtocol) -> Int? {
    text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") } ? Int(text) : nil
  }

  /// Parses a number with one of these units, or without any.
  private static func multiple(_ text: String, _ units: [(suffix: String, factor: Int)]) -> Int? {
    let unit = units.last { text.hasSuffix($0.suffix) } ?? ("", 1)
    guard let number = decimal(text.dropLast(unit.suffix.count)) else { return nil }
    let (product, overflows) = number.multipliedReportingOverflow(by: unit.factor)
    return overflows ? nil : product
  }
}

/// A configuration that was read, with the warnings about it.
package struct LoadedConfiguration<Configuration: ProgramConfiguration> {
  /// The configuration.
  package let configuration: Configuration
  /// The warnings, each with its place.
  package let warnings: [String]

  package init(configuration: Configuration, warnings: [String]) {
    self.configuration = configuration
    self.warnings = warnings
  }

  /// Reads a configuration.
  ///
  /// - Parameters:
  ///   - search: the files to read.
  ///   - file: the only file to read instead, which must exist; nil for none.
  ///   - limit: the maximum length of a file in bytes.
  /// - Throws: the first value that is not allowed, with its file, its line and the allowed values. No setting takes
  ///   effect then.
  package init(_ search: ConfigurationSearch, file: String?, limit: Int) throws(ConfigurationFailure) {
    guard let file else {
      try self.init(try search.settings(limit: limit))
      return
    }
    guard let settings = try ConfigurationSearch.settings(ofFile: file, limit: limit) else {
      throw ConfigurationFailure(place: file, reason: "there is no such file")
    }
    try self.init(settings)
  }

  private init(_ settings: [Setting]) throws(ConfigurationFailure) {
    var configuration = Configuration()
    var warnings: [String] = []
    for setting in settings {
      guard let key = Configuration.keys.first(where: { $0.section == setting.section && $0.name == setting.name })
      else {
        warnings.append("\(setting.place): unknown setting [\(setting.section)] \(setting.name)=; it is ignored")
        continue
      }
      guard key.set(&configuration, setting.value) else {
        throw ConfigurationFailure(
          place: "\(setting.place)",
          reason: "[\(key.section)] \(key.name)= cannot be '\(setting.value)'; allowed: \(key.allowed)")
      }
    }
    self.init(configuration: configuration, warnings: warnings)
  }
}
