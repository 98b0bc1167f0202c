import Foundation

/// The measured machine. Without it, a figure that is not a ratio means nothing.
struct Machine: Encodable {
  /// The model of the processors.
  let processor: String
  /// The number of processors.
  let processors: Int
  /// Whether the machine is a virtual one.
  let isVirtual: Bool
  /// The release of the kernel.
  let kernel: String
  /// The file system of the state, and its device.
  let fileSystem: String

  /// Inspects the machine and the folder of the state.
  init(state folder: URL) {
    let cpu = Self.lines("/proc/cpuinfo")
    func field(_ name: String) -> String? {
      cpu.first { $0.hasPrefix(name) }?.split(separator: ":", maxSplits: 1).last?.trimmingCharacters(in: .whitespaces)
    }
    processor = field("model name") ?? "an unknown processor"
    processors = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    isVirtual = field("flags")?.split(separator: " ").contains("hypervisor") ?? false
    kernel = Self.lines("/proc/sys/kernel/osrelease").first ?? "unknown"
    // Finds the innermost mount above the folder. Of several mounts at one place, the last is visible.
    let mounts = Self.lines("/proc/self/mounts").map { $0.split(separator: " ").map(String.init) }
    let below = mounts.filter { $0.count > 2 && (folder.path + "/").hasPrefix($0[1] == "/" ? "/" : $0[1] + "/") }
    let longest = below.map(\.[1].count).max()
    fileSystem = below.last { $0[1].count == longest }.map { "\($0[2]) on \($0[0])" } ?? "unknown"
  }

  /// The machine in one line.
  var text: String {
    "\(processor), \(processors) processors\(isVirtual ? ", virtual" : ""); Linux \(kernel); state on \(fileSystem)"
  }

  private static func lines(_ path: String) -> [String] {
    ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
  }
}

/// The findings of a benchmark.
protocol Findings: Encodable, SendableMetatype {
  /// The name of the benchmark.
  var benchmark: String { get }
  /// The findings for people.
  var text: String { get }
  /// Whether every asserted limit holds.
  var isWithinLimits: Bool { get }
  /// Returns a drawing of the findings. Nil if there is none.
  func drawing(on machine: Machine) -> Drawing?
  /// Returns the findings of several runs as one, with the median of each number.
  static func median(of runs: [Self]) -> Self
}

/// The complete result of a run of this program.
struct Document: Encodable {
  /// The measured machine.
  let machine: Machine
  /// The findings of each benchmark.
  let reports: [any Findings]

  private enum Keys: CodingKey {
    case machine, reports
  }

  /// Encodes each finding with its own type.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Keys.self)
    try container.encode(machine, forKey: .machine)
    var list = container.nestedUnkeyedContainer(forKey: .reports)
    for report in reports { try report.encode(to: list.superEncoder()) }
  }

  /// Returns the result as one JSON document.
  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: "infinite", negativeInfinity: "-infinite", nan: "none")
    return String(decoding: try encoder.encode(self), as: UTF8.self) + "\n"
  }

  /// The result for people.
  var text: String { ([machine.text + "\n"] + reports.map(\.text)).joined(separator: "\n") }
}
