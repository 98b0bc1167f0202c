/// How long the fleet waits, in milliseconds. Within a range, the caller draws the duration at random.
package typealias Delay = ClosedRange<Int>

/// The durations that are not configured.
package enum Pace {
  /// Until the keys are looked for again, while they are unavailable.
  static let keys: Delay = 30_000...30_000
  /// Until another attempt to connect if the broker refused the credentials. An admin has to change them.
  static let refusal: Delay = 300_000...300_000
  /// The longest pause between two attempts to connect, unless `Spread=` is longer.
  static let longestPause = 30_000
  /// How long a subscription may stay unacknowledged before the connection counts as dead.
  static let acknowledgement: Delay = 10_000...10_000
  /// The silence after which the retained messages of a subscription count as complete.
  static let quiet: Delay = 2_000...2_000
  /// The same between two parts of a large roster: the messages of a part follow each other closely.
  static let partQuiet: Delay = 300...300
  /// The longest wait for that silence in each step of a reading, since a broker may never stop sending.
  static let longestReading: Delay = 10_000...10_000
  /// Until the roster is read again for the first and the second time. A broker that has just started may show a part.
  static let rereadings: [Delay] = [15_000...15_000, 120_000...120_000]
  /// Until a change is written that comes within this time after another one. Several changes become one record.
  static let change: Delay = 200...200
  /// Until a change is tried again for which there was no allowance, or which could not be stored.
  static let retriedChange: Delay = 1_000...5_000
  /// Until the own record is written in an earlier version, for a device that reads no later one.
  static let readable: Delay = 0...5_000
  /// Until the device's own message is put back.
  static let ownPutBack: Delay = 0...200
  /// Until another device's message is put back, unless somebody else has done so.
  static let othersPutBack: Delay = 0...5_000
  /// Until a message is asked for that was absent from a reading. Brokers leave out messages that they have.
  static let absence: Delay = 55_000...65_000
  /// Until a message is put back that was absent twice.
  static let absentPutBack: Delay = 0...60_000
  /// Until a publication is tried again for which there was no allowance.
  static let retriedPutBack: Delay = 1_000...2_000
  /// Until a published message is read back, for the first attempt and the further ones.
  static let readBacks: [Delay] = [500...500, 2_000...2_000, 10_000...10_000, 60_000...60_000]
  /// The number of attempts, some 20 seconds, after which a broker that does not show the own record does not keep it.
  static let failedReadBacks = 3
  /// The silence of another run after which it counts as the earlier self of a machine that was set back.
  static let twinSilence: Delay = 60_000...60_000
  /// How long a device that leaves waits for its tombstone to be read back.
  static let leaving: Delay = 75_000...75_000
  /// Until a device tells the others that it is connected, so that not all answer a question at once.
  static let presence: Delay = 0...2_000
  /// Until a device answers the summary of another one with its own.
  static let answeredDigest: Delay = 0...2_000
  /// Until the own record is published again because the summaries differ.
  static let ownRepeated: Delay = 0...2_000
  /// Until another device's message is published again because the summaries differ, unless its author has done so.
  static let othersRepeated: Delay = 5_000...10_000
  /// How many messages of others are published again then.
  static let mostRepeated = 16
  /// How many turns of the comparison follow a change quickly: for more than ten minutes.
  static let quickDigests = 34
  /// How many removals are written again at once after a rotation.
  static let mostRenewals = 50
  /// How long a reading waits until a key is stored.
  static let taking: Delay = 10_000...10_000
  /// Until the roster is read again because this device can read more now.
  static let newKey: Delay = 0...1_000
  /// The pause after a report.
  package static let reportRest: Delay = 600_000...600_000
  /// The pause after a message with tokens.
  static let tokensRest: Delay = 1_000...1_000
  /// Until a message for a reader is written again without a change: a day.
  static let offerRefresh = 86_400_000
  /// How long a code is good for.
  static let invitation: Delay = 900_000...900_000
  /// How long a newcomer looks for its invitation, and waits for the confirmation of its answer.
  static let joining: Delay = 60_000...60_000
  /// The age from which a tombstone may be absent from the broker, in milliseconds: 400 days.
  static let tombstone: Int64 = 400 * 86_400_000
  /// The age from which a device removes a tombstone from the broker. The clocks of two devices may differ by the
  /// difference, and the one does not put back what the other removes.
  static let oldTombstone: Int64 = 430 * 86_400_000

  /// Returns the wait before a publication is read back for the attempt-th time, from 0.
  static func readBack(_ attempt: Int) -> Delay { readBacks[min(attempt, readBacks.count - 1)] }

  /// The greatest number of keys that are handed out in a second.
  static let mostGrants = 100

  /// Returns the wait before a key is handed to a device, after so many others.
  static func grant(_ index: Int) -> Delay {
    let second = index / mostGrants * 1_000
    return second...second + 500
  }

  /// Returns the wait before a device's turn in the comparison, after so many turns since the last change.
  static func digest(_ turns: Int) -> Delay {
    switch turns {
    case 0: 12_000...18_000
    case ..<quickDigests: 18_000...24_000
    default: 700_000...850_000
    }
  }

  /// Returns a duration with a deviation of some percent in either direction.
  static func about(_ duration: Int, percent: Int) -> Delay {
    (duration - duration * percent / 100)...(duration + duration * percent / 100)
  }
}

