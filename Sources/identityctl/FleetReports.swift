import ClientFormats
import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// Commands that ask the fleet's service several times: the reports for a site, and the list of connected devices.
extension Program {
  /// The pause between two questions for reports, in microseconds.
  private static let reportPause: UInt64 = 50_000
  /// How long devices may take to tell that they are connected, in microseconds.
  private static let presencePause: UInt64 = 2_300_000
  /// The greatest number of reports that are shown.
  private static let mostReports = 100_000

  /// Asks the devices of the account whether they are connected, and shows those that are.
  static func showPeers(_ line: CommandLine, _ format: UUIDFormat) throws -> Int32 {
    let patience = try patience(line)
    var connection = try connectToFleet(line, patience)
    let asked = try connection.ask(RequestLine(words: ["fleet", "who"] + line.words.dropFirst(2)), patience)
    if case .ok = asked.final {
      _ = try TimedWait.wait(for: nil, until: Clock.monotonicMicroseconds + presencePause)
      return try show(try connection.ask(RequestLine(words: line.words), patience), to: line.words, line, format)
    }
    return try show(asked, to: line.words, line, format)
  }

  /// An answer of the service that ends a command.
  struct Unfinished: Error {
    let answer: DaemonConnection.Answer
  }

  /// Returns the reports for a site, which the service fetches, and only this program with the key can open.
  ///
  /// - Parameter path: the file with the key of the site.
  /// - Throws: ``Unfinished`` if the service refuses a request.
  static func reports(with path: String, _ line: CommandLine) throws -> [SignedMessage] {
    let keys = try keys(in: path)
    let patience = try patience(line)
    var connection = try connectToFleet(line, patience)
    let site = ReaderID(of: keys.boxKey)
    let started = try connection.ask(RequestLine(words: ["fleet", "reports", "site=\(site)"]), patience)
    guard case .ok(let content) = started.final else { throw Unfinished(answer: started) }
    let number = content["reading"] ?? ""
    var reports: [DeviceTag: SignedMessage] = [:]
    var faults = 0
    while true {
      let answer = try connection.ask(RequestLine(words: ["fleet", "reports", "reading=\(number)"]), patience)
      guard case .ok(let content) = answer.final else { throw Unfinished(answer: answer) }
      for row in answer.rows {
        guard let tag = row.words.first.flatMap({ DeviceTag(hexadecimal: "\($0)") }), let text = row["report"],
          let bytes = Base64Text.decode(text.bytes.span),
          let message = try? keys.openBox(bytes, on: .report(site, tag)), message.body.author == message.body.subject
        else {
          faults += 1
          continue
        }
        guard reports[tag] != nil || reports.count < mostReports else {
          throw Ending(
            status: ErrorCode.limit.exitStatus, text: "there are more than \(mostReports) reports, which is the limit")
        }
        reports[tag] = message
      }
      if content["last"] == "yes" { break }
      if answer.rows.isEmpty { _ = try TimedWait.wait(for: nil, until: Clock.monotonicMicroseconds + reportPause) }
    }
    if faults > 0 { complain("\(faults) messages on the topics of the site are no reports for this key", line) }
    if reports.isEmpty {
      complain(
        "there are no reports; the broker has to let the user of this device read identityd/v1/site/\(site)/+/+, and the "
          + "devices need SiteKey= with the key of this file", line)
    }
    return Array(reports.values)
  }

  /// Shows the reports for a site.
  static func showReports(with path: String, _ line: CommandLine, _ format: UUIDFormat) throws -> Int32 {
    guard line.words.count == 2 else { throw CommandLine.UsageError("'fleet status' takes no words") }
    let age = try line.options["stale"].map { (text) throws(CommandLine.UsageError) in
      try Options.microseconds(text, of: "stale")
    }
    let reports: [SignedMessage]
    do {
      reports = try Self.reports(with: path, line)
    } catch let unfinished as Unfinished {
      return try show(unfinished.answer, to: line.words, line, format)
    }
    let latest = Clock.realtimeMilliseconds - Int64((age ?? 0) / 1_000)
    let shown = reports.filter { age == nil || $0.body.time.milliseconds <= latest }
    let rows = shown.sorted { "\($0.body.subject)" < "\($1.body.subject)" }.map(row)
    var end = ReplyLine.Content()
    end.words = [Text("\(rows.count)")]
    return try show(
      DaemonConnection.Answer(rows: rows, final: .ok(end)), to: line.words + ["--key=\(path)"], line, format)
  }

  private static func row(of report: SignedMessage) -> ReplyLine.Content {
    var content = ReplyLine.Content()
    content.words = [Text(report.body.subject)]
    let fields = report.body.fields
    func add(_ name: Text, _ value: [UInt8]?) {
      if let value { content.attributes.append(.init(name: name, value: Text(trusted: value))) }
    }
    add("name", fields[.name])
    content.attributes.append(.init(name: "reported", value: Text("\(report.body.time)")))
    add("status", fields[.status])
    add("identityd", fields[.daemon])
    add("system", fields[.system])
    for app in fields.apps ?? [] {
      let build = app.build.isEmpty ? "" : " (\(app.build))"
      content.attributes.append(.init(name: Text("app.\(app.app)"), value: Text("\(app.version)\(build)")))
    }
    return content
  }
}
