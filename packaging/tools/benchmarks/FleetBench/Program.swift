import Foundation
import LinuxSystem

/// The measurements of the fleet: many devices through the real rules, with real brokers.
enum Program {
  private enum ExitStatus {
    static let success: Int32 = 0
    static let failure: Int32 = 2
    static let usage: Int32 = 64
  }

  static func say(_ text: String) { FileHandle.standardError.write(Data("fleet-bench: \(text)\n".utf8)) }

  /// Runs the measurements, and prints a table.
  ///
  /// - Returns: the exit status of the process.
  static func main() -> Int32 {
    do {
      let options = try Options(Array(Swift.CommandLine.arguments.dropFirst()))
      guard !options.showsHelp else {
        print(Options.help, terminator: "")
        return ExitStatus.success
      }
      var measurements = try Measurements(options)
      for name in options.names {
        switch name {
        case .devices: try measurements.devices()
        case .account: try measurements.account()
        case .records: try measurements.records()
        case .rotation: try measurements.rotation()
        case .shards: try measurements.shards()
        }
      }
      print(measurements.table.text, terminator: "")
      return ExitStatus.success
    } catch let error as CommandLine.UsageError {
      say("\(error)")
      return ExitStatus.usage
    } catch {
      say("\(error)")
      return ExitStatus.failure
    }
  }
}

/// The names of the measurements.
enum Measurement: String, CaseIterable {
  case devices, account, rotation, records, shards
}

/// The command line of `FleetBench`.
struct Options {
  private static let known: [CommandLine.Option] = [
    .init("engine", value: "NAME", "The broker: mosquitto or nats (a cluster of three nodes)."),
    .init("devices", value: "N", "How many devices connect; 10000 where it is not given, and 3000 for nats."),
    .init("account", value: "N", "How many devices the large account has; 10000 where it is not given."),
    .init("members", value: "N", "How many devices the account has whose key is rotated; 500 where it is not given."),
    .init("records", value: "N", "How many records fill a broker; 100000 where it is not given."),
    .init("spread", value: "SECONDS", "How far apart devices connect; 5 where it is not given."),
    .init("port", value: "N", "The first of the ports that are used; 21000 where it is not given."),
    .init("plain", "Connect without TLS and keep-alives."),
    .init("quick", "Measure for a shorter time."),
    .init("help", "Show this help, and end."),
  ]

  static var help: String {
    "Usage: fleet-bench [devices|account|rotation|records|shards]… [OPTION]…\n\n"
      + known.map { option in
        let name = "--\(option.name)\(option.value.map { "=\($0)" } ?? "")"
        return "  \(name.padding(toLength: 18, withPad: " ", startingAt: 0))  \(option.summary)\n"
      }.joined()
  }

  let names: [Measurement]
  let engine: Broker.Engine
  let devices: Int
  let account: Int
  let members: Int
  let records: Int
  let spread: Int
  let port: UInt16
  let isPlain: Bool
  let isQuick: Bool
  let showsHelp: Bool

  init(_ arguments: [String]) throws(CommandLine.UsageError) {
    let line = try CommandLine(arguments, Self.known)
    func number(_ name: String, _ range: ClosedRange<Int>, _ usual: Int) throws(CommandLine.UsageError) -> Int {
      guard let text = line.options[name] else { return usual }
      guard let number = Int(text), range.contains(number) else {
        throw CommandLine.UsageError(
          "--\(name) cannot be '\(text)'; allowed: \(range.lowerBound) to \(range.upperBound)")
      }
      return number
    }
    var named: [Measurement] = []
    for word in line.words {
      guard let name = Measurement(rawValue: word) else {
        throw CommandLine.UsageError(
          "no measurement '\(word)'; there are: \(Measurement.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      named.append(name)
    }
    names = named.isEmpty ? Measurement.allCases : named
    let word = line.options["engine"] ?? "mosquitto"
    guard let engine = Broker.Engine(rawValue: word) else {
      throw CommandLine.UsageError("--engine cannot be '\(word)'; allowed: mosquitto, nats")
    }
    self.engine = engine
    // Whole accounts of five.
    devices = try number("devices", 10...15_000, engine == .nats ? 3_000 : 10_000) / 5 * 5
    account = try number("account", 10...16_000, 10_000)
    members = try number("members", 10...5_000, 500)
    records = try number("records", 100...1_000_000, 100_000)
    spread = try number("spread", 0...600, 5)
    port = UInt16(try number("port", 1_024...60_000, 21_000))
    isPlain = line.options["plain"] != nil
    isQuick = line.options["quick"] != nil
    showsHelp = line.options["help"] != nil
  }
}

/// The figures of all measurements.
struct Table {
  private var rows: [(name: String, value: Double, unit: String, note: String)] = []

  mutating func add(_ name: String, _ value: Double, _ unit: String, note: String = "") {
    rows.append((name, value, unit, note))
  }

  /// The table for people.
  var text: String {
    let width = rows.map(\.name.count).max() ?? 0
    return rows.map { row in
      let name = row.name.padding(toLength: width, withPad: " ", startingAt: 0)
      let digits = row.value >= 100 ? 0 : row.value >= 10 ? 1 : 2
      let note = row.note.isEmpty ? "" : "  (\(row.note))"
      return "\(name)  \(String(format: "%10.\(digits)f", row.value)) \(row.unit)\(note)\n"
    }.joined()
  }
}
