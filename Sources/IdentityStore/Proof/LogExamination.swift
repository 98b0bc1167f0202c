import Glibc
import LinuxSystem

/// Distinguishes a WAL cut off by a power cut from a damaged one (sqlite.org/fileformat.html, section 4).
///
/// SQLite reads a WAL up to the first frame with a wrong checksum, and takes that frame for the end of the WAL. A
/// commit begins after the sync of the commit before it, so a power cut tears the frames of one commit and never
/// those of two. If the last frames of two commits come after the first wrong frame, one of these commits was synced
/// and acknowledged.
struct LogExamination {
  /// The number of commits whose last frame is at or after the first frame with a wrong checksum.
  private(set) var unreadCommits = 0
  /// The number of bytes before the frames of the last commit that SQLite reads; nil if it reads no commit.
  private(set) var lengthBeforeLastCommit: Int64?

  /// Whether synced commits were lost.
  var isDamaged: Bool { unreadCommits > 1 }

  fileprivate static let headerLength = 32
  /// The first bytes of the header. The next byte says which order of bytes the checksums have.
  private static let magic: [UInt8] = [0x37, 0x7f, 0x06]
  private static let framesAtOnce = 64

  /// Examines a WAL with frames of this length. A missing or empty WAL is intact.
  init(of name: String, in folder: borrowing Folder, _ frame: LogFrame) throws(SystemError) {
    let file: Descriptor
    do {
      file = try folder.open(name, flags: O_RDONLY | O_NONBLOCK)
    } catch  where error.code == ENOENT {
      return
    }
    let length = frame.length
    var head = [UInt8](repeating: 0, count: Self.headerLength)
    guard try file.read(into: &head, at: 0) == Self.headerLength else { return }
    var checksum = Checksum(isBigEndian: head[3] & 1 == 1)
    checksum.add(head[0..<24])
    // The checksum of zeros is zero.
    var isValid = head.starts(with: Self.magic) && checksum.matches(head[24..<32])
    let hasHeader = isValid
    var salts = isValid ? head[16..<24] : []
    var frames = [UInt8](repeating: 0, count: length * Self.framesAtOnce)
    var position = Self.headerLength
    var lastEnd = Int64(Self.headerLength)
    var count = 0
    while true {
      let read = try file.read(into: &frames, at: position) / length
      guard read > 0 else { return }
      position += read * length
      for index in 0..<read {
        let start = index * length
        let own = frames[(start + 8)..<(start + 16)]
        // If the header is wrong, its block may be, with the frames that begin in it. The salts of the next frame then
        // identify the frames that belong together.
        if !hasHeader, count <= frame.countInFirstBlock { salts = ArraySlice(Array(own)) }
        count += 1
        let isOfThisLog = own.elementsEqual(salts)
        if isValid {
          checksum.add(frames[start..<(start + 8)])
          checksum.add(frames[(start + LogFrame.headerLength)..<(start + length)])
          isValid = isOfThisLog && checksum.matches(frames[(start + 16)..<(start + 24)])
        }
        let endsCommit = frames[(start + 4)..<(start + 8)].contains { $0 != 0 }
        if !isValid, isOfThisLog, endsCommit { unreadCommits += 1 }
        if isValid, endsCommit {
          lengthBeforeLastCommit = lastEnd
          lastEnd = Int64(position - (read - index - 1) * length)
        }
      }
    }
  }
}

/// A frame of the WAL: a page of the database after a header (sqlite.org/fileformat.html, section 4.1).
struct LogFrame {
  /// The length of the header, in bytes.
  static let headerLength = 24
  /// The length of a page in a new store, in bytes.
  ///
  /// Two frames are longer than a block of the disk, and each commit has at least two. So a block has parts of two
  /// commits at most.
  static let pageLength = 2_048
  /// The length of a page in a store that an earlier version of this program made.
  private static let earlierPageLength = 4_096

  /// The length of a frame, in bytes.
  let length: Int

  /// The number of frames that begin in the first block of the disk, after the header of the WAL.
  var countInFirstBlock: Int { (Self.blockLength - LogExamination.headerLength + length - 1) / length }
  private static let blockLength = 4_096

  /// Reads the length of a page from the header of the database (sqlite.org/fileformat.html, section 1.3.2).
  ///
  /// No connection may be open: if a process closes a file, its other descriptors of the file lose their locks (fcntl(2)).
  init(in folder: borrowing Folder) throws(SystemError) {
    var header = [UInt8](repeating: 0, count: 18)
    _ = try folder.open(Store.fileName, flags: O_RDONLY | O_NONBLOCK).read(into: &header, at: 0)
    self.init(pageLength: Int(header[16]) << 8 | Int(header[17]))
  }

  /// Takes the length of a page from an open database.
  init(of database: borrowing Database) throws(DatabaseError) {
    self.init(pageLength: Int(try database.integer("PRAGMA page_size") ?? 0))
  }

  /// SQLite cannot read a database whose header has another length, so that length need not be right for anything.
  private init(pageLength: Int) {
    let isEarlier = pageLength == Self.earlierPageLength
    length = Self.headerLength + (isEarlier ? Self.earlierPageLength : Self.pageLength)
  }
}

/// The checksum of a WAL (sqlite.org/fileformat.html, section 4.2).
private struct Checksum {
  let isBigEndian: Bool
  private var first: UInt32 = 0
  private var second: UInt32 = 0

  init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

  /// Adds bytes, whose number must be a multiple of eight.
  mutating func add(_ bytes: ArraySlice<UInt8>) {
    unsafe bytes.withUnsafeBytes { bytes in
      for index in stride(from: 0, to: bytes.count, by: 8) {
        first &+= unsafe word(bytes, index) &+ second
        second &+= unsafe word(bytes, index + 4) &+ first
      }
    }
  }

  private func word(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> UInt32 {
    let word = unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt32.self)
    return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
  }

  /// Returns whether eight bytes are the checksum, as two big-endian words.
  func matches(_ bytes: ArraySlice<UInt8>) -> Bool {
    unsafe bytes.withUnsafeBytes { bytes in
      unsafe UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)) == first
        && UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)) == second
    }
  }
}
