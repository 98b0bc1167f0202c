import CInih
import Glibc

/// One `name=value` of a systemd-style file, with its place.
package struct Setting: Equatable, Sendable {
  /// The section of the setting, without brackets.
  package let section: String
  /// The name, left of the `=`.
  package let name: String
  /// The value, right of the `=`, without white space around it.
  package let value: String
  /// The place of the setting, for messages.
  package let place: Place
}

/// A line of a file.
package struct Place: Equatable, Sendable, CustomStringConvertible {
  /// The path of the file.
  package let file: String
  /// The number of the line, counted from 1.
  package let line: Int

  /// The place in the form `/etc/identityd/identityd.conf:7`.
  package var description: String { "\(file):\(line)" }
}

/// The reason why a configuration file cannot be used.
package struct ConfigurationFailure: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file with the line, or the file alone if the whole file is meant.
  package let place: String
  /// The fault, and the values that are allowed.
  package let reason: String

  package init(place: String, reason: String) {
    self.place = place
    self.reason = reason
  }

  /// The failure in the form `/etc/identityd/identityd.conf:7: reason`.
  package var description: String { "\(place): \(reason)" }
}

/// Parses systemd-style INI files with libinih.
///
/// libinih reports no line numbers of settings, so the function that feeds it lines counts them.
package enum INIFile {
  /// The size of libinih's line buffer in bytes, which holds a line, its line feed and a NUL (INI_MAX_LINE).
  static let longestLine = 200

  /// Parses the content of a file.
  ///
  /// - Throws: A failure if the content is not UTF-8 text. A failure with the line number if a line is too long, or is
  ///   neither a section, a setting, a comment nor blank.
  package static func parse(_ content: [UInt8], file: String) throws(ConfigurationFailure) -> [Setting] {
    guard !content.contains(0), String(validating: content, as: UTF8.self) != nil else {
      throw ConfigurationFailure(place: file, reason: "the file is not UTF-8 text")
    }
    let state = Parse(lines: content.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false), file: file)
    let argument = unsafe Unmanaged.passUnretained(state).toOpaque()
    let failedLine = withExtendedLifetime(state) {
      unsafe ini_parse_stream(
        { buffer, room, stream in unsafe Parse.from(stream)?.feed(buffer, room: Int(room)) },
        argument,
        { user, section, name, value in unsafe Parse.from(user)?.append(section, name, value) ?? 0 }, argument)
    }
    if let overlong = state.overlongLine {
      throw ConfigurationFailure(
        place: "\(file):\(overlong)", reason: "the line is longer than \(longestLine - 2) bytes")
    }
    guard failedLine == 0 else {
      throw ConfigurationFailure(place: "\(file):\(failedLine)", reason: "the line is neither [Section] nor Name=value")
    }
    return state.settings
  }

  /// The state of a parse, which libinih passes to both callbacks.
  private final class Parse {
    private let lines: [ArraySlice<UInt8>]
    private let file: String
    private var line = 0
    var settings: [Setting] = []
    var overlongLine: Int?

    init(lines: [ArraySlice<UInt8>], file: String) {
      self.lines = lines
      self.file = file
    }

    static func from(_ argument: UnsafeMutableRawPointer?) -> Parse? {
      unsafe argument.map { unsafe Unmanaged<Parse>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Writes the next line to the buffer as fgets(3) does; returns nil if there is none.
    func feed(_ buffer: UnsafeMutablePointer<CChar>?, room: Int) -> UnsafeMutablePointer<CChar>? {
      guard let buffer = unsafe buffer, line < lines.count else { return nil }
      // The indentation is removed, because libinih takes an indented line as the continuation of the previous value,
      // and systemd does not. Indentation is any white space in the sense of isspace(3), form feed included.
      let bytes = lines[line].drop { $0 == UInt8(ascii: " ") || (0x09...0x0d).contains($0) }
      line += 1
      guard bytes.count + 2 <= min(room, INIFile.longestLine) else {
        overlongLine = overlongLine ?? line
        return nil
      }
      for (offset, byte) in bytes.enumerated() { unsafe buffer[offset] = CChar(bitPattern: byte) }
      unsafe buffer[bytes.count] = CChar(UInt8(ascii: "\n"))
      unsafe buffer[bytes.count + 1] = 0
      return unsafe buffer
    }

    /// Appends a setting; returns 0, which ends the parse, if a part of it is missing.
    func append(
      _ section: UnsafePointer<CChar>?, _ name: UnsafePointer<CChar>?, _ value: UnsafePointer<CChar>?
    ) -> Int32 {
      guard let section = unsafe section, let name = unsafe name, let value = unsafe value else { return 0 }
      let setting = unsafe Setting(
        section: String(cString: section), name: String(cString: name), value: String(cString: value),
        place: Place(file: file, line: line))
      settings.append(setting)
      return 1
    }
  }
}
