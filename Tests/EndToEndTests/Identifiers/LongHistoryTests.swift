import Foundation
import IdentityCore
import TestSupport
import Testing

/// A history that is longer than the one that is kept.
@Suite(.enabled(if: isRoot, "renewals take an admin")) struct LongHistoryTests {
  @Test func `a longer history of an earlier release is trimmed while the daemon serves, and stays trimmed`() throws {
    let daemon = try DaemonUnderTest()
    try daemon.storeRenewals(9_000, of: "user:0")
    try daemon.start()
    let client = try daemon.client()
    let current = try daemon.uuid("get installation")
    let deadline = Date(timeIntervalSinceNow: patience)
    while try client.ask("history installation").last != "OK 4097", Date() < deadline { usleep(10_000) }
    let rows = try client.ask("history installation").dropLast()
    #expect(rows.count == 4_097)
    #expect(rows.last?.hasPrefix("* \(current) ") == true)
    #expect(try daemon.uuid("get installation") == current)
    let first = try #require(rows.first?.split(separator: " ")[1])
    #expect(try client.ask("renew installation app=user:0")[0].hasPrefix("OK "))
    #expect(try client.ask("history installation").last == "OK 4097")
    #expect(try client.ask("resolve \(first)")[0].hasPrefix("ERR not-found "))
    #expect(try client.ask("resolve \(current)")[0].hasPrefix("OK installation current=no "))
    daemon.end(with: SIGKILL)
    try daemon.start()
    #expect(try daemon.client().ask("history installation").last == "OK 4097")
    #expect(try daemon.client().statusValue("store") == "ok")
  }
}
