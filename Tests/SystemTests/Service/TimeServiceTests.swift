import Foundation
import TestSupport
import Testing

/// The remedies of the check `clock`, with a real time service and the real service manager.
extension SystemTests {
  /// The C source of a library that gives the kernel's answer to `check`.
  ///
  /// A container shares the kernel's clock, which no test may set. So the answer depends on a file with which
  /// systemd-timesyncd tells that it has set the clock.
  private static let kernel = """
    #include <sys/timex.h>
    #include <unistd.h>
    int adjtimex(struct timex *state) {
      state->status = access("/run/systemd/timesync/synchronized", F_OK) == 0 ? 0 : STA_UNSYNC;
      return 0;
    }

    """
  private static let library = "/root/kernel.so"
  private static let service = "systemd-timesyncd.service"
  private static let folder = "/run/systemd/system/\(service).d"

  /// Ways in which no time service runs, each with the end of the cause, and the command that mends it.
  private static let lacks = [
    (
      ":", ", and no time service is installed; install one, such as systemd-timesyncd or chrony",
      "apt-get install systemd-timesyncd"
    ),
    (
      "systemctl stop \(service); systemctl mask \(service)", ", and \(service) is masked",
      "systemctl unmask \(service) && timedatectl set-ntp true"
    ),
    ("timedatectl set-ntp false", "", "timedatectl set-ntp true"),
  ]

  /// Returns a shell script that waits for a condition.
  private static func until(_ condition: String) -> String {
    "tries=0; until \(condition); do tries=$((tries + 1)); [ $tries -lt 300 ]; sleep 0.1; done"
  }

  /// Makes the system ready: the library, no time service, and one in the archive that runs in a container and acts as if
  /// it had reached a time server.
  private func prepareClock(_ system: Container) async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "kernel-\(UUID().uuidString).so")
    defer { try? FileManager.default.removeItem(at: file) }
    let compiled = try TestSupport.run(
      ["cc", "-shared", "-fPIC", "-x", "c", "-o", file.path, "-"], input: Self.kernel)
    try #require(compiled.status == 0, "\(compiled)")
    try await system.copy(file, to: Self.library)
    try await system.write(
      """
      [Unit]
      ConditionVirtualization=
      [Service]
      AmbientCapabilities=
      ExecStartPost=/bin/touch /run/systemd/timesync/synchronized
      """, to: "\(Self.folder)/test.conf")
    try await system.shell(
      "rm /etc/systemd/system/\(Self.service); systemctl daemon-reload; apt-get --quiet --quiet update")
  }

  /// Runs the checks, with the kernel's answer of the library.
  private func checkClock(_ system: Container) async throws -> (all: Diagnosis, clock: Diagnosis.Entry) {
    let outcome = try await system.attempt("LD_PRELOAD=\(Self.library) identityctl check --json")
    let found = try JSONDecoder().decode(Diagnosis.self, from: Data(outcome.output.utf8))
    return (found, try found["clock"])
  }

  @Test(arguments: Container.newest)
  func `the remedy for a clock that is not synchronized starts the time service`(suite: String) async throws {
    let system = try await reinstalled(suite)
    let usual = try await check(system).findings.map(\.check).filter { $0 != "clock" }
    try await prepareClock(system)
    for (script, lack, command) in Self.lacks {
      // A service that has stopped takes its file along.
      try await system.shell(
        "\(script)\n\(Self.until("[ ! -e /run/systemd/timesync/synchronized ]"))")
      let clock = try await checkClock(system).clock
      #expect(clock.result == "warning" && clock.cause == "the clock is not synchronized\(lack)", "\(clock)")
      #expect(clock.mend == command, "\(clock)")
      // The service manager starts the service after timedatectl has ended.
      try await system.shell(
        """
        \(try #require(clock.command(copy: "")))
        \(Self.until("systemctl --quiet is-active \(Self.service)"))
        """)
      let after = try await checkClock(system)
      #expect(after.all.ok && after.all.findings.map(\.check) == usual, "\(script): \(after)")
      #expect(after.clock.result == "ok" && after.clock.facts["synchronized"] == .flag(true), "\(after)")
    }
    try await system.shell(
      """
      apt-get --yes purge systemd-timesyncd
      rm -rf \(Self.folder) \(Self.library)
      ln -sfn /dev/null /etc/systemd/system/\(Self.service); systemctl daemon-reload
      """)
  }
}
