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

  private static let headerLength = 32
  /// The first bytes of the header. The next byte says which order of bytes the checksums have.
  private static let magic: [UInt8] = [0x37, 0x7f, 0x06]
  private static let frameHeaderLength = 24
  /// The size of every page of this store, in bytes.
  private static let pageLength = 4_096
  private static let frameLength = frameHeaderLength + pageLength
  private static let framesAtOnce = 64

  /// Examines a WAL. A missing or empty WAL is intact.
  init(of name: String, in folder: borrowing Folder) throws(SystemError) {
    let file: Descriptor
    do {
      file = try folder.open(name, flags: O_RDONLY | O_NONBLOCK)
    } catch  where error.code == ENOENT {
      return
    }
    var head = [UInt8](repeating: 0, count: Self.headerLength)
    guard try file.read(into: &head, at: 0) == Self.headerLength else { return }
    var checksum = Checksum(isBigEndian: head[3] & 1 == 1)
    checksum.add(head[0..<24])
    // The checksum of zeros is zero.
    var isValid = head.starts(with: Self.magic) && checksum.matches(head[24..<32])
    let hasHeader = isValid
    var salts = isValid ? head[16..<24] : []
    var frames = [UInt8](repeating: 0, count: Self.frameLength * Self.framesAtOnce)
    var position = Self.headerLength
    var lastEnd = Int64(Self.headerLength)
    var frame = 0
    while true {
      let count = try file.read(into: &frames, at: position) / Self.frameLength
      guard count > 0 else { return }
      position += count * Self.frameLength
      for index in 0..<count {
        let start = index * Self.frameLength
        let own = frames[(start + 8)..<(start + 16)]
        // If the header is wrong, the salts of the second frame identify the frames that belong together. The first frame
        // begins in the same page of the file as the header.
        if !hasHeader, frame < 2 { salts = ArraySlice(Array(own)) }
        frame += 1
        let isOfThisLog = own.elementsEqual(salts)
        if isValid {
          checksum.add(frames[start..<(start + 8)])
          checksum.add(frames[(start + Self.frameHeaderLength)..<(start + Self.frameLength)])
          isValid = isOfThisLog && checksum.matches(frames[(start + 16)..<(start + 24)])
        }
        let endsCommit = frames[(start + 4)..<(start + 8)].contains { $0 != 0 }
        if !isValid, isOfThisLog, endsCommit { unreadCommits += 1 }
        if isValid, endsCommit {
          lengthBeforeLastCommit = lastEnd
          lastEnd = Int64(position - (count - index - 1) * Self.frameLength)
        }
      }
    }
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
