import ClientFormats
import Testing

struct SuggestionTests {
  private static let known = ["status", "stats", "get device", "item find", "token", "key", "history"]

  @Test(arguments: [
    ("stauts", "status"), ("STATSU", "status"), ("sttaus", "status"), ("get devise", "get device"),
    ("item fnd", "item find"), ("tokn", "token"), ("tokens", "token"), ("hsitroy", "history"), ("ky", "key"),
  ])
  func `the nearest known word is suggested`(typed: String, meant: String) {
    #expect(Suggestion.nearest(to: typed, among: Self.known) == meant)
  }

  @Test(arguments: ["frob", "", "status", "x", "statistics", String(repeating: "status", count: 8)])
  func `a word that is far from all, known or too long gets none`(typed: String) {
    #expect(Suggestion.nearest(to: typed, among: Self.known) == nil)
  }

  @Test func `two words that are equally near get none`() {
    #expect(Suggestion.nearest(to: "cat", among: ["car", "can"]) == nil)
    #expect(Suggestion.nearest(to: "cat", among: ["cart", "cart"]) == "cart")
  }
}
