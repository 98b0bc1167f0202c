/// A point in time: milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
package struct Timestamp: Hashable, Comparable, Sendable {
  /// Milliseconds since the epoch; negative before the epoch.
  package let milliseconds: Int64

  /// Creates a timestamp from milliseconds since the epoch.
  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// The beginning of 1970, which stands for a time before it is read.
  static let epoch = Timestamp(milliseconds: 0)

  /// Whole seconds since the epoch, rounded down.
  package var seconds: Int64 { milliseconds.flooredQuotientAndRemainder(dividingBy: 1_000).0 }

  /// The time some seconds later, or the latest time if that would overflow.
  package func adding(seconds: Int64) -> Timestamp {
    let (added, overflows) = seconds.multipliedReportingOverflow(by: 1_000)
    let (later, isBeyond) = milliseconds.addingReportingOverflow(added)
    return Timestamp(milliseconds: overflows || isBeyond ? .max : later)
  }

  /// Orders by time.
  package static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }
}

/// A day in UTC.
package struct Day: Hashable, Comparable, Sendable {
  /// Days since 1970-01-01; negative before that day.
  package internal(set) var number: Int64

  /// Creates a day from the number of days since 1970-01-01.
  package init(number: Int64) { self.number = number }

  package init(of moment: Timestamp) {
    number = moment.milliseconds.flooredQuotientAndRemainder(dividingBy: 86_400_000).0
  }

  /// The first moment of the day; nil if it overflows a timestamp.
  package var start: Timestamp? {
    let (milliseconds, overflows) = number.multipliedReportingOverflow(by: 86_400_000)
    return overflows ? nil : Timestamp(milliseconds: milliseconds)
  }

  /// Orders by time.
  package static func < (left: Day, right: Day) -> Bool { left.number < right.number }
}

// MARK: - RFC 3339

extension Timestamp {
  /// The length of the RFC 3339 form, in bytes.
  package static let textLength = 24

  /// Appends the RFC 3339 form, like `2026-11-21T08:39:12.345Z`: UTC, three decimals, always 24 bytes.
  ///
  /// A timestamp outside of the years 0 to 9999 is written as the nearest moment inside.
  package func append(to output: inout [UInt8]) {
    // A single append, because each append checks the array's uniqueness and capacity.
    output.append(addingCapacity: Self.textLength) { append(to: &$0) }
  }

  /// Appends the RFC 3339 form to a span that has room for it.
  package func append(to text: inout OutputSpan<UInt8>) {
    let clamped = min(max(milliseconds, Self.earliest), Self.latest)
    let (days, rest) = clamped.flooredQuotientAndRemainder(dividingBy: 86_400_000)
    let date = CivilDate(daysSinceEpoch: days)
    text.append(twoDigits: date.year / 100)
    text.append(twoDigits: date.year % 100)
    text.append(UInt8(ascii: "-"))
    text.append(twoDigits: date.month)
    text.append(UInt8(ascii: "-"))
    text.append(twoDigits: date.day)
    text.append(UInt8(ascii: "T"))
    text.append(twoDigits: rest / 3_600_000)
    text.append(UInt8(ascii: ":"))
    text.append(twoDigits: rest / 60_000 % 60)
    text.append(UInt8(ascii: ":"))
    text.append(twoDigits: rest / 1_000 % 60)
    text.append(UInt8(ascii: "."))
    text.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 1_000 / 100))
    text.append(twoDigits: rest % 100)
    text.append(UInt8(ascii: "Z"))
  }

  /// Parses exactly the form that `append` writes. Returns nil for anything else.
  package init?(parsing text: Text) { self.init(parsing: text.bytes.span) }

  /// Parses exactly the form that `append` writes. Returns nil for anything else.
  package init?(parsing bytes: borrowing Span<UInt8>) {
    guard bytes.count == 24 else { return nil }
    guard bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"), bytes[10] == UInt8(ascii: "T"),
      bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"), bytes[19] == UInt8(ascii: "."),
      bytes[23] == UInt8(ascii: "Z")
    else { return nil }
    guard let year = bytes.decimal(0..<4), let month = bytes.decimal(5..<7), let day = bytes.decimal(8..<10),
      let hour = bytes.decimal(11..<13), let minute = bytes.decimal(14..<16), let second = bytes.decimal(17..<19),
      let thousandth = bytes.decimal(20..<23), (1...12).contains(month), hour < 24, minute < 60, second < 60
    else { return nil }
    let date = CivilDate(year: year, month: month, day: day)
    let days = date.daysSinceEpoch
    // Every month has 28 days.
    guard (1...28).contains(day) || CivilDate(daysSinceEpoch: days) == date else { return nil }
    let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second
    self.init(milliseconds: seconds * 1_000 + thousandth)
  }

  /// The range of a four-digit year: 0000-01-01T00:00:00.000Z to 9999-12-31T23:59:59.999Z.
  private static let earliest: Int64 = -62_167_219_200_000
  private static let latest: Int64 = 253_402_300_799_999
}

extension Timestamp: CustomStringConvertible {
  /// The RFC 3339 form.
  package var description: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension Span<UInt8> {
  /// Returns the value of these decimal digits, or nil if a byte is not a digit.
  fileprivate func decimal(_ range: Range<Int>) -> Int64? {
    var value: Int64 = 0
    for index in range {
      let byte = self[index]
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
      value = value * 10 + Int64(byte - UInt8(ascii: "0"))
    }
    return value
  }
}

/// A date of the proleptic Gregorian calendar.
///
/// The calculation counts years from March. The leap day is then the last day of a year, and the number of days before
/// a month is a linear formula.
private struct CivilDate: Equatable {
  var year: Int64
  var month: Int64
  var day: Int64

  init(year: Int64, month: Int64, day: Int64) {
    self.year = year
    self.month = month
    self.day = day
  }

  init(daysSinceEpoch: Int64) {
    // 719,468 days lie between 0000-03-01 and 1970-01-01. A cycle of 400 years has 146,097 days.
    let (cycle, dayOfCycle) = (daysSinceEpoch + 719_468).flooredQuotientAndRemainder(dividingBy: 146_097)
    let yearOfCycle = (dayOfCycle - dayOfCycle / 1_460 + dayOfCycle / 36_524 - dayOfCycle / 146_096) / 365
    let dayOfYear = dayOfCycle - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    year = cycle * 400 + yearOfCycle + (month <= 2 ? 1 : 0)
  }

  var daysSinceEpoch: Int64 {
    let fromMarch = month <= 2 ? year - 1 : year
    let (cycle, yearOfCycle) = fromMarch.flooredQuotientAndRemainder(dividingBy: 400)
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return cycle * 146_097 + yearOfCycle * 365 + yearOfCycle / 4 - yearOfCycle / 100 + dayOfYear - 719_468
  }
}

extension Int64 {
  /// Divides with rounding down, so that the remainder is never negative.
  fileprivate func flooredQuotientAndRemainder(dividingBy divisor: Int64) -> (Int64, Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

extension OutputSpan<UInt8> {
  @inline(__always)
  fileprivate mutating func append(twoDigits value: Int64) {
    append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value / 10))
    append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: value % 10))
  }
}
