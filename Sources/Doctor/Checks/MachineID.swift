import LinuxSystem

/// The state of /etc/machine-id, without the machine-id itself.
struct MachineIDFacts: Sendable {
  /// The states of the file (machine-id(5)).
  enum Content: Equatable, Sendable {
    case good
    case missing, empty, uninitialized, malformed
    /// A machine-id that many machines have.
    case shared
    case unreadable(String)
  }

  let content: Content
  /// The remedy that restarts the daemon.
  let restart: Remedy
  /// The rows `device-origin` and `suspect` of `status`.
  var origin: String?
  var suspicion: String?
  /// Whether the daemon was reached and hides these rows from this user.
  var isUntold = false
}

extension MachineIDFacts {
  private static let path = "/etc/machine-id"

  /// Machine-ids that were shipped in system images: one of Linux Mint, reported there as bug 361.
  private static let known: Set<String> = ["b76cc7b1bbdc489e93909d2043031de8"]

  /// Gathers the facts.
  init(_ examination: Examination) {
    content = Self.content
    restart = examination.restart
    origin = examination.answers?["device-origin"]
    suspicion = examination.answers?["suspect"]
    isUntold = examination.answers?.hasAllRows == false
  }

  private static var content: Content {
    do {
      switch try ConfigurationAccess.read(path: path, limit: 4_096) {
      case .missing: return .missing
      case .masked: return .empty
      case .bytes(let bytes): return judge(bytes)
      }
    } catch {
      return .unreadable(SystemError.text(of: error.code))
    }
  }

  /// Judges the content of the file by the rules of libsystemd: 32 hexadecimal digits, with or without a line feed.
  static func judge(_ bytes: [UInt8]) -> Content {
    var digits = bytes
    if digits.last == UInt8(ascii: "\n") { digits.removeLast() }
    if digits.isEmpty { return .empty }
    let text = String(decoding: digits, as: UTF8.self)
    if text == "uninitialized" { return .uninitialized }
    guard digits.count == 32, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return .malformed }
    if text.allSatisfy({ $0 == "0" }) { return .empty }
    return known.contains(text.lowercased()) ? .shared : .good
  }

  /// The judgement of the facts.
  var finding: Finding {
    Finding(
      [fault, doubt].compactMap { $0 },
      skipped: isUntold ? Examination.untold("whether this may be a copy of another machine") : nil,
      facts: facts(("file", Self.path), ("state", state), ("device-origin", origin), ("suspect", suspicion)))
  }

  private var state: String {
    switch content {
    case .good: "good"
    case .missing: "missing"
    case .empty: "empty"
    case .uninitialized: "uninitialized"
    case .malformed: "malformed"
    case .shared: "known-bad"
    case .unreadable: "unreadable"
    }
  }

  private var fault: Finding.Fault? {
    let setUp = Remedy.root("systemd-machine-id-setup")
    // systemd-machine-id-setup keeps a file that looks like that of a first boot, so the file must be removed first.
    let remove = Remedy.root("rm", Self.path)
    switch content {
    case .good: return nil
    case .missing: return .failure("\(Self.path) is missing", setUp, restart)
    case .empty: return .failure("\(Self.path) is empty or all zero", setUp, restart)
    case .uninitialized:
      return .failure("\(Self.path) says 'uninitialized': the first boot was not completed", remove, setUp, restart)
    case .malformed:
      return .failure("\(Self.path) is not 32 hexadecimal digits", remove, setUp, restart)
    case .shared:
      // On some systems D-Bus has a copy, from which the new machine-id would be taken.
      return .failure(
        "\(Self.path) came with a system image, so other machines have the same machine-id",
        .root("rm", "-f", Self.path, "/var/lib/dbus/machine-id"), setUp, restart)
    case .unreadable(let why):
      return .failure("\(Self.path) cannot be read: \(why)", .root("chmod", "0444", Self.path))
    }
  }

  /// The warning for the row `suspect` (identityd(8), THE MACHINE).
  private var doubt: Finding.Fault? {
    guard let suspicion else { return nil }
    return .warning(
      "this may be a copy of another machine, and its identifiers were kept: \(suspicion)",
      .root("identityctl", "renew", "device"))
  }
}
