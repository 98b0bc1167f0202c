import Foundation
import TestSupport

/// An ext4 on a disk whose writes can be made to fail, and whose power can be cut.
///
/// What the disk holds is a file. nbdkit serves it and fails the writes, nbdfuse makes a file of that again, and a loop
/// device a disk: so it is the kernel's own ext4 and its page cache that meet the error.
final class FailingDisk {
  private let folder: URL
  private let content: URL
  private let place: URL
  private let server = Process()
  private let front = Process()
  private var device = ""

  /// Makes the disk with an empty file system, and mounts that.
  ///
  /// - Parameters:
  ///   - folder: where its own files go, in memory.
  ///   - place: the folder that it is mounted on.
  init(in folder: URL, mountedOn place: URL) throws {
    self.folder = folder
    self.place = place
    content = folder.appending(path: "disk")
    let (socket, mount) = (folder.appending(path: "nbd.socket"), folder.appending(path: "nbd"))
    for made in [place, mount] { try FileManager.default.createDirectory(at: made, withIntermediateDirectories: true) }
    try must(["truncate", "--size=\(Self.size)", content.path])
    let errors = ["pwrite", "zero"].flatMap { call in
      ["error-\(call)=EIO", "error-\(call)-rate=100%", "error-\(call)-file=\(failing.path)"]
    }
    try launch(
      server, ["nbdkit", "--foreground", "--unix", socket.path, "--filter=error", "file", content.path] + errors)
    try wait("nbdkit") { FileManager.default.fileExists(atPath: socket.path) }
    let file = mount.appending(path: "disk")
    try launch(front, ["nbdfuse", file.path, "--unix", socket.path])
    try wait("nbdfuse") {
      (try? FileManager.default.attributesOfItem(atPath: file.path))?[.size] as? Int == Self.size
    }
    device = try must(["losetup", "--find", "--show", file.path]).trimmingCharacters(in: .newlines)
    try must(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device])
    try must(["mount", device, place.path])
    try must(["chmod", "0700", place.path])
  }

  private static let size = 64 << 20

  deinit { remove() }

  /// Whether writes to the disk fail.
  var fails: Bool {
    get { FileManager.default.fileExists(atPath: failing.path) }
    set {
      if newValue {
        _ = FileManager.default.createFile(atPath: failing.path, contents: nil)
      } else {
        try? FileManager.default.removeItem(at: failing)
      }
    }
  }

  private var failing: URL { folder.appending(path: "failing") }

  /// Cuts the power: what the disk holds at this moment is all there is, and nothing that the kernel still has gets there.
  ///
  /// - Parameter end: ends whoever uses the disk.
  func cut(_ end: () -> Void) throws {
    kill(server.processIdentifier, SIGSTOP)
    let rest = folder.appending(path: "rest")
    defer { remove() }
    try FileManager.default.copyItem(at: content, to: rest)
    fails = true
    kill(server.processIdentifier, SIGCONT)
    end()
    self.rest = rest
  }

  private var rest: URL?

  /// Mounts what the disk held when the power was cut, where it was before.
  func mountAgain() throws {
    guard let rest else { throw Failure("the power was not cut") }
    try must(["mount", "-o", "loop", rest.path, place.path])
  }

  /// Unmounts and mounts it, as an orderly reboot does.
  func remount() throws {
    try must(["umount", place.path])
    try must(["mount", device, place.path])
  }

  /// Takes everything down.
  func remove() {
    _ = try? run(["umount", "--lazy", place.path])
    if !device.isEmpty { _ = try? run(["losetup", "--detach", device]) }
    device = ""
    for process in [front, server] where process.isRunning {
      process.terminate()
      process.waitUntilExit()
    }
  }

  private func launch(_ process: Process, _ command: [String]) throws {
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.runUnmasked()
  }

  private func wait(_ name: String, until isTrue: () -> Bool) throws {
    let deadline = Date(timeIntervalSinceNow: patience)
    while !isTrue() {
      guard Date() < deadline else { throw Failure("\(name) does not start") }
      usleep(1_000)
    }
  }

  @discardableResult
  private func must(_ command: [String]) throws -> String {
    let result = try TestSupport.run(command)
    guard result.status == 0 else { throw Failure("\(command): \(result.errors)") }
    return result.output
  }

  /// Why there can be no such disk here; nil where there can.
  static let missing: String? = {
    guard isRoot else { return "mounting takes root" }
    for device in ["/dev/fuse", "/dev/loop-control"] where !FileManager.default.fileExists(atPath: device) {
      return "there is no \(device)"
    }
    for program in ["nbdkit", "nbdfuse", "fusermount3", "losetup", "mkfs.ext4"]
    where (try? TestSupport.run(["which", program]).status) != 0 {
      return "there is no \(program)"
    }
    return nil
  }()
}
