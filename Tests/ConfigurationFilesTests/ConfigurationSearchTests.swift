import ConfigurationFiles
import TestSupport
import Testing

/// The order of precedence of systemd-system.conf(5), "configuration directories and precedence".
struct ConfigurationSearchTests {
  private let temporary: TemporaryFolder
  private let search: ConfigurationSearch

  init() throws {
    temporary = try TemporaryFolder()
    let folder = temporary
    search = ConfigurationSearch(name: "x.conf", folders: ["etc", "run", "usr"].map { folder[$0] })
  }

  /// Writes files that each set `From` to their own name.
  private func write(_ names: String...) throws {
    for name in names { try temporary.write(name, "[A]\nFrom=\(name)\n") }
  }

  private func values() throws -> [String] { try search.settings(limit: 1_000).map(\.value) }

  @Test func `without any file there are no settings`() throws {
    #expect(try values() == [])
  }

  @Test func `only the main file of the first folder counts`() throws {
    try write("usr/x.conf")
    #expect(try values() == ["usr/x.conf"])
    try write("run/x.conf")
    #expect(try values() == ["run/x.conf"])
    try write("etc/x.conf")
    #expect(try values() == ["etc/x.conf"])
  }

  @Test func `drop-ins of all folders follow the main file, sorted by name`() throws {
    try write(
      "etc/x.conf.d/30-c.conf", "usr/x.conf.d/20-b.conf", "run/x.conf.d/10-a.conf", "usr/x.conf", "etc/x.conf.d/9.conf")
    #expect(
      try values() == [
        "usr/x.conf", "run/x.conf.d/10-a.conf", "usr/x.conf.d/20-b.conf", "etc/x.conf.d/30-c.conf",
        "etc/x.conf.d/9.conf",
      ])
  }

  @Test func `a drop-in with a later name overrides one of a folder with higher precedence`() throws {
    try write("etc/x.conf.d/10.conf", "usr/x.conf.d/20.conf")
    #expect(try values().last == "usr/x.conf.d/20.conf")
  }

  @Test func `of drop-ins with one name the one in the earlier folder counts`() throws {
    try write("usr/x.conf.d/10.conf", "run/x.conf.d/10.conf", "usr/x.conf.d/20.conf")
    #expect(try values() == ["run/x.conf.d/10.conf", "usr/x.conf.d/20.conf"])
    try write("etc/x.conf.d/10.conf")
    #expect(try values() == ["etc/x.conf.d/10.conf", "usr/x.conf.d/20.conf"])
  }

  @Test func `only a link to dev null in an earlier folder masks a drop-in`() throws {
    try write("usr/x.conf.d/10.conf", "usr/x.conf.d/20.conf")
    try temporary.link("run/x.conf.d/10.conf", to: "/dev/null")
    #expect(try values() == ["usr/x.conf.d/20.conf"])
    // A mask in a later folder has no effect.
    try write("etc/x.conf.d/10.conf")
    #expect(try values() == ["etc/x.conf.d/10.conf", "usr/x.conf.d/20.conf"])
  }

  @Test func `an empty drop-in replaces others of its name`() throws {
    try write("usr/x.conf.d/10.conf")
    try temporary.write("etc/x.conf.d/10.conf", "")
    #expect(try values() == [])
  }

  @Test func `a masked main file hides later main files, but no drop-in`() throws {
    try write("run/x.conf", "usr/x.conf", "usr/x.conf.d/10.conf")
    try temporary.link("etc/x.conf", to: "/dev/null")
    #expect(try values() == ["usr/x.conf.d/10.conf"])
  }

  @Test func `only names that end in .conf and do not begin with a dot are drop-ins`() throws {
    try write("etc/x.conf.d/10.conf")
    try write(
      "etc/x.conf.d/20.conf~", "etc/x.conf.d/30.conf.bak", "etc/x.conf.d/README", "etc/x.conf.d/.40.conf",
      "etc/x.conf.d/.conf", "etc/x.conf.d/50conf")
    #expect(try values() == ["etc/x.conf.d/10.conf"])
  }

  @Test func `a drop-in may be a link to a file elsewhere`() throws {
    try write("elsewhere/real")
    try temporary.link("etc/x.conf.d/10.conf", to: temporary["elsewhere/real"])
    #expect(try values() == ["elsewhere/real"])
  }

  @Test func `the setting with the highest precedence comes last`() throws {
    try temporary.write("etc/x.conf", "[A]\nB=1\nB=2\n")
    try temporary.write("usr/x.conf.d/10.conf", "[A]\nB=3\n")
    try temporary.write("etc/x.conf.d/05.conf", "[A]\nB=4\n")
    #expect(try values() == ["1", "2", "4", "3"])
  }

  @Test func `every setting names its own file`() throws {
    try write("etc/x.conf", "usr/x.conf.d/10.conf")
    #expect(
      try search.settings(limit: 1_000).map(\.place.description)
        == [temporary["etc/x.conf:2"], temporary["usr/x.conf.d/10.conf:2"]])
  }

  @Test func `an invalid line is reported with its file`() throws {
    try write("etc/x.conf")
    try temporary.write("run/x.conf.d/10.conf", "[A]\nnonsense\n")
    let error = #expect(throws: ConfigurationFailure.self) { try search.settings(limit: 1_000) }
    #expect(error?.place == temporary["run/x.conf.d/10.conf:2"])
  }

  @Test func `a file that is overridden is not read`() throws {
    try write("etc/x.conf", "etc/x.conf.d/10.conf")
    try temporary.write("usr/x.conf", "nonsense")
    try temporary.write("usr/x.conf.d/10.conf", "nonsense")
    #expect(try values() == ["etc/x.conf", "etc/x.conf.d/10.conf"])
  }

  @Test func `an unreadable file is an error and not missing`() throws {
    try write("usr/x.conf")
    try temporary.write("etc/x.conf", String(repeating: "# long\n", count: 1_000))
    let error = #expect(throws: ConfigurationFailure.self) { try search.settings(limit: 1_000) }
    #expect(error?.place == temporary["etc/x.conf"])
    #expect(error?.reason.hasSuffix("File too large") == true)
  }

  @Test func `a single file is read without drop-ins`() throws {
    try write("etc/x.conf", "etc/x.conf.d/10.conf")
    try temporary.link("masked", to: "/dev/null")
    #expect(
      try ConfigurationSearch.settings(ofFile: temporary["etc/x.conf"], limit: 1_000)?.map(\.value) == ["etc/x.conf"])
    #expect(try ConfigurationSearch.settings(ofFile: temporary["nothing"], limit: 1_000) == nil)
    #expect(try ConfigurationSearch.settings(ofFile: temporary["masked"], limit: 1_000) == [])
  }
}
