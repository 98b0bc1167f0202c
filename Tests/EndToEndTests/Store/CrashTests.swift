import Foundation
import TestSupport
import Testing

/// Abrupt ends of the daemon, as after a bug or a failed allocation: no clean-up runs.
@Suite(.tags(.seldomThreads)) struct CrashTests {
  @Test(arguments: [SIGABRT, SIGSEGV, SIGILL, SIGKILL])
  func `row 11: acknowledged changes survive an abort, and no change is half done`(signal: Int32) throws {
    let daemon = try DaemonUnderTest()
    // Turns backtraces off, as the shipped unit does, because a crash report would reveal the contents of memory.
    let quiet = ["env", "SWIFT_BACKTRACE=enable=no"]
    try daemon.start(through: quiet)
    let device = try daemon.uuid("get device")
    var stored = 0
    for round in 1...3 {
      let client = try daemon.client()
      for _ in 0..<20 {
        #expect(try client.ask("item put service=s account=a\(stored) data=eA==") == ["OK created"])
        stored += 1
      }
      // These changes are in flight when the daemon ends.
      try client.send((0..<20).map { "item put service=open account=b\(round).\($0) data=eA==\n" }.joined())
      #expect(daemon.end(with: signal) == 128 + signal)
      try daemon.start(through: quiet)
      #expect(try daemon.client().statusValue("store") == "ok")
      #expect(try daemon.uuid("get device") == device)
      #expect(try daemon.client().ask("item find service=s").last == "OK \(stored)")
      for line in try daemon.client().ask("item find service=open").dropLast() {
        let account = try #require(line.split(separator: " ").first { $0.hasPrefix("account=") })
        #expect(try daemon.ask("item read service=open \(account)").hasPrefix("OK data=eA== "))
      }
    }
    #expect(!daemon.log.contains("Thread 0"))
  }
}
