import Testing

@testable import IdentityClient

struct LineReaderTests {
  /// Returns the lines read from these pieces.
  private func lines(_ pieces: [String]) -> [String] {
    var reader = LineReader()
    var lines: [String] = []
    for piece in pieces {
      reader.append(Array(piece.utf8).span)
      while let line = reader.next() { lines.append(String(decoding: line, as: UTF8.self)) }
    }
    return lines
  }

  @Test func `the lines are the same wherever the bytes are split`() {
    let text = "OK\n* a b\n\nEVENT 1 item added\nrest"
    let expected = ["OK", "* a b", "", "EVENT 1 item added"]
    #expect(lines([text]) == expected)
    #expect(lines(text.map(String.init)) == expected)
    for cut in text.indices { #expect(lines([String(text[..<cut]), String(text[cut...])]) == expected) }
  }

  @Test func `a line can be taken before the next is complete`() {
    var reader = LineReader()
    reader.append(Array("OK 1\nOK ".utf8).span)
    var taken = [reader.next(), reader.next(), reader.next()]
    reader.append(Array("2\n".utf8).span)
    taken.append(reader.next())
    #expect(taken == [Array("OK 1".utf8), nil, nil, Array("OK 2".utf8)])
  }
}
