import Foundation
import TestSupport
import Testing

/// A backup file whose key takes a millisecond to derive. The files of `identityctl backup` take a second.
enum QuickBackup {
  static let passphrase = "correct horse battery staple"
  static let header = "identityd-backup 1 argon2id ops=1 memory=8192 salt=000102030405060708090a0b0c0d0e0f\n"
  /// The key for the passphrase with that header, from the reference implementation of Argon2.
  static let key = "0X6mNBypPaYHnqL2TcSqMd0ar5yqZ/tCrEr9BxRwbyY="
}

/// `identityctl backup` and `identityctl restore` with the real daemon. A restore brings back the saved content, and
/// only the passphrase opens the backup.
@Suite(.enabled(if: isRoot, "backups are for admins")) struct BackupClientTests {
  private static let secret = Data((0..<32_768).map { UInt8(truncatingIfNeeded: $0 &* 31) })

  /// Starts a daemon with identifiers, an account and a few items.
  private func filled() throws -> DaemonUnderTest {
    let daemon = try DaemonUnderTest().start()
    _ = try daemon.uuid("get device")
    _ = try daemon.uuid("get installation")
    #expect(try daemon.ask("account set alice@example.org") == "OK")
    for number in 0..<5 {
      let data = (Self.secret + [UInt8(number)]).suffix(32_768).base64EncodedString()
      #expect(try daemon.ask("item add service=s account=a\(number) label=l data=\(data)") == "OK")
    }
    #expect(try daemon.ask("item add service=s account=here data=eA== this-device-only=yes") == "OK")
    return daemon
  }

  private func backup(_ daemon: DaemonUnderTest) throws -> URL {
    let file = daemon.folder.appending(path: "file")
    let result = try identityctl(at: daemon.socket, ["backup", file.path, "--passphrase-fd=3"])
    #expect(result.status == 0, "\(result)")
    return file
  }

  /// Saves a backup as ``QuickBackup``.
  private func quickBackup(_ daemon: DaemonUnderTest) throws -> URL {
    let file = daemon.folder.appending(path: "file")
    try (Data(QuickBackup.header.utf8) + daemon.backup(key: QuickBackup.key)).write(to: file)
    return file
  }

  /// Restores a ``QuickBackup``.
  private func restore(
    _ file: URL, to daemon: DaemonUnderTest, passphrase: String = QuickBackup.passphrase, _ option: String = "--yes",
    asUser user: Int? = nil
  ) throws -> (status: Int32, output: String, errors: String) {
    try identityctl(
      at: daemon.socket, passphrase: passphrase, ["restore", file.path, "--passphrase-fd=3", option], asUser: user)
  }

  /// Returns the state that a refused restore and a dry run must not change.
  private func state(_ daemon: DaemonUnderTest) throws -> [[String]] {
    try ["history device", "history installation", "account", "item find group=* service=s"].map {
      try daemon.client().ask($0)
    }
  }

  @Test func `a backup restores into its own daemon and into an empty one`() throws {
    let first = try filled()
    let file = try backup(first)
    let installation = try first.uuid("get installation")
    let read = try first.ask("item read service=s account=a3")
    #expect(try first.ask("item delete service=s account=a3") == "OK 1")
    #expect(try first.ask("account set bob@example.org") == "OK")
    for daemon in [first, try DaemonUnderTest().start()] {
      let result = try identityctl(at: daemon.socket, ["restore", file.path, "--passphrase-fd=3", "--yes"])
      #expect(result.status == 0, "\(result)")
      #expect(try daemon.ask("account") == "OK alice@example.org")
      #expect(try daemon.uuid("get installation") == installation)
      #expect(try daemon.ask("item read service=s account=a3") == read)
      // Counts only `a0` to `a4`, because a backup does not include the item `here`, which is for this device only.
      let find = try daemon.client().ask("item find service=s")
      #expect(find.filter { $0.contains("account=a") }.count == 5, "\(find)")
    }
  }

  @Test func `restore --dry-run prints its result and changes nothing`() throws {
    let daemon = try filled()
    let file = try quickBackup(daemon)
    let other = try DaemonUnderTest().start()
    let before = try state(other)
    let dry = try restore(file, to: other, "--dry-run")
    #expect(dry.status == 0, "\(dry)")
    #expect(!dry.output.isEmpty)
    #expect(try state(other) == before)
  }

  @Test func `a backup can be piped from one daemon into a restore at another`() throws {
    let first = try filled()
    let second = try DaemonUnderTest().start()
    let program = DaemonUnderTest.binaries.appending(path: "identityctl").path
    let command = """
      set -o pipefail
      '\(program)' backup - --passphrase-fd=3 3<<< secret --socket='\(first.socket)' |
        '\(program)' restore - --passphrase-fd=3 3<<< secret --socket='\(second.socket)' --json --yes
      """
    let result = try run(["bash", "-c", command])
    #expect(result.status == 0, "\(result)")
    #expect(try JSONSchema.faults(in: [("restore end", result.output)]) == "", "\(result)")
    #expect(try second.ask("account") == "OK alice@example.org")
  }

  /// Keys from the reference implementation of Argon2, for the header of ``QuickBackup``.
  @Test(
    arguments: [
      ("VBiAdZMbGqBgJyPS/Fs+sbFroVoOIUjm1dNibwGryDA=", "p\u{e4}ssw\u{f6}rd", true),
      ("VBiAdZMbGqBgJyPS/Fs+sbFroVoOIUjm1dNibwGryDA=", "pa\u{308}sswo\u{308}rd", true),
      ("JWT8E/K/pWI/RhhvVoJVVOSQlQ8eCUM/5xtwv5g45Aw=", "pa\u{308}sswo\u{308}rd", true),
      ("JWT8E/K/pWI/RhhvVoJVVOSQlQ8eCUM/5xtwv5g45Aw=", "p\u{e4}ssw\u{f6}rd", false),
    ])
  func `a passphrase opens backups of its composed form and of the form that is entered`(
    key: String, passphrase: String, opens: Bool
  ) throws {
    let first = try filled()
    let file = first.folder.appending(path: "file")
    try (Data(QuickBackup.header.utf8) + first.backup(key: key)).write(to: file)
    let second = try DaemonUnderTest().start()
    // From a file and from a pipe, which cannot be read twice.
    for path in [file.path, "-"] {
      let result = try identityctl(
        at: second.socket, passphrase: passphrase, ["restore", path, "--passphrase-fd=3", "--yes"],
        shell: path == "-" ? "< '\(file.path)'" : "")
      #expect((result.status == 0) == opens, "\(result)")
      #expect(opens || result.errors.contains("the passphrase is wrong"), "\(result)")
    }
    #expect(try (second.ask("account") == "OK alice@example.org") == opens)
  }

  @Test func `a restore refuses a wrong passphrase and any altered backup file`() throws {
    let daemon = try filled()
    let file = try quickBackup(daemon)
    let before = try state(daemon)
    let wrong = try restore(file, to: daemon, passphrase: "wrong horse")
    #expect(wrong.status >= 10, "\(wrong)")
    let content = try Data(contentsOf: file)
    let begin = (content.firstIndex(of: 10) ?? 0) + 1
    var damaged = [
      content.prefix(content.count - 1), content.prefix(begin), content + [0], content + content[begin...],
    ]
    for place in [begin, begin + 100, content.count - 1] {
      var copy = content
      copy[place] ^= 1
      damaged.append(copy)
    }
    // A header with another salt, which yields another key.
    damaged.append(Data(String(repeating: "0", count: 32).utf8) + content[(begin - 1)...])
    damaged[damaged.count - 1] = content[..<(begin - 33)] + damaged[damaged.count - 1]
    for content in damaged {
      try content.write(to: file)
      let result = try restore(file, to: daemon)
      #expect(result.status >= 10, "\(result)")
      #expect(try state(daemon) == before)
    }
  }

  @Test func `neither the backup file nor the log contains a secret or the passphrase`() throws {
    let daemon = try filled()
    #expect(
      try daemon.ask("item add service=s account=z data=\(Data("tell nobody".utf8).base64EncodedString())") == "OK")
    let content = try Data(contentsOf: try backup(daemon))
    for text in ["tell nobody", "alice@example.org", "correct horse"] {
      #expect(content.range(of: Data(text.utf8)) == nil)
    }
    for text in ["tell nobody", Data("tell nobody".utf8).base64EncodedString(), "correct horse"] {
      #expect(!daemon.log.contains(text))
    }
  }

  @Test func `only admins can back up or restore, and a refused backup leaves no file`() throws {
    let daemon = try filled()
    let file = try quickBackup(daemon)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
    let folder = daemon.folder.appending(path: "theirs")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
    let backup = ["backup", "\(folder.path)/file", "--passphrase-fd=3"]
    for result in [
      try identityctl(at: daemon.socket, backup, asUser: 65_534),
      try restore(file, to: daemon, asUser: 65_534), try restore(file, to: daemon, "--dry-run", asUser: 65_534),
    ] {
      #expect((result.status, result.output) == (15, ""), "\(result)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }
}
