import LinuxSystem
import Testing

/// The choice of a pager from the environment.
struct PagerTests {
  private func choose(_ variables: [String: String], isOwnUser: Bool = true) -> Pager? {
    Pager("OWN_PAGER", isOwnUser: isOwnUser) { variables[$0] }
  }

  @Test func `without a choice it is less with the options of systemctl, or the pager of the system`() throws {
    let pager = try #require(choose([:]))
    #expect(pager.commands == [["pager"], ["less"], ["more"]])
    #expect(pager.variables == ["LESS": "FRSXMK", "LESSCHARSET": "utf-8"])
  }

  @Test func `the program's own variable comes before those of systemd and of all programs`() {
    var variables = ["PAGER": "most -s", "SYSTEMD_PAGER": "less", "OWN_PAGER": "bat --plain"]
    #expect(choose(variables)?.commands.first == ["bat", "--plain"])
    variables["OWN_PAGER"] = nil
    #expect(choose(variables)?.commands.first == ["less"])
    variables["SYSTEMD_PAGER"] = nil
    #expect(choose(variables)?.commands.first == ["most", "-s"])
  }

  @Test(arguments: ["", "cat", " "]) func `an empty name or cat means no pager`(name: String) {
    #expect(choose(["OWN_PAGER": name, "PAGER": "less"]) == nil)
  }

  @Test func `SYSTEMD_LESS replaces the options, also with none`() {
    #expect(choose(["SYSTEMD_LESS": ""])?.variables["LESS"] == "")
    #expect(choose(["SYSTEMD_LESSCHARSET": "latin1"])?.variables["LESSCHARSET"] == "latin1")
  }

  @Test func `another user than the one who logged in gets only less in its secure mode`() {
    let secure = choose(["PAGER": "sh"], isOwnUser: false)
    #expect(secure?.commands == [["less"]] && secure?.variables["LESSSECURE"] == "1")
  }

  @Test func `SYSTEMD_PAGERSECURE decides, and then the named pager is trusted`() {
    let off = choose(["PAGER": "most", "SYSTEMD_PAGERSECURE": "no"], isOwnUser: false)
    #expect(off?.commands.first == ["most"] && off?.variables["LESSSECURE"] == nil)
    let on = choose(["PAGER": "most", "SYSTEMD_PAGERSECURE": "1"])
    #expect(on?.commands == [["most"], ["less"]] && on?.variables["LESSSECURE"] == "1")
  }
}
