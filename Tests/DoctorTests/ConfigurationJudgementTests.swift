import Testing

@testable import Doctor

/// The findings of the check `configuration` for given messages of the daemon.
struct ConfigurationJudgementTests {
  private func finding(_ status: Int32, _ messages: String, forRoot isRoot: Bool = true) -> Finding {
    var facts = ConfigurationFacts(
      files: ["/etc/a.conf", "/etc/b c.conf"], resume: [.root("systemctl", "reload", "u")])
    facts.judge(status, messages, forRoot: isRoot)
    return facts.finding
  }

  private func mends(_ finding: Finding) -> [String] { finding.faults.flatMap(\.mend).map { $0.text(for: 0) } }

  @Test func `a configuration without messages is in order`() { #expect(finding(0, "").result == .ok) }

  @Test func `a refusal names the file, and its remedy edits the file and puts it into force`() {
    let refused = finding(78, "identityd: err: configuration refused: /etc/x.conf:2: [Log] Level= cannot be 'round'\n")
    #expect(refused.result == .failed)
    #expect(refused.faults.first?.cause.hasSuffix(": /etc/x.conf:2: [Log] Level= cannot be 'round'") == true)
    #expect(mends(refused) == ["${EDITOR:-vi} /etc/x.conf", "systemctl reload u"])
  }

  @Test func `a refusal that names no file lets people edit all files`() {
    let refused = finding(78, "identityd: err: configuration refused: [Access] AdminGroup=x: there is no such group\n")
    #expect(mends(refused) == ["${EDITOR:-vi} /etc/a.conf '/etc/b c.conf'", "systemctl reload u"])
    #expect(finding(78, "").result == .failed)
  }

  @Test func `each unknown setting is a warning with its file`() {
    let warned = finding(
      0,
      """
      identityd: warning: /etc/x.conf:2: unknown setting [Log] Levl=; it is ignored
      identityd: warning: /etc/y.conf:1: unknown setting [] A=; it is ignored

      """)
    #expect(warned.result == .warning)
    #expect(warned.faults.count == 2)
    #expect(
      mends(warned) == [
        "${EDITOR:-vi} /etc/x.conf", "systemctl reload u", "${EDITOR:-vi} /etc/y.conf", "systemctl reload u",
      ])
  }

  @Test func `a file that only this user may not read is no fault`() {
    let text = "identityd: err: configuration refused: /run/identityd: opendir /run/identityd: Permission denied\n"
    #expect(finding(78, text).result == .failed)
    let other = finding(78, text, forRoot: false)
    #expect(other.result == .skipped)
    #expect(other.reason?.hasSuffix("Permission denied; run the check as root") == true)
    #expect(finding(78, "identityd: err: configuration refused: /a.conf:1: no", forRoot: false).result == .failed)
  }

  @Test func `a program that gives no judgement is skipped`() {
    #expect(finding(64, "identityd: unknown option").result == .skipped)
    #expect(finding(139, "").result == .skipped)
  }
}
