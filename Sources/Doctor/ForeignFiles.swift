import LinuxSystem

/// The files in the state directory that are none of the daemon's, which neither reads nor removes them.
struct ForeignFiles: Sendable {
  /// The names and lengths, in the order of the names.
  private var files: [(name: String, size: Int64)] = []

  /// The numbers of files that the texts name.
  private static let (mostNamed, mostMeasured) = (8, 4)

  /// No files, or none that this user may see.
  init() {}

  /// Examines a state directory.
  init(in folder: String) {
    let names = ((try? ConfigurationAccess.names(in: folder)) ?? nil) ?? []
    files = names.filter { !Self.isOwn($0) }.compactMap { name in
      ((try? PathStatus.of("\(folder)/\(name)", followsLink: false)) ?? nil).map { (name, $0.size) }
    }
  }

  /// Returns whether a name is one of the daemon's (identityd(8), THE STATE DIRECTORY). A draft, a log and a file that was
  /// set aside have the name of the file before a full stop or a hyphen.
  static func isOwn(_ name: String) -> Bool {
    ["identityd.db", "store.key", "master.key", "witness", "lock"].contains { own in
      name == own || name.hasPrefix("\(own).") || name.hasPrefix("\(own)-")
    }
  }

  /// The first files by name, and the length of all; nil if there are none.
  var text: String? {
    guard !files.isEmpty else { return nil }
    let named = files.prefix(Self.mostNamed).map(\.name).joined(separator: " ")
    let more = files.count > Self.mostNamed ? " and \(files.count - Self.mostNamed) more" : ""
    return "\(named)\(more), \(files.reduce(0) { $0 + $1.size } >> 10) KiB in all"
  }

  /// The longest files with their lengths; nil if there are none.
  var longest: String? {
    guard !files.isEmpty else { return nil }
    let longest = files.sorted { $0.size > $1.size }.prefix(Self.mostMeasured)
    return longest.map { "\($0.name) (\($0.size >> 10) KiB)" }.joined(separator: ", ")
  }
}
