import Foundation
import Testing

@testable import IdentityClient

struct Base64TextTests {
  private func encoded(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    Base64Text.append(bytes.span, to: &text)
    #expect(text.count == Base64Text.length(of: bytes.count))
    return String(decoding: text, as: UTF8.self)
  }

  private func decoded(_ text: String) -> [UInt8]? { Base64Text.decode(Array(text.utf8).span) }

  @Test func `every byte in every position is encoded and decoded like in Foundation`() {
    for byte in UInt8.min...UInt8.max {
      for count in 0...4 {
        for place in 0..<count {
          var bytes = [UInt8](repeating: ~byte, count: count)
          bytes[place] = byte
          #expect(encoded(bytes) == Data(bytes).base64EncodedString())
          #expect(decoded(encoded(bytes)) == bytes)
        }
      }
    }
    #expect(decoded("") == [])
  }

  @Test func `the line after a head is decoded, and nothing else`() {
    func decoded(_ text: String) -> [UInt8]? { Base64Text.decode(Array(text.utf8).span, after: "head 1\n") }
    #expect(decoded("head 1\nAQID\n") == [1, 2, 3])
    #expect(decoded("head 1\nAQID") == [1, 2, 3])
    #expect(decoded("head 1\n\n") == [])
    for text in ["", "head 1\n", "head 2\nAQID\n", "head 1\nAQID\nAQID\n", "head 1\nAQI\n", "AQID\n", "head"] {
      #expect(decoded(text) == nil, "\(text)")
    }
  }

  @Test(arguments: [255, 256, 32_768, 45_000, 45_001]) func `long values are encoded and decoded like in Foundation`(
    count: Int
  ) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 8) }
    #expect(encoded(bytes) == Data(bytes).base64EncodedString())
    #expect(decoded(encoded(bytes)) == bytes)
  }

  @Test func `only characters of the alphabet are decoded`() {
    let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    for character in UInt8.min...UInt8.max {
      let text = [UInt8(ascii: "A"), character, UInt8(ascii: "A"), UInt8(ascii: "A")]
      #expect((Base64Text.decode(text.span) != nil) == alphabet.contains(character), "\(character)")
    }
  }

  @Test(arguments: ["A", "AA", "AAA", "AAAAA", "A===", "====", "AB==", "AAB=", "AA=A", "AA==AAAA", "AA==\n"])
  func `truncated text, or text with unused bits set, is not Base64`(text: String) {
    #expect(decoded(text) == nil)
  }
}
