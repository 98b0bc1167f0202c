import TestSupport
import Testing

/// Broken systems: `identityctl check` must name the cause first, and the command that it prints must repair the system.
extension SystemTests {
  /// A way to break the system.
  private struct Breakage {
    /// The shell script that breaks it.
    let script: String
    /// The check of the first finding, and parts of its cause.
    let check: String
    let cause: [String]
    /// The checks whose findings are symptoms of it.
    var symptoms: [String] = []
    /// The checks that are skipped: systemd was asked first, and the daemon was not contacted.
    var skipped: [String] = []
    /// Whether the finding is a warning, with which the system works.
    var isWarning = false
    /// The repair that people do because of the cause, before the command.
    var repair = "true"
    /// The command that the finding names.
    let mend: String
    /// The editor that corrects a file.
    var editor = "false"
    /// The shell script that removes what the test made.
    var tidy = "true"
  }

  private static let units = "identityd.socket identityd.service"
  private static let restart = "systemctl reset-failed \(units) && systemctl restart \(units)"
  private static let state = "/var/lib/identityd"
  private static let file = "\(Container.configurations)/broken.conf"
  /// Makes every start fail.
  private static let loop = """
    mkdir -p \(Container.dropIns)
    printf '[Service]\\nExecStart=\\nExecStart=/bin/sh -c "exit 42"\\n' >\(Container.dropIns)/loop.conf
    systemctl daemon-reload; systemctl --no-block restart identityd.service
    """
  private static let unloop = "rm \(Container.dropIns)/loop.conf; systemctl daemon-reload"

  /// Starts the daemon on a bind mount that alone is read-only, and not its file system.
  private static let bindReadOnly = """
    systemctl stop \(units); mount --bind \(state) \(state); mount -o remount,bind,ro \(state)
    systemctl start \(units)

    """
  private static let unbind = "systemctl stop \(units); umount \(state); systemctl start \(units)"

