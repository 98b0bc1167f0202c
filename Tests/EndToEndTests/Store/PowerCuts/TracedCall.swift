import Foundation
import TestSupport

/// One system call in a trace of strace(1).
struct TracedCall {
  /// One argument: its strings, decoded, and the text around them.
  struct Argument {
    var text: String
    var bytes: [UInt8]?
    /// The bytes as a path or a name.
    var path: String { String(decoding: bytes ?? [], as: UTF8.self) }
    var number: Int? { Int(text) }
  }

  let name: String
  let arguments: [Argument]
  /// The return value. -1 for an error.
  let result: Int

  /// Reads all calls of a trace, in the order in which they returned.
  ///
  /// - Parameters:
  ///   - begins: receives a number for each call that began before others returned.
  ///   - returns: receives each call, and the number that `begins` received for it, if any.
  static func read(_ file: URL, begins: (Int) -> Void, returns: (TracedCall, Int?) throws -> Void) throws {
    let trace = try [UInt8](Data(contentsOf: file))
    var unfinished: [Int: (number: Int, text: [UInt8])] = [:]
    var number = 0
    var start = 0
    while start < trace.count {
      let end = place(of: UInt8(ascii: "\n"), in: trace, from: start) ?? trace.count
      defer { start = end + 1 }
      guard let space = place(of: UInt8(ascii: " "), in: trace, from: start),
        let thread = Int(String(decoding: trace[start..<space], as: UTF8.self))
      else { throw Failure("strace wrote '\(String(decoding: trace[start..<end], as: UTF8.self))'") }
      var line = trace[space..<end].drop { $0 == UInt8(ascii: " ") }
      // Skips exit statuses and signals.
      if line.starts(with: "+++".utf8) || line.starts(with: "---".utf8) { continue }
      let mark = Array(" <unfinished ...>".utf8)
      if line.suffix(mark.count).elementsEqual(mark) {
        number += 1
        begins(number)
        unfinished[thread] = (number, Array(line.dropLast(mark.count)))
        continue
      }
      var begun: Int?
      if line.starts(with: "<... ".utf8) {
        guard let first = unfinished.removeValue(forKey: thread), let bracket = line.firstIndex(of: UInt8(ascii: ">"))
        else { throw Failure("strace wrote the end of a call that did not begin") }
        begun = first.number
        line = (first.text + line[(bracket + 1)...])[...]
      }
      // A call without a result did not return, because the process was killed in it.
      if line.last != UInt8(ascii: "?") { try returns(TracedCall(Array(line)), begun) }
    }
  }

  private init(_ line: [UInt8]) throws {
    guard let bracket = line.firstIndex(of: UInt8(ascii: "(")) else { throw Failure("no call: \(line.count) bytes") }
    name = String(decoding: line[..<bracket], as: UTF8.self)
    var arguments: [Argument] = []
    var current = Argument(text: "", bytes: nil)
    var depth = 0
    var place = bracket + 1
    scan: while place < line.count {
      let byte = line[place]
      switch byte {
      case UInt8(ascii: "\""):
        guard let end = Self.place(of: byte, in: line, from: place + 1) else {
          throw Failure("\(name): no end of a string")
        }
        // A truncated string is an error, because data would be missing.
        guard end + 1 == line.count || line[end + 1] != UInt8(ascii: ".") else {
          throw Failure("\(name): a string was cut")
        }
        current.bytes = (current.bytes ?? []) + Self.decoded(line, place + 1, end)
        place = end
      case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
      case UInt8(ascii: ")") where depth == 0: break scan
      case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      case UInt8(ascii: ",") where depth == 0:
        arguments.append(current)
        current = Argument(text: "", bytes: nil)
      case UInt8(ascii: " "): break
      default: current.text.unicodeScalars.append(Unicode.Scalar(byte))
      }
      place += 1
    }
    self.arguments = arguments + [current]
    let words = String(decoding: line[min(place + 1, line.count)...], as: UTF8.self).split(separator: " ")
    guard words.count > 1, words[0] == "=" else { throw Failure("\(name): no result") }
    guard let result = words[1].hasPrefix("0x") ? Int(words[1].dropFirst(2), radix: 16) : Int(words[1]) else {
      throw Failure("\(name): the result is \(words[1])")
    }
    self.result = result
  }

  private static func place(of byte: UInt8, in bytes: [UInt8], from start: Int) -> Int? {
    unsafe bytes.withUnsafeBytes { buffer in
      guard let base = buffer.baseAddress, start < buffer.count,
        let found = unsafe memchr(base + start, Int32(byte), buffer.count - start)
      else { return nil }
      return unsafe UnsafeRawPointer(found) - base
    }
  }

  /// Decodes a string whose bytes are all written as `\xNN`.
  private static func decoded(_ line: [UInt8], _ start: Int, _ end: Int) -> [UInt8] {
    unsafe line.withUnsafeBufferPointer { line in
      unsafe [UInt8](unsafeUninitializedCapacity: (end - start) / 4) { output, count in
        var place = start
        while place < end {
          let (high, low) = unsafe (line[place + 2], line[place + 3])
          // '0' is 0x30 and 'a' is 0x61.
          unsafe output[count] = (high & 15 &+ (high >> 6) &* 9) << 4 | (low & 15 &+ (low >> 6) &* 9)
          count += 1
          place += 4
        }
      }
    }
  }
}
