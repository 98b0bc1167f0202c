import IdentityClient
import Testing

struct RequestTests {
  private func line(_ words: String...) -> String { String(decoding: RequestLine(words: words).head, as: UTF8.self) }

  @Test func `words and attributes are sent unchanged if possible`() {
    #expect(line("get", "uuid", "count=3") == "get uuid count=3")
    #expect(line("GET", "Device") == "GET Device")
  }

  @Test func `words that need quotes are quoted`() {
    #expect(line("check", "two words") == "check \"two words\"")
    #expect(line("check", "") == "check \"\"")
    #expect(line("check", "a\nb") == "check \"a\\nb\"")
    #expect(line("get", "installation", "app=a b") == "get installation app=\"a b\"")
    #expect(line("get", "installation", "app=") == "get installation app=\"\"")
  }

  @Test func `an operand that looks like an attribute stays an operand`() {
    #expect(line("check", "a=b") == "check \"a=b\"")
    #expect(line("help", "a=b") == "help \"a=b\"")
  }

  @Test func `an unknown attribute is sent as an attribute, so that the daemon refuses it`() {
    #expect(line("get", "uuid", "cuont=3") == "get uuid cuont=3")
  }

  @Test func `an unknown verb is sent as it is`() {
    #expect(line("item", "add", "label=my key", "x") == "item add label=\"my key\" x")
  }
}
