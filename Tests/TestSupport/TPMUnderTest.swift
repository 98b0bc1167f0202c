import Foundation

/// A TPM 2.0 in software, by swtpm.
package final class TPMUnderTest {
  private let folder: TemporaryFolder
  private var process = Process()

  /// The name of the TPM for the libraries of tpm2-tss.
  package var name: String { "swtpm:path=\(folder["socket"])" }
  /// The setting by which tpm2-openssl finds the TPM.
  package var setting: String { "TPM2OPENSSL_TCTI=\(name)" }

  /// Makes a TPM, and starts it.
  package init() throws {
    folder = try TemporaryFolder()
    try start()
  }

  deinit { kill(SIGKILL) }

  /// Starts the TPM with the state that it has.
  package func start() throws {
    let state = folder["state"]
    try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
    for socket in ["socket", "socket.ctrl"] { try? FileManager.default.removeItem(atPath: folder[socket]) }
    process = Process()
    process.executableURL = URL(filePath: "/usr/bin/swtpm")
    process.arguments = [
      "socket", "--tpm2", "--tpmstate", "dir=\(state)", "--server", "type=unixio,path=\(folder["socket"])", "--ctrl",
      "type=unixio,path=\(folder["socket"]).ctrl", "--flags", "startup-clear,not-need-init",
    ]
    process.standardInput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.runUnmasked()
    try wait("the TPM starts") { try run(tool("tpm2_getrandom", "1")).status == 0 }
  }

  /// Powers the TPM off in order. Otherwise each power cut would count as a failed authorization.
  package func stop() throws {
    _ = try run(tool("tpm2_shutdown", "-c"))
    kill(SIGTERM)
  }

  /// Sends a signal, and waits for the end unless it only stops or continues the TPM.
  package func kill(_ signal: Int32) {
    guard process.isRunning else { return }
    Glibc.kill(process.processIdentifier, signal)
    if signal != SIGSTOP, signal != SIGCONT { process.waitUntilExit() }
  }

  /// Clears the TPM, as its owner does in the firmware.
  package func clear() throws {
    let cleared = try run(tool("tpm2_clear", "-c", "platform"))
    guard cleared.status == 0 else { throw Failure("the TPM was not cleared: \(cleared)") }
  }

  /// Replaces the TPM by another one.
  package func exchange() throws {
    try stop()
    try FileManager.default.removeItem(atPath: folder["state"])
    try start()
  }

  private func tool(_ words: String...) -> [String] { ["env", "TPM2TOOLS_TCTI=\(name)"] + words }
}
