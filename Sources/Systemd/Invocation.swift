import Glibc

/// One run of a unit: a 128-bit number that systemd draws each time it starts it (`INVOCATION_ID`, systemd.exec(5)).
package struct Invocation: Hashable, Sendable {
  /// The first half, as it is written.
  package let high: UInt64
  /// The second half.
  package let low: UInt64

  /// Puts a number together.
  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Reads 32 hexadecimal digits, as systemd writes them; nil for anything else.
  package init?(hexadecimal text: [UInt8]) {
    guard text.count == 32 else { return nil }
    var halves: (high: UInt64, low: UInt64) = (0, 0)
    for digit in text {
      let value: UInt8
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
      default: return nil
      }
      halves = (halves.high << 4 | halves.low >> 60, halves.low << 4 | UInt64(value))
    }
    self.init(high: halves.high, low: halves.low)
  }

  /// Reads the symbolic link that the system's manager keeps for each unit that runs, for journald's use; nil where there is
  /// none, or it cannot be read.
  ///
  /// It is the unit's run now: a process that outlived the run it belonged to (`KillMode=process`) has it as well.
  init?(ofSystemUnit name: String) { self.init(link: "/run/systemd/units/invocation:\(name)") }

  /// Reads the target of a symbolic link; nil where it is none, or is not such a number.
  package init?(link path: String) {
    // One byte more than fits, so that a longer target is seen to be longer.
    var target = [CChar](repeating: 0, count: 33)
    let count = unsafe readlink(path, &target, target.count)
    guard count >= 0 else { return nil }
    self.init(hexadecimal: target.prefix(count).map { UInt8(bitPattern: $0) })
  }
}
