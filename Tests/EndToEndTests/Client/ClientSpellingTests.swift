import Foundation
import TestSupport
import Testing

/// The spellings of options, UUIDs and names that people type and paste.
struct ClientSpellingTests {
  private let uuid = "557e5958-d390-4cbf-b928-2a2b19a1399a"

  private func identityctl(_ daemon: DaemonUnderTest, _ words: [String]) throws
    -> (status: Int32, output: String, errors: String)
  {
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    return try run([program] + words, environment: ["IDENTITYD_SOCKET": daemon.socket])
  }

  // MARK: Dry run

  @Test(.enabled(if: isRoot, "admin verbs need root"))
  func `a dry run is an option of each command that has one`() throws {
    let daemon = try DaemonUnderTest().start()
    let device = try daemon.ask("get device")
    _ = try daemon.ask("item put service=mail account=alice data=eA==")
    for words in [
      ["renew", "device"], ["seal"], ["machine", "acknowledge"], ["account", "set", "alice"],
      ["version", "report", "1"],
      ["item", "delete", "service=mail"], ["app", "forget", "unused=1"],
    ] {
      let result = try identityctl(daemon, words + ["--dry-run"])
      #expect(result.status == 0, "\(words): \(result)")
    }
    #expect(try daemon.ask("get device") == device)
    #expect(try daemon.ask("account") == "OK \"\"")
    #expect(try daemon.ask("version state").hasPrefix("ERR not-found "))
    let refused = try identityctl(daemon, ["get", "device", "--dry-run"])
    #expect(refused.status == 2 && refused.errors.contains("option '--dry-run' is only for "), "\(refused)")
    let asked = try identityctl(daemon, ["renew", "device"])
    #expect(asked.status == 2 && asked.errors.contains("to see what would be lost, add --dry-run;"), "\(asked)")
  }

  // MARK: UUIDs

  @Test(.enabled(if: isRoot, "admin verbs need root"), arguments: ["hyphen", "plain", "urn", "upper"])
  func `a UUID is accepted in each format that the client writes`(format: String) throws {
    let daemon = try DaemonUnderTest().start()
    let written = try identityctl(daemon, ["get", "device", "--format=\(format)"]).output
      .trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(try identityctl(daemon, ["resolve", written]).output.hasPrefix("device"), "\(written)")
    #expect(try identityctl(daemon, ["check", written]).status == 0)
    #expect(try identityctl(daemon, ["devices", "put", written.replacing("0", with: "1"), "name=x"]).status == 0)
  }

  @Test func `a UUID in braces is accepted, and every other word is left as it is`() throws {
    let daemon = try DaemonUnderTest().start()
    let migrated = try identityctl(daemon, ["migrate", "installation", "{\(uuid.uppercased())}", "commit=yes"])
    #expect(migrated.status == 0 && migrated.output.hasPrefix(uuid), "\(migrated)")
    // An attribute may come before the verb.
    let again = try identityctl(daemon, ["commit=yes", "migrate", "installation", "{\(uuid.uppercased())}"])
    #expect(again.status == 0 && again.output.hasPrefix(uuid), "\(again)")
    let key = "urn:uuid:\(uuid)"
    #expect(try identityctl(daemon, ["get", "key", key]).output != identityctl(daemon, ["get", "key", uuid]).output)
    #expect(try identityctl(daemon, ["token", "put", "fcm", key]).status == 0)
    #expect(try daemon.ask("token get fcm").hasPrefix("OK \(key) "))
    for wrong in ["{\(uuid)", "urn:uuid:\(uuid)}", "uuid:\(uuid)"] {
      #expect(try identityctl(daemon, ["resolve", wrong]).status != 0, "\(wrong)")
    }
  }

  @Test(arguments: [
    "{\"device\":\"UUID\",\"old\":1}", "<map><string name=\"device\">{UUID}</string></map>", "device=urn:uuid:UUID\n",
  ])
  func `a migration reads a document of an earlier system`(text: String) throws {
    let daemon = try DaemonUnderTest().start()
    let file = daemon.folder.appending(path: "earlier").path
    try Data(text.replacing("UUID", with: uuid).utf8).write(to: URL(filePath: file))
    let result = try identityctl(daemon, ["migrate", "installation", "--file", file, "--field=device", "commit=yes"])
    #expect(result.status == 0 && result.output.hasPrefix(uuid), "\(result)")
  }

  // MARK: Names

