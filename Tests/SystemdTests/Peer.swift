import Foundation
import LinuxSystem
import TestSupport

/// A control group for one test, and a process in it that has connected.
final class Peer {
  private static let mount = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].first {
    FileManager.default.fileExists(atPath: "\($0)/cgroup.procs")
      && FileManager.default.fileExists(atPath: "\($0)/cgroup.controllers")
  }

  /// Whether this process may create control groups in the hierarchy that libsystemd reads.
  static let canBeMade: Bool = {
    guard let mount else { return false }
    let folder = "\(mount)/\(controlGroupName())"
    return unsafe mkdir(folder, 0o755) == 0 && rmdir(folder) == 0
  }()

  private let temporary: TemporaryFolder
  private let process = Process()
  private let input = Pipe()
  private var made: [String] = []
  private var connection: Int32 = -1
  var socket: Int32 { connection }
  var processID: Int32 { process.processIdentifier }

  init(in group: String) throws {
    temporary = try TemporaryFolder()
    let (path, made) = try Self.makeFolder(of: group)
    self.made = made
    let listener = try boundSocket(SOCK_STREAM, to: temporary["socket"])
    let number = listener.number
    try system("listen") { listen(number, 1) }
    // Enters the group, connects, reports the connection, and stays until its input ends.
    let script = """
      use Socket; open(G, '>', "$ARGV[1]/cgroup.procs") or die $!; print G $$ or die $!; close(G) or die $!;
      socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, sockaddr_un($ARGV[0])) or die $!;
      $| = 1; print "connected\\n"; <STDIN>;
      """
    process.executableURL = URL(filePath: "/usr/bin/perl")
    process.arguments = ["-e", script, temporary["socket"], path]
    let output = Pipe()
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    guard output.fileHandleForReading.availableData == Data("connected\n".utf8),
      let accepted = try UnixSocket.accept(on: listener)
    else { throw Failure("not connected") }
    connection = accepted.release()
  }

  private static func makeFolder(of group: String) throws -> (path: String, made: [String]) {
    guard var path = mount else { throw Failure("no control groups") }
    var made: [String] = []
    for part in group.split(separator: "/") {
      path += "/\(part)"
      if unsafe mkdir(path, 0o755) == 0 { made.append(path) }
    }
    return (path, made)
  }

  /// Moves the process to another group.
  func move(to group: String) throws {
    let (path, made) = try Self.makeFolder(of: group)
    self.made += made
    // Writes in place, because a file of the kernel cannot be replaced.
    let file = try FileHandle(forWritingTo: URL(filePath: "\(path)/cgroup.procs"))
    try file.write(contentsOf: Data("\(processID)\n".utf8))
    try file.close()
  }

  /// Returns the inode number of an existing group.
  static func number(of group: String) throws -> UInt64 {
    guard let mount else { throw Failure("no control groups") }
    var status = stat()
    guard unsafe lstat("\(mount)/\(group)", &status) == 0 else { throw Failure("no group \(group)") }
    return UInt64(status.st_ino)
  }

  deinit {
    if connection >= 0 { close(connection) }
    try? input.fileHandleForWriting.close()
    if process.processIdentifier > 0 { process.waitUntilExit() }
    for folder in made.reversed() { unsafe rmdir(folder) }
  }
}