  private static let breakages = [
    Breakage(
      script: "rm /run/identityd/identityd.sock", check: "socket",
      cause: ["/run/identityd/identityd.sock is not there"], mend: "systemctl restart identityd.socket"),
    Breakage(
      script: "chmod 0700 /run/identityd; ! setpriv --reuid=1 --clear-groups identityctl ping", check: "socket",
      cause: ["users other than root may not enter /run/identityd, which has mode 0700"],
      mend: "chmod a+x /run/identityd"),
    Breakage(
      script: """
        systemctl stop \(units)
        sed -i /^identityd:/d /etc/passwd /etc/shadow /etc/group /etc/gshadow
        systemctl --no-block start \(units)
        tries=0
        until [ "$(systemctl show --property=NRestarts --value identityd.service)" != 0 ]; do
          tries=$((tries + 1)); [ $tries -lt 300 ]; sleep 0.1
        done
        """, check: "unit", cause: ["the user identityd, which identityd.service runs as, does not exist"],
      symptoms: ["unit"],
      mend: "systemd-sysusers && systemctl reset-failed \(units) && systemctl restart \(units)"),
    Breakage(
      script: loop, check: "unit",
      cause: ["identityd.service ", "exit status 42", "see 'journalctl --unit=identityd.service'"],
      skipped: ["socket", "store"], repair: unloop, mend: restart),
    Breakage(
      script: """
        \(loop)
        printf '[Unit]\\nStartLimitIntervalSec=1h\\nStartLimitBurst=3\\n' >>\(Container.dropIns)/loop.conf; systemctl daemon-reload
        tries=0
        until systemctl --quiet is-failed identityd.service; do
          tries=$((tries + 1)); [ $tries -lt 600 ]; sleep 0.1
        done
        """, check: "unit", cause: ["has failed", "exit status 42", "see 'journalctl --unit=identityd.service'"],
      skipped: ["socket", "store"], repair: unloop, mend: restart),
    Breakage(
      script: "printf '[Log]\\nLevel=round\\n' >\(file); systemctl reload identityd.service || true",
      check: "configuration", cause: ["\(file):2: [Log] Level= cannot be 'round'; allowed: "],
      mend: "${EDITOR:-vi} \(file) && systemctl reload identityd.service", editor: "sed -i s/round/info/",
      tidy: "rm \(file)"),
    Breakage(
      script: "printf '[Log]\\nLevel=round\\n' >\(file); systemctl restart identityd.service || true",
      check: "configuration", cause: ["\(file):2: [Log] Level= cannot be 'round'; allowed: "], symptoms: ["unit"],
      mend: "${EDITOR:-vi} \(file) && \(restart)", editor: "sed -i s/round/info/", tidy: "rm \(file)"),
    Breakage(
      script: "printf '[Log]\\nLevl=info\\n' >\(file)", check: "configuration",
      cause: ["\(file):2: unknown setting [Log] Levl=; it is ignored"], isWarning: true,
      mend: "${EDITOR:-vi} \(file) && systemctl reload identityd.service", editor: "sed -i s/Levl/Level/",
      tidy: "rm \(file)"),
    Breakage(
      script: """
        systemctl stop \(units); rm -rf /root/copy; cp -a \(state) /root/copy
        rm \(state)/identityd.db; systemctl start \(units)
        """, check: "store", cause: ["the database is gone", "those made since are lost"],
      symptoms: ["peer", "master-key"],
      mend: """
        systemctl stop \(units) && mv \(state) \(state).damaged && cp -a COPY \(state) && systemctl start \(units)
        """, tidy: "rm -rf \(state).damaged /root/copy"),
    Breakage(
      script: """
        systemctl stop \(units); rm -rf /root/copy; cp -a \(state) /root/copy
        mount -t tmpfs tmpfs \(state); cp -a /root/copy/. \(state); mount -o remount,ro \(state)
        systemctl --no-block start \(units)
        """, check: "space", cause: ["\(state) is on a file system that is mounted read-only at \(state)"],
      mend: "mount -o remount,rw \(state)",
      tidy: "systemctl stop \(units); umount \(state); rm -rf /root/copy; systemctl start \(units)"),
    Breakage(
      script: bindReadOnly, check: "space",
      cause: ["\(state) is on a file system that is mounted read-only at \(state)"],
      symptoms: ["store"], mend: "mount -o remount,bind,rw \(state) && systemctl restart identityd.service",
      tidy: unbind),
    Breakage(
      script: "\(bindReadOnly)mount -o remount,bind,rw \(state)", check: "space",
      cause: ["\(state) can be written, but not by the daemon: its copy of the mount at \(state)"],
      symptoms: ["store"], mend: "systemctl restart identityd.service", tidy: unbind),
  ]

  @Test(arguments: Container.newest)
  func `check names the cause first, and its command repairs the system`(suite: String) async throws {
    let system = try await reinstalled(suite)
    // A key in a file and the clock of the test machine are warnings of every system here.
    let usual = try await check(system).findings.map(\.check)
    #expect(Set(usual).isSubset(of: ["master-key", "clock"]))
    for breakage in Self.breakages {
      try await system.shell("systemctl reset-failed \(Self.units) || true; \(breakage.script)")
      let found = try await check(system)
      let first = try #require(found.findings.first, "\(breakage.script)")
      #expect(first.check == breakage.check, "\(breakage.script): \(found)")
      #expect(first.result == (breakage.isWarning ? "warning" : "failed") && first.symptomOf == nil)
      for part in breakage.cause { #expect(first.cause.contains(part) == true, "\(first)") }
      #expect(first.mend?.hasPrefix(breakage.mend) == true, "\(first)")
      let symptoms = found.findings.filter { $0.symptomOf != nil }
      for name in breakage.symptoms {
        #expect(symptoms.contains { $0.check == name && $0.symptomOf == breakage.check }, "\(found)")
      }
      #expect(symptoms.allSatisfy { $0.mend == nil }, "\(found)")
      for name in breakage.skipped { #expect(try found[name].result == "skipped", "\(found)") }
      // Doubled, because systemd-run(1), which runs the commands of a container, expands variables.
      let command = try #require(first.command(copy: "/root/copy")).replacing("$", with: "$$")
      try await system.shell("\(breakage.repair)\ncd /; export EDITOR='\(breakage.editor)'\n\(command)")
      let after = try await check(system)
      #expect(after.ok && after.findings.map(\.check) == usual, "\(breakage.script): \(after)")
      try await system.shell(breakage.tidy)
    }
  }
}
