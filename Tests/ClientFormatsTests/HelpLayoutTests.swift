import ClientFormats
import Testing

struct HelpLayoutTests {
  @Test func `texts are wrapped in their column, and a long head has lines of its own`() {
    let list = HelpLayout(width: 44).list([
      .init("ping", "Answer, and do nothing else at all, in any case."),
      .init("item put service=S account=A [group=G] [label=L] [attr.NAME=V]…", "Add an item."),
    ])
    #expect(
      list == """
          ping  Answer, and do nothing else at all,
                in any case.
          item put service=S account=A [group=G]
              [label=L] [attr.NAME=V]…
                Add an item.

        """)
  }

  @Test func `a paragraph ends with a line feed, and a word longer than the line stays whole`() {
    let word = String(repeating: "x", count: 50)
    #expect(HelpLayout(width: 40).wrapped("a \(word) b", next: 2) == "a\n  \(word)\n  b\n")
  }
}
