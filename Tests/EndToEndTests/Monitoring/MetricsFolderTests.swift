import Foundation
import TestSupport
import Testing

/// Metrics written into a folder that belongs to another user.
@Suite(.enabled(if: isRoot, "a folder of another user needs root"), .tags(.plain)) struct MetricsFolderTests {
  /// Replaces the metrics file and its drafts with links to a file, then with ordinary files, in an endless loop.
  ///
  /// Half of the rounds end with a sleep about as long as a whole run of `identityctl`. So a link exists at the start
  /// of many runs, however the scheduler distributes the processors.
  private static let attack = """
    import os, random, sys, time
    os.chdir(sys.argv[1])
    def place(name, target):
      if target: os.symlink(target, "placed")
      else: open("placed", "w").close()
      os.rename("placed", name)
    print("ready", flush=True)
    while True:
      for target in sys.argv[2], None:
        place("identityd.prom", target)
        for draft in os.listdir("."):
          if draft.endswith(".new"): place(draft, target)
        if random.random() < 0.5: time.sleep(random.random() * 0.05)
    """

  @Test func `the owner of the folder cannot redirect root's write into a file of root`() throws {
    let daemon = try DaemonUnderTest().start()
    let theirs = try TemporaryFolder()
    let own = try TemporaryFolder()
    try own.write("file", "before")
    try own.setMode("file", 0o600)
    try FileManager.default.setAttributes([.ownerAccountID: 4_711], ofItemAtPath: theirs.path)
    let before = try FileManager.default.attributesOfItem(atPath: own["file"])

    let attacker = Process()
    let output = Pipe()
    attacker.executableURL = URL(filePath: "/usr/bin/setpriv")
    attacker.arguments = [
      "--reuid=4711", "--regid=4711", "--clear-groups", "/usr/bin/python3", "-c", Self.attack, theirs.path, own["file"],
    ]
    attacker.standardOutput = output
    try attacker.runUnmasked()
    defer {
      attacker.terminate()
      attacker.waitUntilExit()
    }
    // The first byte means that the attack has begun. The rest of the line may arrive later.
    try #require(!output.fileHandleForReading.availableData.isEmpty)

    // A run that finds a link is refused. A run that finds an ordinary file writes. Each must happen often.
    var (written, refused) = (0, 0)
    let deadline = Date(timeIntervalSinceNow: patience)
    while written < 50 || refused < 50, Date() < deadline {
      let result = try identityctl(daemon, "stats", "--prometheus", "--output=\(theirs["identityd.prom"])")
      if result.status == 0 { written += 1 } else { refused += 1 }
      try #require(try own.text("file") == "before", "after \(written) and \(refused)")
    }
    #expect(written >= 50 && refused >= 50, "\(written) written, \(refused) refused")
    let after = try FileManager.default.attributesOfItem(atPath: own["file"])
    for key in [FileAttributeKey.systemFileNumber, .posixPermissions, .ownerAccountID, .modificationDate] {
      #expect("\(before[key] ?? "")" == "\(after[key] ?? "")", "\(key)")
    }
    #expect(try own.names() == ["file"])
  }
}
