import IdentityClient
import IdentityCore
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
  /// The way to the daemon for a command of the client.
  var client = ClientAddress.system
  /// The rows `device-origin`, `suspect` and `machine-change` of `status`.
  var origin: String?
  var suspicion: String?
  var change: String?
  /// Whether the daemon was reached and hides these rows from this user.
  var isUntold = false
  /// The daemon's comparison of the file with its machine; nil if the file is bad or the daemon was not asked.
  var comparison: MachineIDCandidate.Comparison?
  /// A copy of a machine-id that the daemon knows. Searched for only if the daemon does not know the file's.
  var copy: (candidate: MachineIDCandidate, comparison: MachineIDCandidate.Comparison)?
}

extension MachineIDFacts {
  static let path = "/etc/machine-id"

  /// Machine-ids that were shipped in system images: one of Linux Mint, reported there as bug 361.
  private static let known: Set<String> = ["b76cc7b1bbdc489e93909d2043031de8"]

  /// Gathers the facts.
  init(_ examination: Examination) {
    let (content, bytes) = Self.content
    self.content = content
    restart = examination.restart
    client = examination.client
    origin = examination.answers?["device-origin"]
    suspicion = examination.answers?["suspect"]
    change = examination.answers?["machine-change"]
    isUntold = examination.answers?.hasAllRows == false
    // Only an admin may ask the daemon about a machine-id.
    guard examination.answers?.peer["admin"] == "yes" else { return }
    let compare = examination.compareMachine
    if content == .good { comparison = compare(String(decoding: bytes.prefix(32), as: UTF8.self)) }
    if content != .good || comparison == .unknown { copy = MachineIDCandidate.known(compare) }
  }

  private static var content: (Content, [UInt8]) {
    do {
      switch try ConfigurationAccess.read(path: path, limit: 4_096) {
      case .missing: return (.missing, [])
      case .masked: return (.empty, [])
      case .bytes(let bytes): return (judge(bytes), bytes)
      }
    } catch {
      return (.unreadable(SystemError.text(of: error.code)), [])
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
      [fault, replacement, doubt, renewal].compactMap { $0 },
      skipped: isUntold ? Examination.untold("whether this may be a copy of another machine") : nil,
      facts: facts(
        ("file", Self.path), ("state", state), ("device-origin", origin), ("suspect", suspicion),
        ("machine-change", change)))
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
    // systemd-machine-id-setup keeps a file that looks like that of a first boot, so the file must be removed first.
    let remove = Remedy.root("rm", Self.path)
    switch content {
    case .good: return nil
    case .missing: return bad("\(Self.path) is missing")
    case .empty: return bad("\(Self.path) is empty or all zero")
    case .uninitialized:
      return bad("\(Self.path) says 'uninitialized': the first boot was not completed", remove)
    case .malformed:
      return bad("\(Self.path) is not 32 hexadecimal digits", remove)
    case .shared:
      // On some systems D-Bus has a copy, from which the new machine-id would be taken.
      return bad(
        "\(Self.path) came with a system image, so other machines have the same machine-id",
        .root("rm", "-f", Self.path, "/var/lib/dbus/machine-id"))
    case .unreadable(let why):
      return .failure("\(Self.path) cannot be read: \(why)", .root("chmod", "0444", Self.path))
    }
  }

  /// Returns the fault of a bad file. The remedy restores a machine-id that the daemon knows, or else makes a new one.
  private func bad(_ cause: String, _ removal: Remedy...) -> Finding.Fault {
    switch copy {
    case (let candidate, .current)?:
      return .failure("\(cause); \(candidate.place) has a copy of the machine-id", mend: [candidate.remedy])
    case (let candidate, _)?:
      return .failure(
        "\(cause); \(candidate.place) has a machine-id of before, whose identifiers come back with it",
        mend: [candidate.remedy, restart])
    case nil:
      return .failure(
        "\(cause). Restore it from a backup if there is one; \(client.named("machine", "compare")) tests a machine-id. "
          + "With a new machine-id, identityd renews every identifier at its next start",
        mend: removal + renew(.root("systemd-machine-id-setup")))
    }
  }

  /// The warning for a valid file that the running daemon does not know. Its next start would renew every identifier.
  private var replacement: Finding.Fault? {
    guard comparison == .unknown else { return nil }
    let cause = "\(Self.path) changed since identityd started, and identityd does not know the new machine-id"
    guard let (candidate, comparison) = copy else {
      return .warning(
        "\(cause). Restore the former one from a backup if there is one; \(client.named("machine", "compare")) tests a "
          + "machine-id. At its next start identityd renews every identifier (OnMachineChange=)",
        mend: renew())
    }
    return .warning(
      "\(cause); \(candidate.place) has one that it knows",
      mend: [candidate.remedy] + (comparison == .current ? [] : [restart]))
  }

  /// Returns the commands that let the daemon renew every identifier, and that acknowledge the change.
  private func renew(_ first: Remedy...) -> [Remedy] { first + [restart, acknowledge] }

  private var acknowledge: Remedy { client.remedy("machine", "acknowledge") }

  /// The warning for the row `suspect` (identityd(8), THE MACHINE).
  ///
  /// Both machines show it, and the remedy of one harms the other: an acknowledgement on the copy lets a later renewal
  /// there end the identifier of the original. So the command only shows more.
  private var doubt: Finding.Fault? {
    guard let suspicion else { return nil }
    guard !suspicion.hasPrefix(Cause.cloned.rawValue) else {
      return .warning(
        "another machine speaks for this device, because one is a copy of the other: \(suspicion). On the copy, "
          + "\(client.named("renew", "device")) gives it an identifier of its own, and the original keeps its own and its place "
          + "in the account. On the original, and only there, run \(client.named("machine", "acknowledge"))",
        mend: [client.remedy("history", "device")])
    }
    return .warning(
      "this may be a copy of another machine, and its identifiers were kept: \(suspicion). If it is a copy, "
        + "\(client.named("renew", "device")) gives it an identifier of its own, and the original keeps its own. If it is the "
        + "same machine, as after a repair, run \(client.named("machine", "acknowledge")), or "
        + "\(client.named("renew", "device", "--replaces")) to end the former identifier as well; never do either on a copy",
      mend: [client.remedy("history", "device")])
  }

  /// The warning for the row `machine-change` (identityd(8), THE MACHINE).
  private var renewal: Finding.Fault? {
    guard let change else { return nil }
    return .warning(
      "identityd found another machine and renewed every identifier: \(change). The former ones come back if the daemon "
        + "starts with the former machine-id and hardware. If the change is intended, acknowledge it, "
        + "which deletes the push tokens and the items for one device only that the former machine may have, too",
      mend: [acknowledge])
  }
}