  @Test func `a device without an account is told how to get one`() throws {
    let daemon = try DaemonUnderTest().start()
    let result = try identityctl(daemon, ["account"])
    #expect(result.status == 0 && result.output == "", "\(result)")
    #expect(
      result.errors.contains("belongs to no account") && result.errors.contains("'identityctl account create NAME'"))
    #expect(try identityctl(daemon, ["account", "--json"]).output.contains("\"account\":null"))
    #expect(try identityctl(daemon, ["account", "--quiet"]).errors == "")
  }

  @Test func `names of providers are compared without regard to case`() throws {
    let daemon = try DaemonUnderTest().start()
    #expect(try identityctl(daemon, ["token", "put", "FCM", "one"]).output.hasPrefix("created"))
    #expect(try identityctl(daemon, ["token", "put", "fcm", "two"]).output.hasPrefix("replaced"))
    #expect(try identityctl(daemon, ["token", "get", "Fcm"]).output == "two\n")
    #expect(try daemon.client().ask("token list").count == 2)
    // The daemon compares byte by byte. Of two such names, the client means the one as written.
    #expect(try daemon.ask("token put fcm three").hasPrefix("OK created "))
    #expect(try identityctl(daemon, ["token", "get", "FCM"]).output == "two\n")
    #expect(try identityctl(daemon, ["token", "get", "fcm"]).output == "three\n")
    #expect(try identityctl(daemon, ["token", "invalidate", "FCM", "two"]).output == "invalidated\n")
    #expect(try identityctl(daemon, ["token", "delete", "fcm"]).status == 0)
    #expect(try identityctl(daemon, ["token", "delete", "fCm"]).status == 0)
    #expect(try daemon.client().ask("token list") == ["OK 0"])
  }

  // MARK: Devices

  @Test(.enabled(if: isRoot, "admin verbs need root"))
  func `devices can be chosen by their silence, and written as a table into a pipe`() throws {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.ask("get device")
    let names = ["aaa": "2020-01-01T00:00:00.000Z", "bbb": "2999-01-01T00:00:00.000Z"]
    for (name, seen) in names {
      #expect(try daemon.ask("devices put \(UUID().uuidString) name=\(name) seen=\(seen)") == "OK")
    }
    let all = try identityctl(daemon, ["devices", "--format=table"]).output
    #expect(all.hasPrefix("UUID ") && all.contains(" aaa ") && all.contains(" bbb "), "\(all)")
    let stale = try identityctl(daemon, ["devices", "--stale=86400", "--format=table"]).output
    #expect(stale.contains(" aaa ") && !stale.contains(" bbb ") && stale.split(separator: "\n").count == 2, "\(stale)")
    #expect(try identityctl(daemon, ["devices", "--stale=soon"]).status == 2)
  }

  // MARK: Files

  @Test(arguments: ["credential put", "credential list", "proof verify", "version changed"])
  func `a quoted word with a space is no command of two words`(word: String) throws {
    let daemon = try DaemonUnderTest().start()
    let result = try identityctl(daemon, [word, "1.0"])
    #expect(result.status == 12 && result.errors.contains("unknown verb \"\(word)"), "\(result)")
  }

  @Test func `a missing backup is told before any question`() throws {
    let daemon = try DaemonUnderTest().start()
    let result = try identityctl(daemon, ["restore", "/nonexistent/backup"])
    #expect(result.status == 7 && result.errors.contains("/nonexistent/backup"), "\(result)")
    #expect(!result.errors.contains("passphrase") && !result.errors.contains("terminal"))
  }

  @Test func `a carriage return before the line feed is not part of a passphrase`() throws {
    let daemon = try DaemonUnderTest().start()
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let file = daemon.folder.appending(path: "backup").path
    func client(_ words: [String], _ passphrase: String) throws -> Int32 {
      try run(
        [program] + words + ["--passphrase-fd=0"], environment: ["IDENTITYD_SOCKET": daemon.socket], input: passphrase
      ).status
    }
    guard isRoot else { return }
    #expect(try client(["backup", file], "correct horse\r\n") == 0)
    for passphrase in ["correct horse", "correct horse\n", "correct horse\r\n"] {
      #expect(try client(["restore", file, "--dry-run"], passphrase) == 0, "\(passphrase.debugDescription)")
    }
    for passphrase in ["correct horse\r", "correct horse\r\r\n", "correct \rhorse"] {
      #expect(try client(["restore", file, "--dry-run"], passphrase) != 0, "\(passphrase.debugDescription)")
    }
  }

  @Test func `a metrics file that cannot be created has a status that systemd shows by its name`() throws {
    let daemon = try DaemonUnderTest().start()
    for command in ["stats", "check"] {
      let result = try identityctl(daemon, [command, "--prometheus", "--output=/nonexistent/metrics.prom"])
      #expect(result.status == 73, "\(result)")
    }
  }
}
