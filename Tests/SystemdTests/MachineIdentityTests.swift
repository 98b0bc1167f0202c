import Foundation
import Systemd
import TestSupport
import Testing

struct MachineIdentityTests {
  private static let hasMachineID = (try? MachineIdentity.machineID()) != nil

  private func hexadecimal(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

  private func hexadecimal(_ id: (high: UInt64, low: UInt64)) -> String {
    String(format: "%016lx%016lx", id.high, id.low)
  }

  /// Returns the output of systemd's own tool. Nil if the tool is not installed.
  private func tool(_ arguments: String...) throws -> String? {
    let path = "/usr/bin/systemd-id128"
    guard FileManager.default.isExecutableFile(atPath: path) else { return nil }
    let process = Process()
    process.executableURL = URL(filePath: path)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failure("systemd-id128: \(process.terminationStatus)") }
    return text.trimmingCharacters(in: .newlines)
  }

  @Test(.enabled(if: hasMachineID, "this machine has no machine-id"))
  func `the machine-id is the content of the file`() throws {
    let text = try String(contentsOfFile: "/etc/machine-id", encoding: .utf8)
    #expect(try hexadecimal(MachineIdentity.machineID()) == text.trimmingCharacters(in: .newlines))
  }

  private static let applications: [(high: UInt64, low: UInt64)] = [
    (0, 0), (0, 1), (1, 0), (.max, .max), (0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210), (.max, 0), (0, .max),
  ]

  @Test(.enabled(if: hasMachineID, "this machine has no machine-id"), arguments: applications)
  func `an application's ID is stable and equals that of systemd's tool`(
    application: (high: UInt64, low: UInt64)
  ) throws {
    let derived = try MachineIdentity.derived(for: application)
    #expect(try MachineIdentity.derived(for: application) == derived)
    #expect(try hexadecimal(derived) != hexadecimal(MachineIdentity.machineID()))
    // The tool cannot name the application that is all zeros.
    guard application != (0, 0) else { return }
    let told = try tool("machine-id", "--app-specific=\(hexadecimal(application))")
    if let told { #expect(told == hexadecimal(derived)) }
  }

  @Test(.enabled(if: hasMachineID, "this machine has no machine-id"))
  func `different applications have different IDs`() throws {
    let derived = try Self.applications.map { try hexadecimal(MachineIdentity.derived(for: $0)) }
    #expect(Set(derived).count == derived.count)
    #expect(derived.allSatisfy { $0.count == 32 })
  }

  @Test func `the boot ID is the kernel's`() throws {
    let text = try String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
    #expect(
      try hexadecimal(MachineIdentity.boot())
        == text.replacingOccurrences(of: "-", with: "").trimmingCharacters(in: .newlines))
  }
}
