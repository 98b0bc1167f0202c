import Glibc
import LinuxSystem

/// Tells a log that a power cut has cut short from one that was damaged (sqlite.org/fileformat.html, section 4).
///
/// SQLite reads a log up to the first frame that does not check, and takes what it has up to there for all there was. A
/// commit begins behind the sync of the one before, so a power cut leaves the frames of one commit torn, and never those of
/// two: where the ends of two commits stand behind that frame, one of them was synced, and acknowledged.
struct LogExamination {
  /// How many ends of commits stand behind the place where the log does not check any more.
  private(set) var unreadCommits = 0

  /// Whether commits were lost that had been synced.
  var isDamaged: Bool { unreadCommits > 1 }

  private static let headerLength = 32
  private static let frameHeaderLength = 24
  /// Pages of this store are of one size.
  private static let pageLength = 4_096
  private static let frameLength = frameHeaderLength + pageLength
  private static let framesAtOnce = 64

  /// Reads a log; one that is missing or empty is in order.
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
    var isValid = checksum.matches(head[24..<32])
    var salts = isValid ? head[16..<24] : []
    var frames = [UInt8](repeating: 0, count: Self.frameLength * Self.framesAtOnce)
    var position = Self.headerLength
    while true {
      let count = try file.read(into: &frames, at: position) / Self.frameLength
      guard count > 0 else { return }
      position += count * Self.frameLength
      for place in 0..<count {
        let start = place * Self.frameLength
        let own = frames[(start + 8)..<(start + 16)]
        // Without a header that checks the first frame says which ones belong together.
        if salts.isEmpty { salts = ArraySlice(Array(own)) }
        let isOfThisLog = own.elementsEqual(salts)
        if isValid {
          checksum.add(frames[start..<(start + 8)])
          checksum.add(frames[(start + Self.frameHeaderLength)..<(start + Self.frameLength)])
          isValid = isOfThisLog && checksum.matches(frames[(start + 16)..<(start + 24)])
        }
        let endsCommit = frames[(start + 4)..<(start + 8)].contains { $0 != 0 }
        if !isValid, isOfThisLog, endsCommit { unreadCommits += 1 }
      }
    }
  }
}

/// The checksum of a log (sqlite.org/fileformat.html, section 4.2).
private struct Checksum {
  let isBigEndian: Bool
  private var first: UInt32 = 0
  private var second: UInt32 = 0

  init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

  /// Takes bytes in, whose number is a multiple of eight.
  mutating func add(_ bytes: ArraySlice<UInt8>) {
    unsafe bytes.withUnsafeBytes { bytes in
      for place in stride(from: 0, to: bytes.count, by: 8) {
        first &+= unsafe word(bytes, place) &+ second
        second &+= unsafe word(bytes, place + 4) &+ first
      }
    }
  }

  private func word(_ bytes: UnsafeRawBufferPointer, _ place: Int) -> UInt32 {
    let word = unsafe bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)
    return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
  }

  /// Whether these eight bytes are it, each half the most significant byte first.
  func matches(_ bytes: ArraySlice<UInt8>) -> Bool {
    unsafe bytes.withUnsafeBytes { bytes in
      unsafe UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self)) == first
        && UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)) == second
    }
  }
}
