import Foundation
import TestSupport
import Testing

/// Rotation of the master key on a failing disk, and in a killed daemon.
@Suite(.enabled(if: isRoot, "attaching to the daemon needs root"), .serialized) struct KeyFaultTests {
  private func started() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start()
    for number in 1...3 {
      let said = "data=\(pair(number)) label=\(pair(number))"
      try #require(try daemon.ask("item put service=s account=a\(number) \(said)") == "OK created")
    }
    return daemon
  }

  private func expectItems(_ daemon: DaemonUnderTest, _ when: String) throws {
    for number in 1...3 {
      let line = try daemon.ask("item read service=s account=a\(number)")
      try #require(line.hasPrefix("OK "), "\(when): \(line)")
      #expect(try readPair(line) == pair(number), "\(when)")
    }
  }

  @Test func `row 42b: a rotation killed at any moment loses no item and leaves no second key`() throws {
    let daemon = try started()
    var kills = 0
    for call in [
      "openat", "write", "pwrite64", "fsync", "fdatasync", "rename,renameat,renameat2", "unlink,unlinkat",
      "ftruncate,fallocate",
    ] {
      for number in 1...16 {
        var answer = ""
        try Fault.inject("\(call):signal=SIGKILL:when=\(number)", into: daemon) { () throws in
          answer = (try? daemon.ask("key rotate")) ?? ""
        }
        let isKilled = answer != "OK file"
        #expect(isKilled ? answer == "" : true, "\(answer)")
        if isKilled {
          kills += 1
          daemon.process.waitUntilExit()
        } else {
          // The fault may have hit the clean-up after the answer.
          daemon.end(with: SIGKILL)
        }
        try daemon.start()
        try expectItems(daemon, "\(call) \(number)")
        #expect(try daemon.client().statusValue("store") == "ok")
        #expect(!daemon.masterKeys.contains("master.key.next"), "\(call) \(number): \(daemon.masterKeys)")
        if !isKilled { break }
      }
    }
    #expect((10...60).contains(kills), "\(kills)")
    #expect(try daemon.ask("key rotate") == "OK file")
    #expect(daemon.masterKeys == ["master.key"])
    daemon.end()
    try daemon.start()
    try expectItems(daemon, "at the end")
  }

  @Test(arguments: ["pwrite64", "fdatasync", "unlink,unlinkat", "fsync"])
  func `a killed rotation to a credential loses no item, and an unused key file is removed`(call: String) throws {
    for number in 1...2 {
      let daemon = try started()
      daemon.end()
      try daemon.credential("identityd.key", String(repeating: "c", count: 32))
      try daemon.startWithCredentials()
      try Fault.inject("\(call):signal=SIGKILL:when=\(number)", into: daemon) { () throws in
        _ = try? daemon.ask("key rotate")
      }
      daemon.end(with: SIGKILL)
      try daemon.startWithCredentials()
      try expectItems(daemon, "\(call) \(number)")
      let source = try daemon.client().statusValue("master-key")
      #expect(daemon.masterKeys == (source == "credential" ? [] : ["master.key"]), "\(call) \(number)")
      #expect(try daemon.ask("key rotate").hasPrefix(source == "credential" ? "ERR conflict " : "OK credential"))
      try expectItems(daemon, "\(call) \(number), rotated")
    }
  }

  @Test(arguments: [
    ("openat:error=EMFILE", "master.key.next.new"), ("write:error=ENOSPC", "master.key.next.new"),
    ("fsync:error=EIO", nil), ("renameat,renameat2,rename:error=EIO", nil), ("pwrite64:error=ENOSPC", nil),
    ("pwrite64:error=EIO", nil), ("fdatasync:error=EIO", nil),
  ])
  func `row 42b: a rotation that the disk refuses fails, items stay available, and a later one works`(
    fault: String, file: String?
  ) throws {
    let daemon = try started()
    try Fault.inject(fault, on: file, into: daemon) { () throws in
      let code = fault.hasSuffix("ENOSPC") ? "no-space" : "read-only"
      for _ in 0..<3 {
        let answer = try daemon.ask("key rotate")
        let isOpen = !fault.hasSuffix("ENOSPC") && answer.hasPrefix("ERR unknown ")
        #expect(answer.hasPrefix("ERR \(code) ") || isOpen, "\(answer)")
        try expectItems(daemon, "while it is refused")
      }
      #expect(try daemon.client().statusValue("master-key") == "file")
    }
    // Only the old key opens the items, so it must still be there.
    daemon.end(with: SIGKILL)
    try daemon.start()
    try expectItems(daemon, "after a kill")
    #expect(daemon.masterKeys.filter { !$0.hasSuffix(".new") } == ["master.key"])
    #expect(try daemon.eventually("key rotate") == ["OK file"])
    try expectItems(daemon, "rotated")
    daemon.end(with: SIGKILL)
    try daemon.start()
    try expectItems(daemon, "rotated, after a kill")
    #expect(daemon.masterKeys == ["master.key"])
  }

  @Test func `the next start cleans up after a rotation that could not`() throws {
    let daemon = try started()
    try Fault.inject("renameat,renameat2,rename:error=EIO:when=2+", into: daemon) { () throws in
      #expect(try daemon.ask("key rotate") == "OK file")
      try expectItems(daemon, "not tidied up")
    }
    #expect(daemon.masterKeys == ["master.key", "master.key.next"])
    daemon.end(with: SIGKILL)
    try daemon.start()
    try expectItems(daemon, "after a kill")
    #expect(daemon.masterKeys == ["master.key"])
  }

  @Test func `failed rotations after a successful one lose no key`() throws {
    let daemon = try started()
    #expect(try daemon.ask("key rotate") == "OK file")
    for _ in 0..<3 {
      try Fault.inject("fdatasync:error=EIO", into: daemon) { () throws in
        #expect(try daemon.ask("key rotate").hasPrefix("ERR unknown "))
      }
      // These changes rewrite the failed store, so that the next attempt is possible.
      try daemon.eventually("account set alice")
      try daemon.eventually("account clear")
    }
    try expectItems(daemon, "in the running daemon")
    daemon.end(with: SIGKILL)
    try daemon.start()
    try expectItems(daemon, "after a kill")
  }
}
