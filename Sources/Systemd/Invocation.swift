import Glibc

/// One run of a unit: a 128-bit number that systemd draws at each start of the unit (`INVOCATION_ID`, systemd.exec(5)).
package struct Invocation: Hashable, Sendable {
  /// The first half of the written number.
  package let high: UInt64
  /// The second half of the written number.
  package let low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Reads 32 hexadecimal digits, as systemd writes them. Nil for anything else.
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

  /// Reads the symbolic link that the system's manager keeps, for journald's use, for each running unit.
  ///
  /// Nil if there is no link or the link cannot be read.
  ///
  /// The result is the unit's current run, even for a process that has outlived its own run (`KillMode=process`).
  init?(ofSystemUnit name: String) { self.init(link: "/run/systemd/units/invocation:\(name)") }

  /// Reads the target of a symbolic link. Nil if there is no link, or if the target is not an invocation's number.
  package init?(link path: String) {
    // One byte more than the number needs, to detect a longer target.
    var target = [CChar](repeating: 0, count: 33)
    let count = unsafe readlink(path, &target, target.count)
    guard count >= 0 else { return nil }
    self.init(hexadecimal: target.prefix(count).map { UInt8(bitPattern: $0) })
  }
}
