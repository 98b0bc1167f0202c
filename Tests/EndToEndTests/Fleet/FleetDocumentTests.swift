import Foundation
import TestSupport
import Testing

/// The example of the fleet in the README, which an ordinary user runs.
@Suite(.tags(.slow)) struct FleetDocumentTests {
  private static let programs = ["identityd", "identityctl", "identity-fleet"]
  /// The user who runs the example, if the tests run as root.
  private static let user = 1_000

  /// Runs the example without some of the programs.
  ///
  /// - Parameter port: the port of the broker.
  private func runExample(without missing: String? = nil, port: UInt16) throws
    -> (status: Int32, output: String, errors: String)
  {
    // The user must be able to read the programs, wherever they were built.
    let folder = URL(filePath: "/tmp/identityd-readme-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.path
    try #require(try run(["chmod", "1777", path]).status == 0)
    for program in Self.programs where program != missing {
      let copy = "\(path)/\(program)"
      try FileManager.default.copyItem(atPath: "\(DaemonUnderTest.binaries.path)/\(program)", toPath: copy)
      try #require(try run(["chmod", "755", copy]).status == 0)
    }
    let block = try Document(.readme).commands(of: "fleet").joined(separator: "\n")
    let folders = missing == nil ? "/usr/sbin" : "/nonexistent"
    let script = block.replacing("18830", with: "\(port)").replacing("/usr/sbin", with: folders)
    let asUser =
      isRoot ? ["setpriv", "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups", "--no-new-privs"] : []
    defer {
      // The example leaves nothing behind.
      let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
      #expect(Set(names).isSubset(of: Self.programs), "\(names)")
    }
    return try run(
      ["timeout", "300"] + asUser + ["bash", "-c", script],
      environment: ["PATH": "\(path):/usr/bin:/bin", "TMPDIR": path, "HOME": path])
  }

  @Test func `each of three machines of an ordinary user lists all three`() throws {
    let (descriptor, port) = try BrokerUnderTest.listener()
    close(descriptor)
    let result = try runExample(port: port)
    #expect(result.status == 0, "\(result)")
    let rows = result.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    let lists = rows.suffix(12).filter { $0.first != "UUID" }
    #expect(lists.count == 9 && rows.suffix(12).first?.contains("NAME") == true, "\(result)")
    #expect(Dictionary(grouping: lists) { $0.first }.values.map(\.count) == [3, 3, 3], "\(result)")
    for name in ["desk", "laptop", "phone"] { #expect(lists.count { $0.contains(name) } == 3, "\(result)") }
    #expect(!result.errors.contains("rm:"), "\(result)")
  }

  @Test(arguments: programs + ["mosquitto"])
  func `the example ends with an error if a program is missing`(missing: String) throws {
    let result = try runExample(without: missing, port: 1)
    #expect(result.status == 1, "\(result)")
    #expect(result.errors.contains("\(missing): not found"), "\(result)")
    #expect(result.output == "")
  }
}
