import Foundation
import IdentityStore
import Testing

struct StateDirectoryTests {
  @Test func `a missing folder is made with a private mode`() throws {
    let workspace = try Workspace()
    _ = try StateDirectory.open(path: workspace.state)
    #expect(try workspace.mode("") == 0o700)
    #expect(try workspace.mode("lock") == 0o600)
  }

  @Test func `a second daemon is told who holds the folder`() throws {
    let workspace = try Workspace()
    let held = try StateDirectory.open(path: workspace.state)
    guard case .held(let path, let holder) = try workspace.refusal() else {
      Issue.record("not refused as held")
      return
    }
    #expect(path == workspace.state)
    #expect(holder == "pid \(ProcessInfo.processInfo.processIdentifier)")
    // The attempt does not disturb the first holder, which still holds the folder.
    guard case .held = try workspace.refusal() else {
      Issue.record("the first refusal took the lock away")
      return
    }
    withExtendedLifetime(held) {}
  }

  @Test func `an open store holds the folder and releases it with the store`() throws {
    let workspace = try Workspace()
    try workspace.withStore { _, _ in
      guard case .held = try workspace.refusal() else {
        Issue.record("two stores on one folder")
        return
      }
    }
    _ = try workspace.found()
  }

  @Test func `a folder is free at once even if a forked child has the lock file open`() throws {
    let workspace = try Workspace()
    // The second time, the lock file exists already.
    letGo(of: try StateDirectory.open(path: workspace.state))
    let held = try StateDirectory.open(path: workspace.state)
    let copies = try workspace.copiesOfLock()
    defer { for copy in copies { close(copy) } }
    #expect(copies.count == 1)
    letGo(of: held)
    _ = try StateDirectory.open(path: workspace.state)
  }

  private func letGo(of directory: consuming StateDirectory) {}

  @Test(arguments: [0o755, 0o750, 0o701, 0o770, 0o777])
  func `row 19: a folder that others may enter is refused, with the command that corrects it`(mode: Int) throws {
    let workspace = try Workspace()
    try workspace.makeState(mode: mode)
    let refusal = try workspace.refusal()
    guard case .unsafe(let path, _) = refusal else {
      Issue.record("\(refusal)")
      return
    }
    #expect(path == workspace.state)
    #expect(refusal.description.contains("mode \(String(mode, radix: 8))"))
    #expect(refusal.description.contains("chmod 0700 \(workspace.state)"))
    #expect(try workspace.names() == [], "nothing was made in it")
  }

  @Test(.enabled(if: isRoot, "giving a folder away needs root"))
  func `row 19: a folder of another user is refused, naming the owner`() throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let given = unsafe chown(workspace.state, 65_534, 65_534)
    try #require(given == 0)
    let refusal = try workspace.refusal()
    #expect(refusal.description.contains("it belongs to uid 65534, not to uid 0"))
    #expect(try workspace.names() == [])
  }

  @Test(arguments: ["", "/"])
  func `row 19: a symbolic link in place of the folder is refused`(end: String) throws {
    let workspace = try Workspace()
    try workspace.makeState()
    try FileManager.default.moveItem(atPath: workspace.state, toPath: workspace.root + "/elsewhere")
    try FileManager.default.createSymbolicLink(atPath: workspace.state, withDestinationPath: "elsewhere")
    #expect(throws: StateDirectoryFailure.self) { _ = try StateDirectory.open(path: workspace.state + end) }
    #expect(try workspace.names() == [], "nothing was made behind it")
  }

  @Test func `row 19: a file in place of the folder is refused and kept`() throws {
    let workspace = try Workspace()
    try Data("mine".utf8).write(to: URL(filePath: workspace.state))
    #expect(throws: StateDirectoryFailure.self) { _ = try StateDirectory.open(path: workspace.state) }
    #expect(try String(contentsOfFile: workspace.state, encoding: .utf8) == "mine")
  }

  @Test func `row 19: a symbolic link in place of the lock is not followed`() throws {
    let workspace = try Workspace()
    try workspace.makeState()
    let victim = workspace.root + "/victim"
    try Data("keep me".utf8).write(to: URL(filePath: victim))
    try FileManager.default.createSymbolicLink(atPath: workspace.path("lock"), withDestinationPath: victim)
    guard case .system = try workspace.refusal() else {
      Issue.record("not refused by the kernel")
      return
    }
    #expect(try String(contentsOfFile: victim, encoding: .utf8) == "keep me")
  }
}

/// Whether this process is root, as some faults require.
let isRoot = geteuid() == 0

extension Workspace {
  /// Duplicates every descriptor of the lock, as the child of a fork has it until its exec.
  fileprivate func copiesOfLock() throws -> [Int32] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap(Int32.init).filter { number in
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")) == path("lock")
    }.map { number in
      let copy = dup(number)
      try #require(copy >= 0)
      return copy
    }
  }
}
