import Foundation
import TestSupport
import Testing

/// `packaging/tools/isolate`: a test run leaves nothing behind, however it ends.
@Suite(.needs(Requirement.missingForContainers), .timeLimit(.minutes(5)))
struct IsolationTests {
  private static let tool = checkout.appending(path: "packaging/tools/isolate")

  /// A script that creates one of each resource that a test run creates, and writes the path of its scratch
  /// folder to "$1".
  ///
  /// It exits with status "$2", or waits to be killed if "$2" is empty. Its processes have the argument "$3"
  /// as their mark.
  private static let script = """
    file=$TMPDIR/disk
    truncate --size=1M "$file"
    losetup --find "$file"
    mkdir "$TMPDIR/mounted" "$TMPDIR/TemporaryDirectory.abc123"
    mount -t tmpfs tmpfs "$TMPDIR/mounted"
    for hierarchy in /sys/fs/cgroup/unified /sys/fs/cgroup; do
      [ ! -e $hierarchy/cgroup.controllers ] || { mkdir "$hierarchy/$(basename "$IDENTITYD_TEST_SCRATCH")-x"; break; }
    done
    touch /dev/shm/identityd-left
    setsid sleep infinity "0.$3" &
    packaging/tools/container up left-behind bookworm
    echo "$IDENTITYD_TEST_SCRATCH" >"$1.new"
    mv "$1.new" "$1"
    [ -n "$2" ] || sleep infinity "0.$3"
    exit "$2"
    """

  @Test(arguments: [SIGKILL, SIGTERM, SIGINT, nil])
  func `a run that is interrupted, fails or passes leaves nothing behind`(signal: Int32?) async throws {
    let folder = try TemporaryFolder()
    let marker = String(UInt64.random(in: 1_000_000_000_000...9_999_999_999_999))
    let process = Process()
    process.executableURL = Self.tool
    process.arguments = ["bash", "-euc", Self.script, "script", folder["scratch"], signal == nil ? "7" : "", marker]
    process.currentDirectoryURL = checkout
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    let errors = folder["errors"]
    try Data().write(to: URL(filePath: errors))
    process.standardError = try FileHandle(forWritingTo: URL(filePath: errors))
    try process.runUnmasked()
    if let signal {
      try await eventually("everything is made") {
        guard process.isRunning else { throw Failure(try folder.text("errors")) }
        return folder.kind("scratch") != nil
      }
      #expect(try await !left(by: folder.text("scratch"), marker).isEmpty)
      kill(process.processIdentifier, signal)
    }
    try await eventually("it ends") { !process.isRunning }
    switch signal {
    case nil: #expect(process.terminationStatus == 7)
    case SIGKILL: #expect(process.terminationReason == .uncaughtSignal)
    case let signal?: #expect(process.terminationStatus == 128 + signal)
    }
    let scratch = try folder.text("scratch")
    // Only if the script itself was killed is the cleanup left to its watcher.
    if signal == SIGKILL {
      try await eventually("nothing is left") { try await left(by: scratch, marker).isEmpty }
    }
    #expect(try await left(by: scratch, marker) == [])
  }

  /// Returns the leftovers of a run: its scratch folder, processes, loop devices, mounts and cgroups.
  private func left(by scratch: String, _ marker: String) async throws -> [String] {
    let script = """
      scratch=$(echo "$1")
      # The watcher may be removing the folder at the same time.
      find "$scratch" 2>/dev/null || true
      pgrep --full --list-full "sleep infinity 0.$2" || true
      losetup --list --noheadings --output NAME,BACK-FILE | grep --fixed-strings "$scratch" || true
      grep --fixed-strings "$scratch" /proc/mounts || true
      find /sys/fs/cgroup -name "*$(basename "$scratch")*" 2>/dev/null || true
      [ ! -e /dev/shm/identityd-left ] || echo /dev/shm/identityd-left
      """
    let outcome = try await run(
      URL(filePath: "/bin/bash"),
      ["-euc", script, "script", scratch.trimmingCharacters(in: .whitespacesAndNewlines), marker])
    #expect(outcome.status == 0, "\(outcome.errors)")
    return outcome.output.split(separator: "\n").map(String.init)
  }
}
