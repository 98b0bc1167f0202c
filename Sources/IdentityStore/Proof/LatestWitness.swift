import Glibc
import IdentityCore
import LinuxSystem

/// The witness of the last commit, written after every commit and synced after some of them.
///
/// The file has two slots. Each begins with the line of a ``Witness`` and is filled up with zeros. Commits write to the
/// slots in turn, so the slot of the previous commit stays intact during a write. No line crosses a sector boundary.
/// After a kill the file names the last commit. After a power cut it names a commit that is at least as new as the last
/// one synced. The file is never ahead of the store.
struct LatestWitness: ~Copyable, Sendable {
  static let fileName = "witness.latest"

  private static let slotLength = 4_096
  /// The number of commits between two syncs of the file.
  private static let interval: Int64 = 64

  private let file: Descriptor

  /// Opens or creates the file, and returns once the current revision is recorded and synced.
  init(_ witness: Witness, _ authenticator: borrowing Authenticator, in folder: borrowing Folder) throws(SystemError) {
    let isWhole = try folder.status(of: Self.fileName)?.size == Int64(2 * Self.slotLength)
    let file = try folder.open(Self.fileName, flags: O_RDWR | O_CREAT, mode: 0o600)
    if !isWhole { try file.overwrite(with: [UInt8](repeating: 0, count: 2 * Self.slotLength)) }
    try Self.write(witness, authenticator, to: file)
    try file.synchronize(name: Self.fileName)
    if !isWhole { try folder.synchronize() }
    self.file = file
  }

  /// Records a commit.
  func record(_ witness: Witness, _ authenticator: borrowing Authenticator) throws(SystemError) {
    try Self.write(witness, authenticator, to: file)
  }

  /// Syncs the file to disk if it is time.
  ///
  /// - Parameter revision: the revision of the commit that was recorded.
  func synchronizeIfDue(after revision: Int64) throws(SystemError) {
    if revision.isMultiple(of: Self.interval) { try synchronize() }
  }

  private static func write(
    _ witness: Witness, _ authenticator: borrowing Authenticator, to file: borrowing Descriptor
  ) throws(SystemError) {
    let slot = Int(witness.revision & 1)
    try file.overwrite(with: witness.bytes(authenticator), at: slot * slotLength)
  }

  /// Syncs the file to disk.
  func synchronize() throws(SystemError) { try file.synchronize(name: Self.fileName) }

  /// Returns the newest witness in a file of this format, or of the earlier format, which is a single line.
  ///
  /// - Returns: nil if the content has no witness of this store.
  static func newest(in content: [UInt8], _ authenticator: borrowing Authenticator) -> Witness? {
    var newest: Witness?
    for start in [0, slotLength] where start < content.count {
      let slot = content[start..<min(start + slotLength, content.count)]
      guard let end = slot.firstIndex(of: UInt8(ascii: "\n")),
        let witness = Witness(Array(slot[...end]), authenticator), witness.revision >= newest?.revision ?? 0
      else { continue }
      newest = witness
    }
    return newest
  }

  /// Reads the file; nil if it is missing. A file that is too long is returned as one invalid byte.
  static func read(in folder: borrowing Folder) throws(SystemError) -> [UInt8]? {
    try Witness.read(fileName, in: folder, limit: 2 * slotLength)
  }
}
