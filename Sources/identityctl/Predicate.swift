import IdentityCore
import IdentityWire
import LinuxSystem

/// A request with a yes-or-no answer, which becomes the exit status.
struct Predicate {
  /// The words of the request to the daemon.
  let words: [String]
  /// Whether the answer is not written, so that only the exit status tells it.
  let isSilent: Bool
  /// Whether the first word of the answer means yes.
  let holds: (String) -> Bool

  /// Recognises a yes-or-no request. Nil if `words` are another request.
  ///
  /// - Throws: a usage error if `version compare` has an unknown operator.
  init?(_ words: [String]) throws(CommandLine.UsageError) {
    let name = VerbName(words)
    switch name.both {
    case _ where name.first == "check": self.init(words) { $0 != "invalid" }
    case "version claim": self.init(words) { $0 != "again" }
    case "version changed":
      let hasVersion = !Program.operands(of: words).isEmpty
      let request = hasVersion ? ["version", "report", "dry-run=yes"] : ["version", "state"]
      self.init(request + words.dropFirst(2)) { $0 != "unchanged" }
    case "version compare":
      let operands = Program.operands(of: words)
      var request = words
      // The protocol's default is the order that it has always had.
      if !words.contains(where: { $0.lowercased().hasPrefix("order=") }) { request.append("order=auto") }
      guard operands.count == 3 else {
        self.init(request) { _ in true }
        return
      }
      let operation = words[operands[1]]
      guard let wanted = Self.operators[operation] else {
        throw CommandLine.UsageError("unknown operator '\(operation)'; allowed: lt, le, eq, ne, ge, gt")
      }
      request.remove(at: operands[1])
      self.init(request, isSilent: true) { wanted.contains($0) }
    default: return nil
    }
  }

  private init(_ words: [String], isSilent: Bool = false, _ holds: @escaping (String) -> Bool) {
    self.words = words
    self.isSilent = isSilent
    self.holds = holds
  }

  /// The operators of systemd-analyze(1), `compare-versions`.
  private static let operators: [String: Set<String>] = [
    "lt": ["less"], "<": ["less"], "le": ["less", "equal"], "<=": ["less", "equal"], "eq": ["equal"], "==": ["equal"],
    "ne": ["less", "greater", "different"], "!=": ["less", "greater", "different"], "ge": ["greater", "equal"],
    ">=": ["greater", "equal"], "gt": ["greater"], ">": ["greater"],
  ]

  /// Returns the exit status for an answer that is not an error.
  func status(_ content: ReplyLine.Content) -> Int32 {
    holds(content.words.first.map { "\($0)" } ?? "") ? Program.ExitStatus.success : Program.ExitStatus.no
  }
}
