import Glibc
import LinuxSystem
import Testing

struct ByteBufferTests {
  private func content(_ buffer: borrowing ByteBuffer) -> [UInt8] {
    buffer.withBytes(first: buffer.count) { bytes in bytes.indices.map { bytes[$0] } }
  }

  @Test func `bytes are copied to their place, and the bytes around them stay`() {
    let buffer = ByteBuffer(count: 8)
    #expect(content(buffer) == Array(repeating: 0, count: 8))
    let middle: [UInt8] = [1, 2, 3]
    buffer.replace(from: 2, with: middle.span)
    let other = ByteBuffer(count: 4)
    other.replace(from: 1, with: buffer, from: 3, count: 3)
    #expect(content(buffer) == [0, 0, 1, 2, 3, 0, 0, 0])
    #expect(content(other) == [0, 2, 3, 0])
    let areThere = [2, 3].map { buffer.isEqual(to: middle.span, at: $0) }
    #expect(areThere == [true, false])
    let isNothingThere = buffer.isEqual(to: middle.span.extracting(first: 0), at: 8)
    #expect(isNothingThere)
    buffer.wipe(first: 3)
    #expect(content(buffer) == [0, 0, 0, 2, 3, 0, 0, 0])
  }

  @Test func `receiving fills a buffer from its front, and sending starts there`() throws {
    let pair = try Pair.sockets()
    let buffer = ByteBuffer(count: 4)
    var isCut = false
    #expect(try pair.reader.receive(into: buffer, atMost: 4, isCut: &isCut) == nil)
    try pair.writer.sendAll([1, 2, 3, 4, 5, 6])
    #expect(try pair.reader.receive(into: buffer, atMost: 2, isCut: &isCut) == 2)
    isCut = true
    #expect(try pair.reader.receive(into: buffer, atMost: .max, isCut: &isCut) == 4)
    #expect(!isCut)
    #expect(content(buffer) == [3, 4, 5, 6])
    #expect(try pair.reader.send(buffer, first: 3) == 3)
    var back = [UInt8](repeating: 0, count: 8)
    #expect(try pair.writer.receive(into: &back) == 3)
    #expect(back == [3, 4, 5, 0, 0, 0, 0, 0])
    try pair.writer.shutdownBoth()
    #expect(throws: SystemError(call: "send", code: EPIPE)) { _ = try pair.reader.send(buffer, first: 1) }
    #expect(try pair.reader.receive(into: buffer, atMost: 4, isCut: &isCut) == 0)
  }
}

struct SlotsTests {
  private final class Value {}

  @Test func `values keep their slots when these grow, and are released with them`() {
    weak var replaced: Value?
    weak var last: Value?
    do {
      let slots = Slots<Value?>(repeating: nil, count: 2)
      let value = Value()
      slots[0] = value
      slots[1] = Value()
      replaced = slots[1]
      slots.grow(repeating: nil)
      #expect(slots.count == 4)
      #expect(slots[0] === value && slots[1] === replaced && slots[2] == nil && slots[3] == nil)
      slots[1] = nil
      #expect(replaced == nil)
      slots[3] = Value()
      last = slots[3]
      #expect(last != nil)
    }
    #expect(last == nil)
  }
}
