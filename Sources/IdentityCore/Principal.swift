/// Whom bounds and turns are charged to (protocol, section 2): whoever makes users or containers at will is one of them.
package enum Principal: Hashable, Sendable, CustomStringConvertible {
  /// A user, and with it those that are subordinate to it.
  case user(UInt32)
  /// A container, or a service of root's whose processes are contained, by its name.
  case container(Text)

  /// Root outside of containers: very different services are root, and it is trusted.
  package var isTrusted: Bool { self == .user(0) }

  /// As errors name it.
  package var description: String {
    switch self {
    case .user(let user): "uid \(user)"
    case .container(let name): "container \(name)"
    }
  }

  /// The principal of a peer.
  package init(of peer: Peer, _ subordinates: SubordinateUsers) {
    let place = peer.place
    if let container = place.container {
      // The names of a user's own containers are that user's choice.
      self = place.owner.map { .user(subordinates.owner(of: $0)) } ?? .container(container)
    } else if place.isContained, peer.userID == 0 {
      self = .container(place.unit ?? "root")
    } else {
      self = .user(subordinates.owner(of: peer.userID))
    }
  }
}

/// Which users are subordinate to which (subuid(5)): a user may become any of those that are subordinate to it.
package struct SubordinateUsers: Equatable, Sendable {
  /// Users with numbers in a row.
  package struct Range: Equatable, Sendable {
    let first: UInt32
    let last: UInt32
    let owner: UInt32

    /// Nil for none, and for numbers that no user can have.
    package init?(first: UInt32, count: UInt32, owner: UInt32) {
      guard count > 0, first.addingReportingOverflow(count - 1).overflow == false else { return nil }
      self.first = first
      last = first + (count - 1)
      self.owner = owner
    }
  }

  /// By their numbers, and none within another.
  private var ranges: [Range] = []

  /// Takes ranges in. Of two that have users in common the one with the smaller numbers counts.
  package init(_ ranges: [Range] = []) {
    for range in ranges.sorted(by: { ($0.first, $0.last) < ($1.first, $1.last) }) {
      if let last = self.ranges.last, range.first <= last.last { continue }
      self.ranges.append(range)
    }
  }

  /// The user that a user is subordinate to; itself where it is nobody's.
  package func owner(of user: UInt32) -> UInt32 {
    var low = 0
    var high = ranges.count
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].last < user { low = middle + 1 } else { high = middle }
    }
    guard low < ranges.count, ranges[low].first <= user else { return user }
    return ranges[low].owner
  }
}

/// How much of something there is for one, where all shall have some: at most 1/n of what the others leave, with n the number
/// of those who have some and the one that asks (dbus-broker(1) accounts so).
package enum FairShare {
  /// - Parameters:
  ///   - total: how much there is in all.
  ///   - used: how much the others have.
  ///   - others: how many they are.
  package static func most(of total: Int, usedByOthers used: Int, others: Int) -> Int {
    max(0, total - used) / (others + 1)
  }
}
