import Glibc
import IdentityCore
import LinuxSystem

/// The witness of the last commit, written behind every commit and synced with some of them.
///
/// The file has two slots, each with the line of a ``Witness`` at its beginning and zeros behind it. Commits take them in
/// turn, so the slot of the commit before stays whole while one is written, and no line crosses a sector. After a kill it
/// names the last commit, after a power cut one that is at least as new as the last one synced. It never runs ahead of the
/// store.
struct LatestWitness: ~Copyable, Sendable {
  static let fileName = "witness.latest"

  private static let slotLength = 4_096
  /// How many commits may pass before the file is synced.
  private static let interval: Int64 = 64

  private let file: Descriptor

  /// Opens the file, or makes it, and returns once it says which revision the store has.
  init(_ witness: Witness, _ authenticator: borrowing Authenticator, in folder: borrowing Folder) throws(SystemError) {
    let isWhole = try folder.status(of: Self.fileName)?.size == Int64(2 * Self.slotLength)
    let file = try folder.open(Self.fileName, flags: O_RDWR | O_CREAT, mode: 0o600)
    if !isWhole { try file.overwrite(with: [UInt8](repeating: 0, count: 2 * Self.slotLength)) }
    try Self.write(witness, authenticator, to: file)
    try file.synchronize(name: Self.fileName)
    if !isWhole { try folder.synchronize() }
    self.file = file
  }

  /// Says that a commit was made.
  func take(_ witness: Witness, _ authenticator: borrowing Authenticator) throws(SystemError) {
    try Self.write(witness, authenticator, to: file)
    if witness.revision.isMultiple(of: Self.interval) { try synchronize() }
  }

  private static func write(
    _ witness: Witness, _ authenticator: borrowing Authenticator, to file: borrowing Descriptor
  ) throws(SystemError) {
    let slot = Int(witness.revision & 1)
    try file.overwrite(with: witness.bytes(authenticator), at: slot * slotLength)
  }

  /// Puts what it says on the disk.
  func synchronize() throws(SystemError) { try file.synchronize(name: Self.fileName) }

  /// The newest witness in a file of this form, or in one of the earlier form, which is the line alone.
  ///
  /// - Returns: nil where nothing in it was written by this store.
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

  /// Reads the file as ``Witness/read(_:in:limit:)`` does.
  static func read(in folder: borrowing Folder) throws(SystemError) -> [UInt8]? {
    try Witness.read(fileName, in: folder, limit: 2 * slotLength)
  }
}
