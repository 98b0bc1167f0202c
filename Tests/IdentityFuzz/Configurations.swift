import ConfigurationFiles

/// The content of `identityd.conf`, up to the table of settings. Each setting must be on its line of the file.
final class ConfigurationTarget: FuzzTarget {
  init() throws {}

  func run(_ input: [UInt8]) throws {
    // A byte order mark is not part of the text, even after white space.
    let mark: [UInt8] = [0xef, 0xbb, 0xbf]
    let indented = input.drop { $0 != UInt8(ascii: "\n") && Self.isSpace($0) }
    let text = indented.starts(with: mark) ? indented.dropFirst(mark.count) : indented
    let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let settings: [Setting]
    do throws(ConfigurationFailure) {
      settings = try INIFile.parse(input, file: "identityd.conf")
    } catch {
      guard let mark = error.place.lastIndex(of: ":") else { return }
      let line = Int(error.place[error.place.index(after: mark)...])
      return try require((1...lines.count).contains(line ?? 0), "\(error) is not on one of \(lines.count) lines")
    }
    var last = 0
    for setting in settings {
      try require(setting.place.line > last && setting.place.line <= lines.count, "\(setting.place) follows \(last)")
      last = setting.place.line
      try check(setting, Array(lines[last - 1]))
      try require(section(above: last, lines) == setting.section, "\(setting) is not in its section")
    }
  }

  /// Checks that the line begins with the name, and that the value follows `=` or `:`.
  private func check(_ setting: Setting, _ line: [UInt8]) throws(Finding) {
    let text = line.drop { Self.isSpace($0) }
    try require(text.starts(with: setting.name.utf8), "\(setting) has another name")
    let rest = text.dropFirst(setting.name.utf8.count).drop { Self.isSpace($0) }
    try require(rest.first == UInt8(ascii: "=") || rest.first == UInt8(ascii: ":"), "\(setting) has no mark")
    try require(
      rest.dropFirst().drop { Self.isSpace($0) }.starts(with: setting.value.utf8), "\(setting) has another value")
  }

  /// Returns the last section that begins above a line, as libinih keeps its name (MAX_SECTION). No section of the
  /// daemon has so long a name.
  private func section(above line: Int, _ lines: [ArraySlice<UInt8>]) -> String {
    for candidate in lines.prefix(line - 1).reversed() {
      let text = candidate.drop { Self.isSpace($0) }
      guard text.first == UInt8(ascii: "["), let end = text.firstIndex(of: UInt8(ascii: "]")) else { continue }
      return String(decoding: text[(text.startIndex + 1)..<end].prefix(49), as: UTF8.self)
    }
    return ""
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }
}
