import IdentityWire
import Testing

struct AdviceTests {
  @Test(arguments: [
    ("see 'identityctl check'", "see 'identityctl --user check'"),
    (
      "'identityctl a' or 'identityctl b'.",
      "'identityctl --user a' or 'identityctl --user b'."
    ),
    ("identityctl is a program; 'identityctlx y'", "identityctl is a program; 'identityctlx y'"), ("", ""),
  ])
  func `commands in a text are those for the own daemon of a user`(text: String, own: String) {
    #expect(Advice.text(text, isOwn: true) == own)
    // The client shows texts of the daemon, too.
    #expect(Advice.text(own, isOwn: true) == own)
    #expect(Advice.text(text, isOwn: false) == text)
  }
}
