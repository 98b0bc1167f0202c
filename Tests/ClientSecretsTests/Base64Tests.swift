import Foundation
import LinuxSystem
import Testing

@testable import ClientSecrets

@Suite struct Base64Tests {
  private func encoded(_ bytes: [UInt8]) -> String {
    var text = Array("before ".utf8)
    Base64.append(bytes[...], to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// RFC 4648, section 10, and what it does not have: the two characters that differ between the alphabets.
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ("foobar", "Zm9vYmFy"), ("\u{0}", "AA=="), ("a\n", "YQo="), ("~~?", "fn4/"), ("~~>", "fn4+"),
  ])
  func `bytes become the text of the standard, and come back`(plain: String, text: String) {
    #expect(encoded(Array(plain.utf8)) == "before \(text)")
    #expect(Base64.length(of: plain.utf8.count) == text.utf8.count)
    #expect(Base64.decode(Array(text.utf8)) == Array(plain.utf8))
  }

  @Test(arguments: [
    "Z", "Zg", "Zg=", "Zg===", "=", "====", "Zm9v=", "Zm9vY", "Zh==", "Zm9=", "Zm8", " Zg==", "Zg== ", "Zg==\n",
    "Zm 9v",
    "Zm9v\n", "Zm-v", "Zm_v", "Zm9v\u{0}", "Zg==Zg==", "\u{e9}m9v", "*AAA",
  ])
  func `nothing else is taken`(text: String) { #expect(Base64.decode(Array(text.utf8)) == nil) }

  @Test(arguments: [0, 1, 2, 3, 255, 256, 32_768, 45_000, 45_001])
  func `bytes of any length agree with another's idea of it`(count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ $0 >> 8) }
    let text = Data(bytes).base64EncodedString()
    #expect(encoded(bytes) == "before \(text)")
    #expect(Base64.decode(Array(text.utf8)) == bytes)
  }

  @Test func `a part of an array is taken for itself`() {
    var text: [UInt8] = []
    Base64.append(Array("xfoobar".utf8)[1..<4], to: &text)
    #expect(String(decoding: text, as: UTF8.self) == "Zm9v")
  }

  @Test func `what is wiped is zeros, as many as before`() {
    var bytes: [UInt8] = [1, 2, 3]
    bytes.wipe()
    #expect(bytes == [0, 0, 0])
    var nothing: [UInt8] = []
    nothing.wipe()
    #expect(nothing.isEmpty)
  }
}
