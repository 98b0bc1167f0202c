import Foundation
import Glibc
import IdentityClient
import LinuxSystem
import TestSupport
import Testing

/// Tests that the library leaves no secrets in the memory of its program.
///
/// Serialized: each test holds copies of the bytes that another test would find.
@Suite(.serialized, .tags(.trial)) struct LibrarySecrecyTests {
  @Test(arguments: [false, true])
  func `a secret that was stored and read leaves no copy in memory after its release`(blocks: Bool) async throws {
    let daemon = try DaemonUnderTest().start()
    // Random, so that no other memory has the same bytes. Filled in place, so that the test leaves no copy.
    var bytes = [UInt8](repeating: 0, count: 48)
    for index in bytes.indices { bytes[index] = .random(in: 0...255) }
    var masked = bytes
    for index in masked.indices { masked[index] ^= 0xff }
    let key = ItemPrimaryKey(service: "mail", account: "alice")
    let client = IdentityClient(socket: daemon.socket)
    var blocking = BlockingIdentityClient(socket: daemon.socket)
    do {
      let secret = Secret(bytes.span)
      let put = IdentityRequest.putItem(key, secret: secret)
      let outcome = blocks ? try blocking.ask(put) : try await client.ask(put)
      #expect(outcome == .created)
    }
    do {
      let read = IdentityRequest.readItem(key)
      let secret = blocks ? try blocking.ask(read).secret : try await client.ask(read).secret
      let isSame = secret.withBytes { read in read.indices.allSatisfy { read[$0] == ~masked[$0] } }
      #expect(isSame)
      #expect(try places(of: masked) > 0, "the search finds what is there")
    }
    bytes.wipe()
    // Other searches of this process may hold a copy of its memory for a moment.
    let deadline = Date(timeIntervalSinceNow: patience)
    while try places(of: masked) > 0, Date() < deadline { usleep(100_000) }
    #expect(try places(of: masked) == 0)
    // Keeps both clients and their buffers alive during the search.
    _ = try await client.ask(.whoami)
    _ = try blocking.ask(.whoami)
  }

  /// Counts the occurrences of the bytes in this process's memory, plain or in Base64, outside of the search buffers.
  private func places(of masked: [UInt8]) throws -> Int {
    let memory = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/mem"))
    let maps = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/maps"))
    let regions = String(decoding: try maps.readToEnd() ?? Data(), as: UTF8.self).split(separator: "\n")
    var plain = [UInt8](repeating: 0, count: masked.count)
    for index in masked.indices { plain[index] = ~masked[index] }
    var text = [UInt8](repeating: 0, count: masked.count / 3 * 4)
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    for group in 0..<(masked.count / 3) {
      let bits = Int(plain[3 * group]) << 16 | Int(plain[3 * group + 1]) << 8 | Int(plain[3 * group + 2])
      for place in 0..<4 { text[4 * group + place] = alphabet[bits >> (18 - 6 * place) & 63] }
    }
    var chunk = [UInt8](repeating: 0, count: 1 << 20)
    defer {
      plain.wipe()
      text.wipe()
      chunk.wipe()
    }
    var found = 0
    unsafe plain.withUnsafeBytes { plain in
      unsafe text.withUnsafeBytes { text in
        unsafe chunk.withUnsafeMutableBytes { chunk in
          let own = unsafe [UnsafeRawBufferPointer(chunk), plain, text].map { unsafe Self.addresses($0) }
          for region in regions where region.contains(" rw") {
            let ends = region.prefix { $0 != " " }.split(separator: "-").compactMap { Int($0, radix: 16) }
            guard ends.count == 2, ends[1] - ends[0] < 1 << 28 else { continue }
            for start in stride(from: ends[0], to: ends[1], by: chunk.count - text.count) {
              let wanted = min(chunk.count, ends[1] - start)
              let count = unsafe pread(memory.fileDescriptor, chunk.baseAddress, wanted, off_t(start))
              guard count > 0 else { continue }
              let hits = unsafe Self.places(of: plain, in: chunk, count) + Self.places(of: text, in: chunk, count)
              found += hits.count { place in !own.contains { $0.contains(start + place) } }
            }
          }
        }
      }
    }
    return found
  }

  private static func addresses(_ buffer: UnsafeRawBufferPointer) -> Range<Int> {
    let start = Int(bitPattern: buffer.baseAddress)
    return start..<(start + buffer.count)
  }

  private static func places(
    of needle: UnsafeRawBufferPointer, in chunk: UnsafeMutableRawBufferPointer, _ count: Int
  ) -> [Int] {
    guard let start = chunk.baseAddress, let wanted = needle.baseAddress, count >= needle.count else { return [] }
    var places: [Int] = []
    var next = 0
    let last = count - needle.count
    // Not with Foundation, which may copy the buffer that it searches.
    while next <= last, let hit = unsafe memchr(start + next, Int32(needle[0]), last - next + 1) {
      let place = unsafe UnsafeRawPointer(hit) - UnsafeRawPointer(start)
      if unsafe memcmp(hit, wanted, needle.count) == 0 { places.append(place) }
      next = place + 1
    }
    return places
  }
}
