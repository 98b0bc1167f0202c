import Foundation
import LinuxSystem
import TestSupport
import Testing

struct TimedWaitTests {
  /// Returns the time so many milliseconds from now.
  private func moment(in milliseconds: UInt64) -> UInt64 { Clock.monotonicMicroseconds + milliseconds * 1_000 }

  @Test func `data to read ends the wait at once, whatever the deadline`() throws {
    let pair = try Pair.sockets()
    try pair.writer.sendAll([1])
    for deadline in [nil, 0, moment(in: 60_000)] {
      #expect(try TimedWait.wait(for: pair.reader.number, until: deadline) == .readable)
    }
  }

  @Test func `the end of a stream counts as readable`() throws {
    let pair = try Pair.sockets()
    try pair.writer.shutdownWriting()
    #expect(try TimedWait.wait(for: pair.reader.number, until: nil) == .readable)
  }

  @Test(arguments: [0, 1, 50] as [UInt64])
  func `without data the wait lasts until its deadline and no less`(milliseconds: UInt64) throws {
    let pair = try Pair.sockets()
    for number in [pair.reader.number, nil] {
      let deadline = moment(in: milliseconds)
      #expect(try TimedWait.wait(for: number, until: deadline) == .timeUp)
      #expect(Clock.monotonicMicroseconds >= deadline)
    }
  }

  @Test func `a deadline in the past does not wait`() throws {
    #expect(try TimedWait.wait(for: nil, until: 0) == .timeUp)
  }

  @Test func `a bell ends the wait and precedes readable data`() throws {
    let pair = try Pair.sockets()
    let bell = try Wakeup(blocking: false)
    let number = bell.descriptor.number
    #expect(try TimedWait.wait(for: pair.reader.number, bell: number, until: moment(in: 1)) == .timeUp)
    try pair.writer.sendAll([1])
    #expect(try TimedWait.wait(for: pair.reader.number, bell: number, until: nil) == .readable)
    bell.ring()
    #expect(try TimedWait.wait(for: pair.reader.number, bell: number, until: nil) == .rung)
    #expect(try TimedWait.wait(for: nil, bell: number, until: nil) == .rung)
    bell.wait()
    #expect(try TimedWait.wait(for: pair.reader.number, bell: number, until: nil) == .readable)
  }

  @Test func `room to write is reported if requested and nothing is readable`() throws {
    let pair = try Pair.sockets()
    #expect(try TimedWait.wait(for: pair.reader.number, wantsRoom: true, until: nil) == .room)
    #expect(try TimedWait.wait(for: pair.reader.number, until: 0) == .timeUp)
    try pair.writer.sendAll([1])
    #expect(try TimedWait.wait(for: pair.reader.number, wantsRoom: true, until: nil) == .readable)
  }

  @Test func `a connection is made at once or not at all`() throws {
    let temporary = try TemporaryFolder()
    let path = temporary["socket"]
    let refused: SystemError = try failure { _ = try UnixSocket.connectAtOnce(to: path)?.number }
    #expect(refused == SystemError(call: "connect \(path)", code: ENOENT))
    let listener = try UnixSocket.listen(at: path, mode: 0o777, backlog: 0)
    guard let first = try UnixSocket.connectAtOnce(to: path) else { throw Failure("there was room") }
    #expect(fcntl(first.number, F_GETFL) & O_NONBLOCK != 0)
    // A backlog of 0 has room for one connection.
    let second = try UnixSocket.connectAtOnce(to: path)
    #expect(second == nil ? true : false)
    #expect(listener.number >= 0)
  }
}
