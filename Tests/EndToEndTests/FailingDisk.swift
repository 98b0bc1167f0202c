import Foundation
import TestSupport

/// A file system on a disk whose writes can be made to fail, and whose power can be cut.
///
/// What the disk holds is a file. nbdkit serves it and fails the writes, nbdfuse makes a file of that again, and a loop
/// device a disk: so it is the kernel's own file system and page cache that meet the error.
final class FailingDisk {
  /// What is on the disk.
  enum FileSystem: String, CaseIterable {
    case ext4, xfs, btrfs

    fileprivate var size: Int { self == .ext4 ? 64 << 20 : 320 << 20 }

    fileprivate var making: [String] {
      switch self {
      case .ext4: ["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
      case .xfs: ["mkfs.xfs", "-q"]
      case .btrfs: ["mkfs.btrfs", "-q"]
      }
    }

    /// A copy of an XFS has the identifier of the one that is still being unmounted.
    fileprivate var options: [String] { self == .xfs ? ["-o", "nouuid"] : [] }

    /// Those that the kernel and the machine have.
    static let available: [FileSystem] = {
      let known = (try? String(contentsOfFile: "/proc/filesystems", encoding: .utf8)) ?? ""
      return allCases.filter { system in
        known.split(whereSeparator: \.isWhitespace).contains(Substring(system.rawValue))
          && (try? TestSupport.run(["which", system.making[0]]).status) == 0
      }
    }()
  }

  private let system: FileSystem
  private let folder: URL
  private let content: URL
  private let place: URL
  private let server = Process()
  private let front = Process()
  private var device = ""

  /// Makes the disk with an empty file system, and mounts that.
  ///
  /// - Parameters:
  ///   - system: nil for none, and nothing is mounted then.
  ///   - folder: where its own files go, in memory.
  ///   - place: the folder that it is mounted on.
  init(_ system: FileSystem? = .ext4, in folder: URL, mountedOn place: URL) throws {
    self.folder = folder
    self.system = system ?? .ext4
    self.place = place
    content = folder.appending(path: "disk")
    let (socket, mount) = (folder.appending(path: "nbd.socket"), folder.appending(path: "nbd"))
    for made in [place, mount] { try FileManager.default.createDirectory(at: made, withIntermediateDirectories: true) }
    try must(["truncate", "--size=\(self.system.size)", content.path])
    let errors = ["pwrite", "zero"].flatMap { call in
      ["error-\(call)=EIO", "error-\(call)-rate=100%", "error-\(call)-file=\(failing.path)"]
    }
    try launch(
      server, ["nbdkit", "--foreground", "--unix", socket.path, "--filter=error", "file", content.path] + errors)
    try wait("nbdkit") { FileManager.default.fileExists(atPath: socket.path) }
    let file = mount.appending(path: "disk")
    try launch(front, ["nbdfuse", file.path, "--unix", socket.path])
    try wait("nbdfuse") {
      (try? FileManager.default.attributesOfItem(atPath: file.path))?[.size] as? Int == self.system.size
    }
    device = try must(["losetup", "--find", "--show", file.path]).trimmingCharacters(in: .newlines)
    // A loop device takes a write that was done in part for done. So that none is, each fits into one message.
    let limit = "/sys/block/\(device.dropFirst("/dev/".count))/queue/max_sectors_kb"
    try Data("32".utf8).write(to: URL(filePath: limit))
    guard let system else { return }
    try must(system.making + [device])
    try must(["mount"] + system.options + [device, place.path])
    try must(["chmod", "0700", place.path])
  }

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
    try must(["cp", "--sparse=always", content.path, rest.path])
    fails = true
    kill(server.processIdentifier, SIGCONT)
    end()
    self.rest = rest
  }

  private var rest: URL?

  /// Mounts what the disk held when the power was cut, where it was before.
  func mountAgain() throws {
    guard let rest else { throw Failure("the power was not cut") }
    if system == .btrfs { _ = try? run(["btrfs", "device", "scan", "--forget"]) }
    device = try must(["losetup", "--find", "--show", rest.path]).trimmingCharacters(in: .newlines)
    // What the kernel has of an earlier disk under this name is none of this one.
    try must(["blockdev", "--flushbufs", device])
    try must(["mount"] + system.options + [device, place.path])
  }

  /// What a stretch of the disk holds, whatever the kernel has in its cache.
  func stored(at offset: Int, count: Int) throws -> Data {
    let file = try FileHandle(forReadingFrom: content)
    try file.seek(toOffset: UInt64(offset))
    return try file.read(upToCount: count) ?? Data()
  }

  /// The disk as a device.
  var path: String { device }

  /// Unmounts and mounts it, as an orderly reboot does.
  func remount() throws {
    try must(["umount", place.path])
    try must(["mount"] + system.options + [device, place.path])
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
