import Foundation
import TestSupport

/// A file system on a disk whose writes can be made to fail and whose power can be cut.
///
/// The content of the disk is a file. nbdkit serves this file and fails the writes, nbdfuse turns the service into
/// a file again, and a loop device turns that file into a disk. So the kernel's own file system and page cache meet
/// the error.
final class FailingDisk {
  /// The type of the file system.
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

    /// The mount options. A copy of an XFS has the UUID of the original, which may not be unmounted yet.
    fileprivate var options: [String] { self == .xfs ? ["-o", "nouuid"] : [] }

    /// The file systems that the kernel supports and whose mkfs program is installed.
    static let available: [FileSystem] = {
      let known = (try? String(contentsOfFile: "/proc/filesystems", encoding: .utf8)) ?? ""
      return allCases.filter { system in
        known.split(whereSeparator: \.isWhitespace).contains(Substring(system.rawValue))
          && (try? TestSupport.run(["which", system.making[0]]).status) == 0
      }
    }()
  }

  private let system: FileSystem
  private let options: [String]
  private let folder: URL
  private let content: URL
  private let place: URL
  private let server = Process()
  private let front = Process()
  private var device = ""

  /// Creates the disk with an empty file system and mounts the file system.
  ///
  /// - Parameters:
  ///   - system: the type of the file system. Nil for a disk without one, which is not mounted.
  ///   - folder: the folder for the disk's own files, preferably in memory.
  ///   - place: the mount point.
  ///   - options: mount options, besides those that a copy of the file system needs.
  init(_ system: FileSystem? = .ext4, in folder: URL, mountedOn place: URL, options: [String] = []) throws {
    self.folder = folder
    self.system = system ?? .ext4
    self.options = self.system.options + options.flatMap { ["-o", $0] }
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
    // A loop device treats a partial write as a complete one. The limit makes every write fit into one message, so that
    // no write is partial.
    let limit = "/sys/block/\(device.dropFirst("/dev/".count))/queue/max_sectors_kb"
    try Data("32".utf8).write(to: URL(filePath: limit))
    guard let system else { return }
    try must(system.making + [device])
    try must(["mount"] + self.options + [device, place.path])
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

  /// Cuts the power: saves the current content of the disk, and discards everything that the kernel has not
  /// written yet.
  ///
  /// - Parameter end: ends the processes that use the disk.
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

  /// Mounts the saved content of the power cut at the mount point.
  func mountAgain() throws {
    guard let rest else { throw Failure("the power was not cut") }
    if system == .btrfs { _ = try? run(["btrfs", "device", "scan", "--forget"]) }
    device = try must(["losetup", "--find", "--show", rest.path]).trimmingCharacters(in: .newlines)
    // Drops the kernel's cache of an earlier disk with the same device name.
    try must(["blockdev", "--flushbufs", device])
    try must(["mount"] + options + [device, place.path])
  }

  /// Reads a range of the disk's content, bypassing the kernel's cache.
  func stored(at offset: Int, count: Int) throws -> Data {
    let file = try FileHandle(forReadingFrom: content)
    try file.seek(toOffset: UInt64(offset))
    return try file.read(upToCount: count) ?? Data()
  }

  /// The path of the block device.
  var path: String { device }

  /// Unmounts and mounts the file system, as an orderly reboot does.
  func remount() throws {
    try must(["umount", place.path])
    try must(["mount"] + options + [device, place.path])
  }

  /// Unmounts the file system, detaches the device and ends the helper processes.
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

  /// The reason why such a disk is impossible on this machine. Nil if it is possible.
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
