import AppManifests
import Glibc
import IdentityCore
import TestSupport
import Testing

/// The choice of files in a survey of manifests, and the folders that make the whole survey fail.
struct ManifestSurveyTests {
  private let temporary: TemporaryFolder
  private let folders: [String]

  init() throws {
    temporary = try TemporaryFolder()
    let folder = temporary
    folders = ["etc", "run", "usr"].map { folder[$0] }
  }

  /// Writes manifests whose vendor is the name of their folder.
  private func write(_ names: String...) throws {
    for name in names { try temporary.write(name, "[App]\nVendor=\(name.split(separator: "/")[0])\n") }
  }

  /// Returns each app with its vendor (`?` if the manifest is faulty), and the faults without the
  /// temporary folder's path.
  private func survey(_ folders: [String]? = nil) -> (apps: [String: String], faults: [String], unreadable: String?) {
    switch ManifestReader.survey(folders ?? self.folders) {
    case .unreadable(let reason): return ([:], [], short(reason))
    case .found(let entries, let faults):
      let apps = entries.map { ("\($0.key)", $0.value.manifest.map { "\($0.vendor)" } ?? "?") }
      return (Dictionary(uniqueKeysWithValues: apps), faults.map(short), nil)
    }
  }

  private func short(_ text: String) -> String { text.replacing("\(temporary.path)/", with: "") }

  @Test func `missing and empty folders have no manifests`() throws {
    try temporary.makeFolder("usr")
    #expect(ManifestReader.survey(folders) == .found([:], faults: []))
    #expect(ManifestReader.survey([]) == .found([:], faults: []))
  }

  @Test func `of files with one name the one in the earlier folder counts`() throws {
    try write("usr/a.app", "usr/b.app", "usr/c.app", "run/b.app", "run/c.app", "etc/c.app")
    #expect(survey().apps == ["a": "usr", "b": "run", "c": "etc"])
    #expect(survey(folders.reversed()).apps == ["a": "usr", "b": "usr", "c": "usr"])
  }

