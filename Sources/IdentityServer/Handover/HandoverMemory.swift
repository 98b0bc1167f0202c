import Glibc
import IdentityCore
import LinuxSystem

/// The state of all connections for the next run of the daemon, in a memory file that outlives this process.
///
/// The service manager holds the file too. The file is kept current all the time, because a kill gives no notice.
///
/// The file begins with words that are written without a system call: for each connection its ``State`` and the
/// position of its subscription. Then each connection has a region for its ``HandoverRecord``. The file is sparse, so
/// unused parts take no memory.
final class HandoverMemory {
  /// The state of a slot, which tells whether the connection can be taken over.
  enum State: UInt64 {
    case free = 0
    /// The connection is at rest, and its record is complete.
    case atRest = 1
    /// A request is being answered or output is being sent, so the progress at a kill would be unknown.
    case busy = 2
  }

  private let file: MemoryFile
  private let words: SharedWords
  /// The allocated size of each slot's record, in bytes, a multiple of the page size.
  private var lengths: [Int: Int] = [:]

  fileprivate static let magic: UInt64 = 0x6964_656e_7469_7479
  /// The version of the format. A daemon with another version takes nothing over.
  fileprivate static let version: UInt64 = 2
  private static let firstSlotWord = 8
  private static let wordsPerSlot = 4
  /// The size of a region, in bytes: room for the longest line, the maximum pending output, and 10,000 UUIDs after it.
  ///
  /// A longer list that a client does not read is not kept over a kill. The connection is closed then.
  private static let stretch = 1_048_576
  private static var wordCount: Int { firstSlotWord + Bound.rememberedConnections * wordsPerSlot }
  private static var firstStretch: Int { (wordCount * 8 + stretch - 1) / stretch * stretch }

  init() throws(SystemError) {
    file = try MemoryFile(named: "identityd-connections")
    try file.resize(to: Self.firstStretch + Bound.rememberedConnections * Self.stretch)
    words = try SharedWords(of: file, count: Self.wordCount)
    words[0] = Self.magic
    words[1] = Self.version
  }

  /// The descriptor to give to the service manager.
  var descriptor: Int32 { file.descriptor.number }

  // MARK: Keeping

  /// Saves the record of a connection in a slot, and marks the connection as at rest.
  ///
  /// - Returns: false if the record cannot be saved: the slot number or the record is too large, or there is no memory.
  @discardableResult
  func keep(_ record: HandoverRecord, in slot: Int) -> Bool {
    var bytes = record.bytes
    defer { bytes.wipe() }
    // The old record is out of date, even if saving the new one fails.
    set(.busy, slot)
    guard slot < Bound.rememberedConnections, bytes.count <= Self.stretch else { return false }
    let start = Self.firstStretch + slot * Self.stretch
    let pages = (bytes.count + Self.page - 1) / Self.page * Self.page
    let length = bytes.count
    // Padded to the end of the page, to overwrite the rest of a longer record, for example a line with a secret.
    bytes += repeatElement(0, count: pages - length)
    do {
      try file.write(bytes, at: start)
      if let taken = lengths[slot], taken > pages { try file.punchHole(at: start + pages, length: taken - pages) }
    } catch {
      return false
    }
    lengths[slot] = pages
    words[word(slot) + 1] = UInt64(length)
    if let position = record.subscription?.position { set(position: position, slot) }
    set(.atRest, slot)
    return true
  }

  private static let page = 4_096

  /// Marks a connection as busy, or as at rest with its saved record still current.
  func set(_ state: State, _ slot: Int) { words[word(slot)] = state.rawValue }

  /// Saves the position of a connection's subscription.
  func set(position: Int64, _ slot: Int) { words[word(slot) + 2] = UInt64(bitPattern: position) }

  /// Frees the slot of a connection.
  func forget(_ slot: Int) {
    set(.free, slot)
    guard let length = lengths.removeValue(forKey: slot) else { return }
    // After a failure, the memory is reused together with the slot.
    try? file.punchHole(at: Self.firstStretch + slot * Self.stretch, length: length)
  }

  /// Saves the last ascending UUID that was handed out.
  func set(lastUUID uuid: UUID) {
    words[2] = uuid.high
    words[3] = uuid.low
  }

  private func word(_ slot: Int) -> Int { Self.firstSlotWord + slot * Self.wordsPerSlot }

  // MARK: Taking over

  /// The state that an earlier run left: the records by inode number of the socket, and the last ascending UUID.
  struct Legacy {
    var records: [UInt64: HandoverRecord] = [:]
    var lastUUID = UUID.zero
  }

  /// Reads the state that an earlier run had reached. Returns an empty state if the format differs.
  static func legacy(of file: borrowing MemoryFile) throws(SystemError) -> Legacy {
    var legacy = Legacy()
    guard try file.length() >= firstStretch else { return legacy }
    var reader = RecordReader(try file.read(count: wordCount * 8, at: 0))
    var words: [UInt64] = []
    while let word = reader.number() { words.append(word) }
    guard words.count == wordCount, words[0] == magic, words[1] == version else { return legacy }
    legacy.lastUUID = UUID(high: words[2], low: words[3])
    for slot in 0..<Bound.rememberedConnections {
      let word = firstSlotWord + slot * wordsPerSlot
      guard words[word] == State.atRest.rawValue, words[word + 1] <= UInt64(stretch) else { continue }
      let bytes = try file.read(count: Int(words[word + 1]), at: firstStretch + slot * stretch)
      guard var record = HandoverRecord(bytes) else { continue }
      record.subscription?.move(to: Int64(bitPattern: words[word + 2]))
      legacy.records[record.inode] = record
    }
    return legacy
  }

  /// Saves the state after an orderly stop in a sealed memory file, which nobody can change.
  static func seal(_ records: [HandoverRecord], lastUUID: UUID) throws(SystemError) -> MemoryFile {
    var writer = RecordWriter()
    for number in [magic, version, lastUUID.high, lastUUID.low, UInt64(records.count)] { writer.append(number) }
    for record in records { writer.append(record.bytes) }
    let file = try MemoryFile(named: "identityd-handover")
    try file.write(writer.bytes)
    try file.seal()
    return file
  }
}

extension HandoverMemory.Legacy {
  /// Reads the state that an orderly stop left. The state is empty if the format differs, and ends before a
  /// malformed record.
  ///
  /// - Throws: EINVAL if the file is not sealed, or the error of reading the file.
  init(sealed file: borrowing MemoryFile) throws(SystemError) {
    guard file.isSealed else {
      throw SystemError(call: "take over the record of connections, which is not sealed", code: EINVAL)
    }
    var reader = RecordReader(try file.readWhole(limit: .max))
    guard reader.number() == HandoverMemory.magic, reader.number() == HandoverMemory.version,
      let high = reader.number(), let low = reader.number(), let count = reader.number()
    else { return }
    lastUUID = UUID(high: high, low: low)
    for _ in 0..<count {
      guard let record = reader.bytes().flatMap({ HandoverRecord($0) }) else { return }
      records[record.inode] = record
    }
  }
}
