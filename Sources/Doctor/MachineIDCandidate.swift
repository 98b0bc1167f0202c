import IdentityClient
import IdentityWire
import LinuxSystem

/// A copy of a machine-id on this machine, outside /etc/machine-id.
struct MachineIDCandidate: Equatable, Sendable {
  /// The answer of the daemon to `machine compare`.
  enum Comparison: String, Sendable {
    case current, former, unknown
  }

  /// The command that copies the machine-id to /etc/machine-id. It does not contain the machine-id, because people paste
  /// the output of the checks into reports.
  let remedy: Remedy
  /// The place of the copy, without the machine-id.
  let place: String

  private static let journal = "/var/log/journal"
  private static let bus = "/var/lib/dbus/machine-id"
  /// The maximum number of candidates in the journal's directory.
  private static let limit = 16

  /// Returns the first copy of the machine-id that the daemon knows, that of the present machine before former ones.
  ///
  /// - Parameter compare: asks the daemon about a machine-id.
  static func known(_ compare: (String) -> Comparison?) -> (candidate: MachineIDCandidate, comparison: Comparison)? {
    let compared = all.compactMap { id, candidate in compare(id).map { (candidate, $0) } }
    return compared.first { $0.1 == .current } ?? compared.first { $0.1 == .former }
  }

  /// The copies that D-Bus and the journal keep, with their machine-ids.
  private static var all: [(id: String, MachineIDCandidate)] {
    var found: [(String, MachineIDCandidate)] = []
    if case .bytes(let bytes)? = try? ConfigurationAccess.read(path: bus, limit: 4_096), let id = id(bytes) {
      let copy = Remedy.root("install", "-m", "0444", bus, MachineIDFacts.path)
      found.append((id, MachineIDCandidate(remedy: copy, place: bus)))
    }
    let names = ((try? ConfigurationAccess.names(in: journal)) ?? nil) ?? []
    for name in names.filter({ id(Array($0.utf8)) != nil }).sorted().prefix(limit) {
      let copy = Remedy.root(
        "sh", "-c", "basename \(journal)/\(beginning(of: name, among: names))* >\(MachineIDFacts.path)")
      found.append((name, MachineIDCandidate(remedy: copy, place: "the journal's directory \(journal)")))
    }
    return found
  }

  /// Returns the beginning of a name that no other name has: few characters, which tell nobody the machine-id.
  private static func beginning(of name: String, among names: [String]) -> Substring {
    let others = names.filter { $0 != name }
    let count = (4...name.count).first { count in !others.contains { $0.hasPrefix(name.prefix(count)) } }
    return name.prefix(count ?? name.count)
  }

  private static func id(_ bytes: [UInt8]) -> String? {
    guard MachineIDFacts.judge(bytes) == .good else { return nil }
    return String(decoding: bytes.prefix(32), as: UTF8.self)
  }
}

extension Examination {
  /// Asks the daemon whether it knows a machine-id. Nil if it gives no answer.
  func compareMachine(_ id: String) -> MachineIDCandidate.Comparison? {
    let patience = Patience(until: Self.deadline, needsOutput: false, endsOnTime: true)
    guard var connection = try? DaemonConnection(atOnce: socket),
      let answer = try? connection.ask(RequestLine(words: ["machine", "compare", id]), patience),
      case .ok(let content) = answer.final
    else { return nil }
    return content.words.first.flatMap { MachineIDCandidate.Comparison(rawValue: "\($0)") }
  }
}
