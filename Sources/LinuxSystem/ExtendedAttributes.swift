import CLinux
import Glibc

/// What is attached to files by name (xattr(7)).
package enum ExtendedAttributes {
  /// The value of an attribute of the file that a path stands for, symbolic links followed (getxattr(2)).
  ///
  /// - Returns: nil where there is no such attribute or no such file, or the file system has no attributes.
  /// - Throws: ERANGE where it is longer than 4,096 bytes.
  package static func value(_ name: String, of path: String) throws(SystemError) -> [UInt8]? {
    var value = [UInt8](repeating: 0, count: 4_096)
    do {
      let count = try system("getxattr \(path)") {
        unsafe value.withUnsafeMutableBytes { room in
          unsafe clinux_extended_attribute(path, name, room.baseAddress, room.count)
        }
      }
      return Array(value.prefix(count))
    } catch  where [ENODATA, ENOENT, ENOTDIR, ENOTSUP].contains(error.code) {
      return nil
    }
  }
}
