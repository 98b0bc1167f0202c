import Foundation
import TestSupport
import Testing

/// The daemon that a user starts for himself, beside the system's.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `a user enables a daemon of his own and administers it`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell(
      """
      id --user owner >/dev/null 2>&1 || useradd --create-home owner
      id --user guest >/dev/null 2>&1 || useradd --create-home guest
      user=$(id --user owner)
      loginctl enable-linger owner
      systemctl start "user@$user.service"
      """)
    func owner(_ script: String) async throws -> String {
      try await system.shell(
        "cd /home/owner; setpriv --reuid=owner --regid=owner --init-groups env HOME=/home/owner "
          + "XDG_RUNTIME_DIR=/run/user/$(id --user owner) sh -euc '\(script)'")
    }
    // The package enables it for nobody.
    #expect(try await owner("systemctl --user is-enabled identityd.socket || true") == "disabled")
    let refused = try await owner("identityctl --user ping 2>&1 || echo $?")
    #expect(
      refused.contains("run 'systemctl --user restart identityd.socket'") && refused.hasSuffix("\n3"), "\(refused)")
    _ = try await owner("systemctl --user enable --now identityd.socket 2>&1")
    #expect(try await owner("identityctl --user --json whoami").contains("\"admin\":true"))
    #expect(try await owner("identityctl --json whoami").contains("\"admin\":false"))
    let device = try await owner("identityctl --user get device")
    let fresh = try await diagnosis(of: owner("identityctl --user check --json || true"))
    for check in ["unit", "configuration"] { #expect(try fresh[check].result == "ok", "\(fresh)") }
    // Both are made from the machine-id.
    #expect(try await owner("identityctl get device") == device)
    // An admin's verb, which the system's daemon refuses.
    _ = try await owner("identityctl --user --yes renew device; identityctl --user devices name desk")
    #expect(try await owner("identityctl --user get device") != device)
    #expect(try await owner("identityctl --yes renew device 2>&1 || true").contains("denied"))
    // The state stays over a restart, and is in the home of the user alone.
    let renewed = try await owner("identityctl --user get device")
    _ = try await owner("systemctl --user restart identityd.service")
    #expect(try await owner("identityctl --user get device") == renewed)
    #expect(
      try await owner("systemctl --user reload identityd.service; systemctl --user is-active identityd.service")
        == "active")
    #expect(try await system.shell("stat --format=%a:%U /home/owner/.local/state/identityd") == "700:owner")
    // The advice of the check is for the units of this user.
    let state = "/home/owner/.local/state/identityd"
    let units = "identityd.socket identityd.service"
    try await system.shell("rm -rf /home/owner/copy")
    _ = try await owner(
      "systemctl --user stop \(units); cp -a \(state) copy; rm \(state)/identityd.db; systemctl --user start \(units)")
    let found = try await diagnosis(of: owner("identityctl --user check --json || true"))["store"]
    #expect(
      found.mend == """
        rm -rf \(state).next && cp -aT COPY \(state).next && systemctl --user stop \(units) \
        && mv --backup=numbered -T \(state) \(state).damaged \
        && mv -T \(state).next \(state) && systemctl --user start \(units)
        """)
    _ = try await owner(#require(found.command(copy: "/home/owner/copy")))
    #expect(try await owner("identityctl --user get device") == renewed)
    let file = "/home/owner/.config/identityd/identityd.conf"
    let faults = [
      (
        "mkdir -p .config/identityd; printf \"[Log]\\nLevel=loud\\n\" >\(file); systemctl --user stop \(units)",
        "configuration",
        "${EDITOR:-vi} \(file) && systemctl --user reset-failed \(units) && systemctl --user restart \(units)"
      ),
      (
        "systemctl --user mask --now \(units) 2>&1", "unit",
        "systemctl --user unmask \(units) && systemctl --user start identityd.socket"
      ),
    ]
    for (script, check, command) in faults {
      _ = try await owner("rm -f \(file); \(script)")
      let found = try await diagnosis(of: owner("identityctl --user check --json || true"))[check]
      #expect(found.mend == command, "\(found)")
      _ = try await owner("export EDITOR=\"sed -i s/loud/info/\"; \(command) 2>&1")
      #expect(try await owner("identityctl --user get device") == renewed)
    }
    _ = try await owner("rm -f \(file); systemctl --user enable identityd.socket 2>&1")
    // Another user cannot connect, and a contained process of the owner is no admin.
    let guest = try await system.attempt(
      "setpriv --reuid=guest --regid=guest --init-groups identityctl --socket=/run/user/$(id --user owner)/identityd/identityd.sock ping"
    )
    #expect(guest.status == 3, "\(guest)")
    let contained = try await owner("unshare --user --map-current-user identityctl --user --json whoami")
    #expect(contained.contains("\"admin\":false"), "\(contained)")
    // The fleet's service of the user, which finds no broker here.
    try await system.shell("dpkg --install \(Container.others)/identity-fleet_*.deb")
    #expect(try await owner("systemctl --user is-enabled identity-fleet.service || true") == "disabled")
    _ = try await owner(
      "mkdir -p .config/identityd; printf \"[Fleet]\\nBroker=mqtt://127.0.0.1:1\\n\" >.config/identityd/identity-fleet.conf"
    )
    _ = try await owner("systemctl --user daemon-reload; systemctl --user start identity-fleet.service")
    #expect(try await owner("identityctl --user fleet status").contains("no-account"))
    // The commands in warnings, refusals and states reach the user's own service.
    #expect(
      try await owner("identityctl --user account create mine 2>&1").hasSuffix("; see 'identityctl --user check'"))
    #expect(try await owner("identityctl --user account") == "mine")
    let leave = try await owner("identityctl --user account create other 2>&1 || true")
    #expect(leave.contains("leave it first with 'identityctl --user account leave'"), "\(leave)")
    #expect(try await owner("identityctl --user").contains("'identityctl --user check'"))
    // Without the option, the user's service answers if the system has none.
    #expect(try await owner("identityctl fleet status").contains("waiting"))
    #expect(try await owner("identityctl --user --yes account leave 2>&1").contains("identityctl --user fleet status"))
    _ = try await owner("systemctl --user stop identity-fleet.service; rm -r .config/identityd")
    try await system.shell("dpkg --purge identity-fleet")
    _ = try await owner("systemctl --user disable --now identityd.socket identityd.service 2>&1")
    try await system.shell("loginctl disable-linger owner; rm -rf /home/owner/.local")
  }
}