/// The durations that the configuration sets, in milliseconds.
package struct Settings: Equatable, Sendable {
  /// How far apart devices connect again after a broker's return.
  package var spread: Int
  /// The longest time between two publications of the own record.
  package var heartbeat: Int
  /// The time between two readings of the roster.
  package var resync: Int
  /// Whether this device tells the others that it is connected, and asks them.
  package var presence: Bool

  /// Creates settings: by default 5 seconds, 24 hours and 6 hours, with presence.
  package init(
    spread: Int = 5_000, heartbeat: Int = 86_400_000, resync: Int = 21_600_000, presence: Bool = true
  ) {
    self.spread = spread
    self.heartbeat = heartbeat
    self.resync = resync
    self.presence = presence
  }
}

/// A bound on how often something happens: so many times at once, and so many more in each interval.
struct Allowance: Sendable {
  private let most: Int
  private let refill: Int
  private var left: Int
  /// The interval, in milliseconds.
  let interval: Int

  init(most: Int, refill: Int, interval: Int) {
    self.most = most
    self.refill = refill
    self.interval = interval
    left = most
  }

  /// Whether none of the allowance is used, so that no refill is needed.
  var isFull: Bool { left == most }
  /// Whether the allowance is used up.
  var isEmpty: Bool { left == 0 }

  /// Uses one.
  mutating func use() { left -= 1 }

  /// Adds the refill of an interval.
  mutating func fill() { left = min(most, left + refill) }
}

/// The allowances of a device, so that no fault makes it flood the broker.
package struct Allowances: Sendable {
  /// The kind of messages that an allowance limits.
  package enum Purpose: Hashable, Sendable, CaseIterable {
    /// New records of this device in a short time: one a second, and five at once.
    case change
    /// New records of this device in a long time: 200 at once, and one in five minutes.
    case lastingChange
    /// Messages that are put back: 10 a second.
    case putBack
    /// Messages that are put back in an hour: 1,000.
    case hourlyPutBack
    /// Keys that are handed out: 100 a second, so that the devices of a large account do not wait for theirs.
    case grant
    /// Readings because of another device's summary: 6 at once, and one in 20 seconds.
    case comparison
    /// Messages that are published again because the summaries differ: 34 at once, and four a minute. A member that tells
    /// false summaries must not use up the allowance of messages that are put back.
    case repetition
    /// Presences that are told: 10 at once, and one in 5 seconds.
    case presence
  }

  private var all: [Purpose: Allowance] = [
    .change: Allowance(most: 5, refill: 1, interval: 1_000),
    .lastingChange: Allowance(most: 200, refill: 1, interval: 300_000),
    .putBack: Allowance(most: 10, refill: 10, interval: 1_000),
    .hourlyPutBack: Allowance(most: 1_000, refill: 1_000, interval: 3_600_000),
    .grant: Allowance(most: Pace.mostGrants, refill: Pace.mostGrants, interval: 1_000),
    .comparison: Allowance(most: 6, refill: 1, interval: 20_000),
    .repetition: Allowance(most: 34, refill: 1, interval: 15_000),
    .presence: Allowance(most: 10, refill: 1, interval: 5_000),
  ]

  /// Returns whether the allowance for a purpose is used up.
  func isEmpty(_ purpose: Purpose) -> Bool { all[purpose]?.isEmpty == true }

  /// Uses one of each purpose, if none is used up.
  ///
  /// - Returns: whether there was one of each.
  mutating func use(_ purposes: [Purpose], _ actions: inout [Action]) -> Bool {
    guard purposes.allSatisfy({ all[$0]?.isEmpty == false }) else { return false }
    for purpose in purposes {
      guard var allowance = all[purpose] else { continue }
      if allowance.isFull { actions.append(.wake(.refill(purpose), after: allowance.interval...allowance.interval)) }
      allowance.use()
      all[purpose] = allowance
    }
    return true
  }

  /// Adds the refill of an interval.
  mutating func fill(_ purpose: Purpose, _ actions: inout [Action]) {
    guard var allowance = all[purpose] else { return }
    allowance.fill()
    if !allowance.isFull { actions.append(.wake(.refill(purpose), after: allowance.interval...allowance.interval)) }
    all[purpose] = allowance
  }
}
