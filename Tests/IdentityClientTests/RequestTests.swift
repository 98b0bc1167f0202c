import IdentityClient
import Testing

@Suite struct RequestTests {
  private func line(_ words: String...) -> String { String(decoding: RequestLine(words: words).head, as: UTF8.self) }

  @Test func `words and attributes go as they are where they can`() {
    #expect(line("get", "uuid", "count=3") == "get uuid count=3")
    #expect(line("GET", "Device") == "GET Device")
  }

  @Test func `what a bare word cannot say is quoted`() {
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

  @Test func `an attribute that the verb does not know is sent as one, so that the daemon can say so`() {
    #expect(line("get", "uuid", "cuont=3") == "get uuid cuont=3")
  }

  @Test func `a verb that this client does not know is sent as it is`() {
    #expect(line("item", "add", "label=my key", "x") == "item add label=\"my key\" x")
  }
}
