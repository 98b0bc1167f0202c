import CLinux
import Glibc

extension Folder {
  /// The largest number of symbolic links in a path, which is the kernel's own (path_resolution(7)).
  private static let mostLinks = 40

  /// Opens a folder, following only symbolic links of root and of this process's user.
  ///
  /// A privileged process that writes at a fixed path must not let the owner of a folder on the way lead the process
  /// elsewhere. The path is walked from descriptor to descriptor, so a change during the walk redirects nothing either.
  ///
  /// - Parameter unredirected: the path. A symbolic link in place of the folder itself may be followed, too.
  /// - Throws: ELOOP for a symbolic link of another user, or for too many links; or the reason why a folder on the way
  ///   cannot be opened.
  package init(unredirected given: String) throws(SystemError) {
    let owners: [UInt32] = [0, geteuid()]
    var folder = try Self.start(of: given)
    var rest = Self.parts(of: given)
    var links = 0
    while let part = rest.popFirst() {
      let next = try Self.step(from: folder, to: String(part), of: given)
      let found = try Self.status(of: next, given)
      guard found.st_mode & S_IFMT == S_IFLNK else {
        folder = next
        continue
      }
      guard owners.contains(found.st_uid) else {
        throw SystemError(call: "follow the symbolic link '\(part)' of user \(found.st_uid) in \(given)", code: ELOOP)
      }
      links += 1
      guard links <= Self.mostLinks else { throw SystemError(call: "open \(given)", code: ELOOP) }
      let target = try Self.target(of: next, given)
      if target.hasPrefix("/") { folder = try Self.start(of: target) }
      rest = Self.parts(of: target) + rest
    }
    let number = folder.number
    self.init(
      adopting: Descriptor(
        adopting: try system("open \(given)") { unsafe clinux_openat(number, ".", O_RDONLY | O_DIRECTORY, 0) }),
      path: given)
  }

  private static func parts(of path: String) -> ArraySlice<Substring> { path.split(separator: "/")[...] }

  /// Opens the folder where a path begins.
  private static func start(of path: String) throws(SystemError) -> Descriptor {
    let start = path.hasPrefix("/") ? "/" : "."
    return Descriptor(adopting: try system("open \(start)") { unsafe clinux_open(start, O_RDONLY | O_DIRECTORY, 0) })
  }

  /// Opens the next folder or symbolic link of a path, with no other right than to go on from there.
  private static func step(
    from folder: borrowing Descriptor, to part: String, of path: String
  ) throws(SystemError) -> Descriptor {
    let number = folder.number
    return Descriptor(adopting: try system("open \(path)") { unsafe clinux_openat_path(number, part) })
  }

  private static func status(of file: borrowing Descriptor, _ path: String) throws(SystemError) -> stat {
    var status = stat()
    let number = file.number
    try system("fstat \(path)") { unsafe fstat(number, &status) }
    return status
  }

  /// Reads the target of an open symbolic link (the empty name in readlink(2)).
  private static func target(of link: borrowing Descriptor, _ path: String) throws(SystemError) -> String {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let number = link.number
    let count = try system("readlink \(path)") { unsafe readlinkat(number, "", &target, target.count) }
    return String(decoding: target.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
