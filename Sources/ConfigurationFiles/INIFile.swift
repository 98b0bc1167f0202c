import CInih
import Glibc

/// One `name=value` of a systemd-style file, with its place.
package struct Setting: Equatable, Sendable {
  /// The section it stands in, without brackets.
  package let section: String
  /// Left of the `=`.
  package let name: String
  /// Right of the `=`, without white space around it.
  package let value: String
  /// Where it stands, for messages.
  package let place: Place
}

/// A file and a line in it, counted from 1.
package struct Place: Equatable, Sendable, CustomStringConvertible {
  /// The path of the file.
  package let file: String
  /// The line.
  package let line: Int

  /// `/etc/identityd/identityd.conf:7`.
  package var description: String { "\(file):\(line)" }
}

/// A file cannot be used, and why.
package struct ConfigurationFailure: Error, Equatable, Sendable, CustomStringConvertible {
  /// Where; without a line when the whole file is meant.
  package let place: String
  /// What is wrong, and what is allowed.
  package let reason: String

  /// Puts a failure together.
  package init(place: String, reason: String) {
    self.place = place
    self.reason = reason
  }

  /// `/etc/identityd/identityd.conf:7: what is wrong`.
  package var description: String { "\(place): \(reason)" }
}

/// Reads systemd-style INI files with libinih, which does not count lines by itself: the reader that feeds it does.
package enum INIFile {
  /// The longest line libinih takes, its end included, in bytes (INI_MAX_LINE).
  static let longestLine = 200

  /// Parses a file's content.
  ///
  /// - Throws: the first line that is neither a section, a setting, a comment nor blank, or is too long.
  package static func parse(_ content: [UInt8], file: String) throws(ConfigurationFailure) -> [Setting] {
    guard !content.contains(0), String(validating: content, as: UTF8.self) != nil else {
      throw ConfigurationFailure(place: file, reason: "this is not UTF-8 text")
    }
    let state = Parse(lines: content.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false), file: file)
    let argument = unsafe Unmanaged.passUnretained(state).toOpaque()
    let failedLine = withExtendedLifetime(state) {
      unsafe ini_parse_stream(
        { buffer, room, stream in unsafe Parse.from(stream)?.feed(buffer, room: Int(room)) },
        argument,
        { user, section, name, value in unsafe Parse.from(user)?.take(section, name, value) ?? 0 }, argument)
    }
    if let overlong = state.overlongLine {
      throw ConfigurationFailure(place: "\(file):\(overlong)", reason: "a line is at most \(longestLine - 2) bytes")
    }
    guard failedLine == 0 else {
      throw ConfigurationFailure(place: "\(file):\(failedLine)", reason: "this is neither [Section] nor Name=value")
    }
    return state.settings
  }

  /// What goes through libinih's two callbacks.
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

    /// Does as fgets(3) does: one line with its end, and nil when there is none left.
    func feed(_ buffer: UnsafeMutablePointer<CChar>?, room: Int) -> UnsafeMutablePointer<CChar>? {
      guard let buffer = unsafe buffer, line < lines.count else { return nil }
      // Without its indentation: libinih takes an indented line for more of the value above it, systemd does not. It is
      // whatever isspace(3) says, a form feed too.
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

    func take(
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
