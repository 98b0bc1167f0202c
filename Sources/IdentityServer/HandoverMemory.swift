import Glibc
import IdentityCore
import LinuxSystem

/// What the next daemon has to know of the connections, kept where it survives this process: in a memory file that the
/// service manager holds too. It is kept current all the time, because a kill gives no notice.
///
/// In front stand words that cost no system call: for each connection whether it is at rest, and how far its subscription
/// has been. Behind them each connection has a stretch for its ``HandoverRecord``. The file is sparse: what is not used
/// takes no memory.
final class HandoverMemory {
  /// Whether a connection can be taken over.
  enum State: UInt64 {
    case free = 0
    /// Its record says all there is to know.
    case atRest = 1
    /// A request is being answered, or output being sent: nobody could say how far that came.
    case busy = 2
  }

  private let file: MemoryFile
  private let words: SharedWords
  /// How much memory each slot's record has, in whole pages.
  private var lengths: [Int: Int] = [:]

  fileprivate static let magic: UInt64 = 0x6964_656e_7469_7479
  /// The form of the records and of the words; a daemon that knows another one takes nothing over.
  fileprivate static let version: UInt64 = 2
  private static let firstSlotWord = 8
  private static let wordsPerSlot = 4
  /// Room for the longest line, the most output that may wait, and ten thousand UUIDs behind it. A longer list that a
  /// client does not read is not kept over a kill: its connection is closed.
  private static let stretch = 1_048_576
  private static var wordCount: Int { firstSlotWord + Bound.rememberedConnections * wordsPerSlot }
  private static var firstStretch: Int { (wordCount * 8 + stretch - 1) / stretch * stretch }

  /// Makes an empty one.
  init() throws(SystemError) {
    file = try MemoryFile(named: "identityd-connections")
    try file.resize(to: Self.firstStretch + Bound.rememberedConnections * Self.stretch)
    words = try SharedWords(of: file, count: Self.wordCount)
    words[0] = Self.magic
    words[1] = Self.version
  }

  /// To be given to the service manager.
  var descriptor: Int32 { file.descriptor.number }

  // MARK: Keeping

  /// Says what is to be known of a connection in a slot, and that it is at rest.
  ///
  /// - Returns: false where it cannot be kept: there are too many, it is too large, or there is no memory.
  @discardableResult
  func keep(_ record: HandoverRecord, in slot: Int) -> Bool {
    var bytes = record.bytes
    defer { bytes.wipe() }
    // What stands there is not true any more, whatever comes of this.
    set(.busy, slot)
    guard slot < Bound.rememberedConnections, bytes.count <= Self.stretch else { return false }
    let start = Self.firstStretch + slot * Self.stretch
    let pages = (bytes.count + Self.page - 1) / Self.page * Self.page
    let length = bytes.count
    // Up to the end of the page, so that nothing is left there of a longer one: a line with a secret, say.
    bytes += repeatElement(0, count: pages - length)
    do {
      try file.write(bytes, at: start)
      if let taken = lengths[slot], taken > pages { try file.punchHole(at: start + pages, length: taken - pages) }
    } catch {
      return false
    }
    lengths[slot] = pages
    words[word(slot) + 1] = UInt64(length)
    if let place = record.subscription?.place { set(place: place, slot) }
    set(.atRest, slot)
    return true
  }

  private static let page = 4_096

  /// A connection goes on, or rests again with nothing new to be known of it.
  func set(_ state: State, _ slot: Int) { words[word(slot)] = state.rawValue }

  /// How far its subscription has been.
  func set(place: Int64, _ slot: Int) { words[word(slot) + 2] = UInt64(bitPattern: place) }

  /// The connection is gone.
  func forget(_ slot: Int) {
    set(.free, slot)
    guard let length = lengths.removeValue(forKey: slot) else { return }
    // Where that fails, the memory is used again with the slot.
    try? file.punchHole(at: Self.firstStretch + slot * Self.stretch, length: length)
  }

  /// The last of the ascending UUIDs that was handed out.
  func set(lastUUID uuid: UUID) {
    words[2] = uuid.high
    words[3] = uuid.low
  }

  private func word(_ slot: Int) -> Int { Self.firstSlotWord + slot * Self.wordsPerSlot }

  // MARK: Taking over

  /// What an earlier daemon left, by the number of the socket.
  struct Legacy {
    var records: [UInt64: HandoverRecord] = [:]
    var lastUUID = UUID.zero
  }

  /// Reads what an earlier daemon had come to; nothing where it had another form.
  static func legacy(of file: borrowing MemoryFile) throws(SystemError) -> Legacy {
    var legacy = Legacy()
    guard try file.length() >= firstStretch else { return legacy }
    var reader = RecordReader(try file.read(count: wordCount * 8, at: 0))
    var words: [UInt64] = []
    while let word = reader.number() { words.append(word) }
    guard words.count == wordCount, words[0] == magic, words[1] == version else { return legacy }
    legacy.lastUUID = UUID(high: words[2], low: words[3])
    for slot in 0..<Bound.rememberedConnections {
      let place = firstSlotWord + slot * wordsPerSlot
      guard words[place] == State.atRest.rawValue, words[place + 1] <= UInt64(stretch) else { continue }
      let bytes = try file.read(count: Int(words[place + 1]), at: firstStretch + slot * stretch)
      guard var record = HandoverRecord(bytes) else { continue }
      record.subscription?.move(to: Int64(bitPattern: words[place + 2]))
      legacy.records[record.inode] = record
    }
    return legacy
  }

  /// Writes down where an orderly stop left everything, in a memory file that nobody can change any more.
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
  /// Reads what an orderly stop left; nothing where it is not sealed, or has another form.
  init(sealed file: borrowing MemoryFile) throws(SystemError) {
    guard file.isSealed else { throw SystemError(call: "the handover is not sealed", code: EINVAL) }
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
