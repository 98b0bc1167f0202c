import Foundation
import LinuxSystem
import TestSupport
import Testing

struct InputFileTests {
  @Test func `a file is read in pieces to its end`() throws {
    let folder = try TemporaryFolder()
    try folder.write("file", "abcdefgh")
    let file = try InputFile(path: folder["file"])
    var piece = [UInt8](repeating: 0, count: 3)
    var text = ""
    for expected in [3, 3, 2, 0] {
      let count = try file.fill(&piece)
      #expect(count == expected)
      text += String(decoding: piece[..<count], as: UTF8.self)
    }
    #expect(text == "abcdefgh")
    #expect(file.name == folder["file"])
  }

  @Test(arguments: [true, false]) func `a pipe is waited for, whether or not it blocks`(blocks: Bool) throws {
    let pipe = Pipe()
    let number = pipe.fileHandleForReading.fileDescriptor
    if !blocks { #expect(fcntl(number, F_SETFL, O_NONBLOCK) == 0) }
    let writing = pipe.fileHandleForWriting
    Foundation.Thread.detachNewThread {
      for text in ["ab", "cd", "e"] {
        usleep(20_000)
        try? writing.write(contentsOf: Data(text.utf8))
      }
      try? writing.close()
    }
    let file = try InputFile(descriptor: number, named: "pipe")
    var bytes = [UInt8](repeating: 0, count: 4)
    #expect(try file.fill(&bytes) == 4)
    #expect(bytes == Array("abcd".utf8))
    #expect(try file.fill(&bytes) == 1)
    #expect(try file.fill(&bytes) == 0)
  }

  @Test func `a descriptor that was passed in stays open`() throws {
    let pipe = Pipe()
    let number = pipe.fileHandleForReading.fileDescriptor
    try pipe.fileHandleForWriting.write(contentsOf: Data("ab".utf8))
    var byte: [UInt8] = [0]
    for expected in "ab".utf8 {
      let file = try InputFile(descriptor: number, named: "pipe")
      #expect(try file.fill(&byte) == 1)
      #expect(byte == [expected])
    }
  }

  @Test func `an error names the file or the descriptor`() throws {
    #expect(throws: SystemError(call: "open /nonexistent", code: ENOENT)) { _ = try InputFile(path: "/nonexistent") }
    #expect(throws: SystemError(call: "use descriptor 999999", code: EBADF)) {
      _ = try InputFile(descriptor: 999_999, named: "descriptor 999999")
    }
    let folder = try InputFile(path: "/")
    var bytes: [UInt8] = [0]
    #expect(throws: SystemError(call: "read /", code: EISDIR)) { try folder.fill(&bytes) }
  }
}
