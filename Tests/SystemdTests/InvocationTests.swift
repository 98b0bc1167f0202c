import Systemd
import TestSupport
import Testing

struct InvocationTests {
  private let digits = "0123456789abcdeffedcba9876543210"
  private let number = Invocation(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210)

  @Test func `32 hexadecimal digits are an invocation ID`() {
    #expect(Invocation(hexadecimal: Array(digits.utf8)) == number)
    let highest = [UInt8](repeating: UInt8(ascii: "f"), count: 32)
    #expect(Invocation(hexadecimal: highest) == Invocation(high: .max, low: .max))
    #expect(Invocation(high: 1, low: 2) != Invocation(high: 2, low: 1))
  }

  @Test(arguments: [
    "", "0", "0123456789abcdeffedcba987654321", "0123456789abcdeffedcba98765432100", "0123456789ABCDEFFEDCBA9876543210",
    "0123456789abcdeffedcba987654321g", "0123456789abcdeffedcba987654321\n", "-123456789abcdeffedcba9876543210",
    "01234567-89ab-cdef-fedc-ba9876543210", "0123456789abcdeffedcba98765432é",
  ]) func `any other text is no invocation ID`(text: String) throws {
    #expect(Invocation(hexadecimal: Array(text.utf8)) == nil)
    let temporary = try TemporaryFolder()
    if !text.isEmpty { try temporary.link("link", to: text) }
    #expect(Invocation(link: temporary["link"]) == nil)
  }

  @Test func `a link is read and not followed`() throws {
    let temporary = try TemporaryFolder()
    try temporary.link("link", to: digits)
    try temporary.link("link to the link", to: "link")
    try temporary.write("file", digits)
    #expect(Invocation(link: temporary["link"]) == number)
    for name in ["link to the link", "file", "nothing", "file/below"] {
      #expect(Invocation(link: temporary[name]) == nil, "\(name)")
    }
  }
}
