import Foundation
import TestSupport
import Testing

/// Forged records of versions and push tokens. A backup with a single record that no daemon writes is refused
/// as a whole.
@Suite(.enabled(if: isRoot, "it takes an admin"), .serialized) struct ForgedVersionTests {
  private typealias Forged = ForgedBackup
  private typealias Record = (kind: String, values: [ForgedBackup.Value])

  private static let app = "user:0"
  private static let time = ForgedBackup.Value.text(ForgedBackup.time)
  private static let session = ForgedBackup.Value.text("557e5958-d390-4cbf-b928-2a2b19a1399a")

  private static let installed: Record = (
    "app", [.text(app)] + [ForgedBackup.Value](repeating: .null, count: 6) + [time]
  )
  /// Records as a daemon writes them, each with the indices of the columns that may be null.
  private static let records: [(record: Record, optional: Set<Int>)] = [
    (("release", [.integer(1), .text(app), .text("id"), .text("1.0"), .text("b"), time, time]), [1, 2, 4]),
    (
      (
        "report",
        [
          .integer(1), .text(app), session, .text("upgraded"), .text("id"), .text("1.0"), .text("b"), .text("id"),
          .text("0.9"), .text("a"),
        ]
      ), [1, 4, 6, 7, 9]
    ),
    (("claim", [.integer(1), .text(app), .text("1.0"), .text("work")]), [1]),
    (
      (
        "token",
        [
          .integer(1), .text(app), .text("fcm"), .text("x"), .text("e"), .text("t"), session, .integer(1), time, time,
          time,
        ]
      ), [4, 5]
    ),
  ]

  /// Returns copies of a record with one fault each, and the descriptions of the faults.
  private static func faults(_ record: Record, _ optional: Set<Int>) -> [(String, Record)] {
    var faults: [(String, Record)] = []
    func add(_ what: String, _ values: [ForgedBackup.Value]) {
      faults.append(("\(record.kind), \(what)", (record.kind, values)))
    }
    for place in record.values.indices {
      func put(_ what: String, _ value: ForgedBackup.Value) {
        var values = record.values
        values[place] = value
        add("column \(place) \(what)", values)
      }
      put("bytes", .blob([1]))
      put("no UTF-8", .garbled([0x31, 0xff]))
      put("with NUL", .garbled([0x31, 0, 0x32]))
      if case .integer = record.values[place] { put("text", .text("1")) } else { put("a number", .integer(1)) }
      if !optional.contains(place) { put("nothing", .null) }
      add("without column \(place)", Array(record.values[..<place] + record.values[(place + 1)...]))
    }
    for more in [.null, .integer(1), .text("x")] as [ForgedBackup.Value] { add("one more", record.values + [more]) }
    add("a secret", record.values + [.secret([1])])
    return faults
  }

  private func encrypt(_ records: [Record]) throws -> Data {
    try Forged.encrypt([Forged.head, Self.installed] + records + [Forged.end(Int64(records.count + 2))])
  }

  @Test func `records that are formed as a daemon forms them are restored`() throws {
    let daemon = try DaemonUnderTest().start()
    // Creates the app's device identifier, to which the token is assigned.
    #expect(try daemon.ask("get device").hasPrefix("OK "))
    let answer = try daemon.restore(try encrypt(Self.records.map(\.record)), "adopt-device=yes")
    #expect(
      Array(answer.dropFirst()) == [
        "* app installed app=user:0", "* versions restored of=app app=user:0", "* token added app=user:0 provider=fcm",
        "OK 4",
      ])
    #expect(try daemon.ask("version state").hasPrefix("OK upgraded 1.0 build=b id=id previous=0.9 previous-build=a "))
    #expect(try daemon.ask("token get fcm").hasPrefix("OK x provider=fcm app=user:0 device="))
  }

  @Test(arguments: records.indices) func `a single fault in a record refuses the whole backup`(index: Int) throws {
    let (record, optional) = Self.records[index]
    let daemon = try DaemonUnderTest().start()
    let client = try daemon.client()
    let last = try client.statusValue("last-event")
    let faults = Self.faults(record, optional)
    try #require(faults.count > 5 * record.values.count)
    for (what, fault) in faults {
      let answer = try client.restore(try encrypt([fault]), "adopt-device=yes")
      #expect(answer.count == 1 && answer[0].hasPrefix("ERR conflict "), "\(what): \(answer)")
    }
    #expect(try client.statusValue("last-event") == last)
    #expect(try client.ask("app list") == ["OK 0"])
    #expect(try client.ask("token list app=*") == ["OK 0"])
  }

  @Test func `a report with only half of the previous release is refused`() throws {
    let daemon = try DaemonUnderTest().start()
    var values = Self.records[1].record.values
    values[8] = .null
    let answer = try daemon.restore(try encrypt([("report", values)]), "adopt-device=yes")
    #expect(answer.count == 1 && answer[0].hasPrefix("ERR conflict "), "\(answer)")
  }

  @Test func `duplicate records in a backup do no harm`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try daemon.ask("get device").hasPrefix("OK "))
    let records = Self.records.map(\.record)
    #expect(try daemon.restore(try encrypt(records + records + records), "adopt-device=yes").last == "OK 4")
    let questions = ["version history", "version state", "token list"]
    let told = try questions.map { try daemon.client().ask($0) }
    #expect(told[0].count == 2 && told[2].count == 2)
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.client().statusValue("store") == "ok")
    #expect(try questions.map { try daemon.client().ask($0) } == told)
  }
}