  @Test func `a manifest below a place without rights cannot give any`() throws {
    for folder in ["usr", "run", "running"] {
      try temporary.write("\(folder)/\(folder).app", "[App]\nRights=fleet\n")
    }
    try temporary.write("run/plain.app", "[App]\nVendor=run\n")
    let survey = ManifestReader.survey(
      ["usr", "run", "running"].map { temporary[$0] }, untrustedPlaces: [temporary["run"]])
    guard case .found(let entries, let faults) = survey else {
      Issue.record("the folders are not read")
      return
    }
    #expect(
      entries.mapValues { $0.manifest?.rights } == ["usr": [.fleet], "running": [.fleet], "run": nil, "plain": []])
    #expect(
      faults.map(short) == [
        "run/run.app:2: [App] Rights= is refused below /run and /usr/local; move the manifest to /etc/identityd/apps.d"
      ])
    #expect(ManifestReader.untrustedPlaces == ["/run", "/usr/local"])
  }

  @Test func `an entry names the file that counts`() throws {
    try write("usr/a.app", "etc/a.app")
    guard case .found(let entries, _) = ManifestReader.survey(folders) else {
      Issue.record("the folders are not read")
      return
    }
    #expect(entries["a"]?.file == temporary["etc/a.app"])
  }

  @Test func `a link to dev null masks files in later folders only`() throws {
    try write("usr/a.app", "usr/b.app", "etc/b.app")
    try temporary.link("run/a.app", to: "/dev/null")
    try temporary.link("run/b.app", to: "/dev/null")
    #expect(survey().apps == ["b": "etc"])
    #expect(survey().faults == [])
  }

  @Test(arguments: ["", "# nothing\n", "[App]\n"])
  func `an empty file, as left by a power cut, is a fault and not a manifest`(content: String) throws {
    try write("usr/a.app")
    try temporary.write("etc/a.app", content)
    #expect(survey().apps == ["a": "?"])
    #expect(survey().faults.count == 1)
  }

  @Test func `a manifest may be a link to a file elsewhere`() throws {
    try write("elsewhere/real")
    try temporary.link("etc/a.app", to: temporary["elsewhere/real"])
    #expect(survey().apps == ["a": "elsewhere"])
  }

  @Test func `a faulty file hides later ones of its name, and its app still has an entry`() throws {
    try write("usr/a.app", "usr/b.app", "usr/c.app", "usr/d.app", "usr/e.app")
    try temporary.write("etc/a.app", "[App]\nUser=1\n")
    try temporary.link("etc/b.app", to: "nowhere")
    try temporary.makeFolder("run/c.app")
    try temporary.link("etc/d.app", to: "/dev/zero")
    try temporary.link("etc/e.app", to: "e.app")
    let found = survey()
    #expect(found.apps == ["a": "?", "b": "?", "c": "?", "d": "?", "e": "?"])
    #expect(
      found.faults == [
        "etc/a.app:2: [App] User= cannot be '1'; allowed: the name of a user, not a number, at most 64 of them; or *",
        "etc/b.app: this is a dangling link, or the file was just removed",
        "run/c.app: this is not a regular file",
        "etc/d.app: this is not a regular file",
        "etc/e.app: Too many levels of symbolic links",
      ])
  }

  @Test func `a FIFO is refused and not waited for`() throws {
    try write("etc/b.app")
    let made = unsafe mkfifo(temporary["etc/a.app"], 0o600)
    try #require(made == 0)
    #expect(survey().apps == ["a": "?", "b": "etc"])
    #expect(survey().faults == ["etc/a.app: this is not a regular file"])
  }

  @Test(.disabled(if: geteuid() == 0, "root may read everything")) func `an unreadable file is a fault`() throws {
    try write("etc/a.app", "usr/a.app")
    try temporary.setMode("etc/a.app", 0)
    #expect(survey().apps == ["a": "?"])
    #expect(survey().faults == ["etc/a.app: Permission denied"])
  }

  @Test(.disabled(if: geteuid() == 0, "root may read everything"))
  func `an unreadable folder fails the survey`() throws {
    try write("etc/a.app", "usr/a.app")
    try temporary.setMode("etc", 0)
    #expect(survey().unreadable == "etc: Permission denied")
    try temporary.setMode("etc", 0o700)
  }

  @Test func `a file in the place of a folder fails the survey`() throws {
    try write("etc/a.app")
    try temporary.write("usr", "")
    #expect(survey().unreadable == "usr: this is not a directory")
    // ENOTDIR is not taken as proof that the folder is missing.
    #expect(survey([temporary["usr/below"]]).unreadable == "usr/below: Not a directory")
  }

  @Test(arguments: ["nowhere", "/dev/null", "run"]) func `a link that leads to no folder fails the survey`(
    target: String
  ) throws {
    try write("etc/a.app")
    try temporary.write("run", "")
    try temporary.link("usr", to: target)
    #expect(survey([temporary["etc"], temporary["usr"]]).unreadable == "usr: this is not a directory")
  }

  @Test func `a loop of links fails the survey`() throws {
    try temporary.link("usr", to: "usr")
    #expect(survey().unreadable == "usr: Too many levels of symbolic links")
  }

  @Test func `a folder may be a link to another`() throws {
    try write("elsewhere/a.app")
    try temporary.link("usr", to: "elsewhere")
    #expect(survey().apps == ["a": "elsewhere"])
  }

  @Test func `only names that end in .app and do not begin with a dot are manifests`() throws {
    try write(
      "etc/a.app", "etc/b.app~", "etc/c.app.bak", "etc/README", "etc/.d.app", "etc/.app", "etc/eapp", "etc/f.App")
    #expect(survey().apps == ["a": "etc"])
    #expect(survey().faults == [])
  }

  @Test(arguments: [
    "a", "0", "A.b_c-9", "org.example.player", "a.app", "a..b", "a-", String(repeating: "x", count: 251),
  ])
  func `these names are allowed`(name: String) throws {
    try write("etc/\(name).app")
    #expect(survey().apps == [name: "etc"])
    #expect(survey().faults == [])
  }

  @Test(arguments: ["a:b", "user:1000@0", "_a", "-a", "a b", "é", "a\u{301}", "\u{212A}", "a@b", "a\\b", "a,b"])
  func `these names are refused`(name: String) throws {
    try write("etc/\(name).app", "etc/good.app")
    #expect(survey().apps == ["good": "etc"])
    let allowed = "letters, digits, '.', '_' and '-', a letter or digit first, at most 255 bytes"
    #expect(survey().faults == ["etc/\(name).app: the name before .app must be \(allowed)"])
    try temporary.link("run/\(name).app", to: "/dev/null")
    #expect(survey([temporary["run"], temporary["etc"]]).faults == [])
  }

  @Test func `a name cannot add a line to the log`() throws {
    try write("etc/a\nb\u{1b}.app")
    #expect(survey().faults.first?.hasPrefix("etc/a?b?.app: ") == true)
  }

  @Test func `names are compared by their bytes`() throws {
    try write("etc/\u{212A}.app", "usr/K.app")
    #expect(survey().apps == ["K": "usr"])
  }

  @Test func `faults are sorted by name`() throws {
    for name in ["usr/c.app", "etc/d.app", "run/a.app", "usr/b.app"] { try temporary.write(name, "nonsense") }
    #expect(survey().faults.map { $0.prefix(9) } == ["run/a.app", "usr/b.app", "usr/c.app", "etc/d.app"])
  }

  @Test func `more manifests than the limit fail the survey`() throws {
    for number in 0..<Bound.manifests { try temporary.write("usr/app-\(number).app", "") }
    try write("etc/app-7.app", "etc/no manifest")
    let found = survey()
    #expect(found.apps.count == Bound.manifests)
    #expect(found.apps["app-7"] == "etc")
    try write("etc/one-more.app")
    #expect(survey().unreadable == "usr: there are more than 4096 manifests")
  }
}
