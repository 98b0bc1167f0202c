import Testing

@testable import IdentityWire

/// JSON of other programs (RFC 8259).
struct JSONValueTests {
  private static func read(_ text: String) -> JSONValue? { JSONValue(parsing: Array(text.utf8)) }

  @Test func `each kind of value is read, and written again`() throws {
    let text = #"{"a":[null,true,false,-1.5e3],"b":{"c":"é\n\"\u0001"},"":0}"#
    let value = try #require(Self.read(text))
    #expect(value["a"] == .array([.null, .boolean(true), .boolean(false), .number("-1.5e3")]))
    #expect(value["b"]?["c"]?.text == "é\n\"\u{1}")
    #expect(value[""]?.integer == 0 && value["x"] == nil && value["a"]?["b"] == nil)
    #expect(Self.read(value.json) == value)
    #expect(Self.read(" {\t} \r\n") == .object([]))
    #expect(Self.read(#""\ud83d\ude00""#)?.text == "😀")
  }

  @Test(arguments: [
    "", " ", "{", "}", "[", "[1,]", "[,1]", "{,}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{a:1}"#, "nul", "nulll",
    "tru", "1 2", "01", "1.", ".5", "+1", "--1", "1e", "NaN", "Infinity", "'a'", #"""#, #""a"#, #""\x""#, #""\u12""#,
    #""\ud800""#, #""\udc00""#, #""\u0000""#, "\"\n\"", "\u{feff}{}", "{}{}", "[[[[[[[[[]]]]]]]]]", #"{"a":1,"a":2}"#,
    #"{"a":1,"\u0061":2}"#, "/**/1",
  ])
  func `anything else is refused`(text: String) {
    #expect(Self.read(text) == nil)
  }

  @Test func `names are compared byte by byte`() throws {
    // The same character, composed and decomposed.
    let value = try #require(Self.read("{\"\u{e9}\":1,\"e\u{301}\":2}"))
    #expect(value["e\u{301}"]?.integer == 2)
  }

  @Test func `bytes that are not UTF-8 are refused`() {
    #expect(JSONValue(parsing: [0x22, 0xff, 0x22]) == nil)
    #expect(JSONValue(parsing: [0x22, 0xc0, 0x80, 0x22]) == nil)
  }
}
