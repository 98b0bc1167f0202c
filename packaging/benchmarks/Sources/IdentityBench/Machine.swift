import Foundation

/// The machine that was measured: what a figure without a ratio means nothing without.
struct Machine: Encodable {
  /// The model of its processors.
  let processor: String
  /// How many there are.
  let processors: Int
  /// Whether another machine plays it.
  let isVirtual: Bool
  /// Its kernel.
  let kernel: String
  /// The file system of the state, and what it is on.
  let fileSystem: String

  /// Looks at the machine, and at the folder of the state.
  init(state folder: URL) {
    let cpu = Self.lines("/proc/cpuinfo")
    func field(_ name: String) -> String? {
      cpu.first { $0.hasPrefix(name) }?.split(separator: ":", maxSplits: 1).last?.trimmingCharacters(in: .whitespaces)
    }
    processor = field("model name") ?? "an unknown processor"
    processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    isVirtual = field("flags")?.split(separator: " ").contains("hypervisor") ?? false
    kernel = Self.lines("/proc/sys/kernel/osrelease").first ?? "unknown"
    // The innermost of the mounts that the folder is below; the last of several in one place is the one seen.
    let mounts = Self.lines("/proc/self/mounts").map { $0.split(separator: " ").map(String.init) }
    let below = mounts.filter { $0.count > 2 && (folder.path + "/").hasPrefix($0[1] == "/" ? "/" : $0[1] + "/") }
    let longest = below.map(\.[1].count).max()
    fileSystem = below.last { $0[1].count == longest }.map { "\($0[2]) on \($0[0])" } ?? "unknown"
  }

  /// In one line.
  var text: String {
    "\(processor), \(processors) processors\(isVirtual ? ", virtual" : ""); Linux \(kernel); state on \(fileSystem)"
  }

  private static func lines(_ path: String) -> [String] {
    ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
  }
}

/// What a benchmark found, whatever it compares.
protocol Findings: Encodable, SendableMetatype {
  /// The benchmark's name.
  var benchmark: String { get }
  /// For people.
  var text: String { get }
  /// Whether everything asserted holds.
  var isWithinLimits: Bool { get }
  /// A drawing of it, where there is one.
  func drawing(on machine: Machine) -> Drawing?
  /// The same of several runs, each number the median of theirs.
  static func median(of runs: [Self]) -> Self
}

/// All that came of a run.
struct Document: Encodable {
  /// Where it was.
  let machine: Machine
  /// What each benchmark found.
  let reports: [any Findings]

  private enum Keys: CodingKey {
    case machine, reports
  }

  /// Writes the findings as what they are.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    try container.encode(machine, forKey: .machine)
    var list = container.nestedUnkeyedContainer(forKey: .reports)
    for report in reports { try report.encode(to: list.superEncoder()) }
  }

  /// As one JSON document.
  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "infinite", negativeInfinity: "-infinite", nan: "none")
    return String(decoding: try encoder.encode(self), as: UTF8.self) + "\n"
  }

  /// For people.
  var text: String { ([machine.text + "\n"] + reports.map(\.text)).joined(separator: "\n") }
}
