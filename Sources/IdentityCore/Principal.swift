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
  /// Whether there is a source that tells the ranges of one owner at a time. Ranges of owners that it was not asked about
  /// are missing.
  package var isByOwner = false

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

/// How much of something there is for one, where all shall have some: at most 1/n of what the others leave, where n is one
/// more than the number of those who have some, the one that asks included (dbus-broker(1) accounts so).
package enum FairShare {
  /// - Parameters:
  ///   - total: how much there is in all.
  ///   - used: how much the others have.
  ///   - others: how many they are.
  package static func most(of total: Int, usedByOthers used: Int, others: Int) -> Int {
    max(0, total - used) / (others + 2)
  }
}

/// Identifies an account that is charged for stored state: an app alone, or a principal for all of its apps together.
package enum Holder: Hashable, Sendable, CustomStringConvertible {
  /// An app that a package or root brought: one with a manifest, a system service, root outside of services.
  case app(Text)
  /// A principal whose apps have no manifest: it may have as many of these as it likes.
  case principal(Principal)

  /// The holder of what an app stores.
  package init(of app: Text, _ subordinates: SubordinateUsers) {
    guard let principal = Principal(app: app, subordinates), !principal.isTrusted else {
      self = .app(app)
      return
    }
    self = .principal(principal)
  }

  /// As errors name it.
  package var description: String {
    switch self {
    case .app(let app): "\(app)"
    case .principal(let principal): "\(principal)"
    }
  }
}

extension Principal {
  /// The principal of an app without a manifest, by the form of its name; nil for any other app, and for a system service.
  package init?(app: Text, _ subordinates: SubordinateUsers) {
    if let user = app.owner ?? app.user {
      self = .user(subordinates.owner(of: user))
    } else if app.bytes.starts(with: "container:".utf8) {
      self = .container(Text(trusted: Array(app.bytes.dropFirst("container:".utf8.count))))
    } else {
      return nil
    }
  }
}

extension Text {
  /// The user whose service or container an app without a manifest is by its name: `unit:NAME@UID`, `unit:NAME:UID`,
  /// `container:ID@UID`. Nil for any other. The name of a service ends with `.service`, so that of a system service is none
  /// of these.
  package var owner: UInt32? {
    let isUnit = bytes.starts(with: "unit:".utf8)
    guard isUnit || bytes.starts(with: "container:".utf8),
      let mark = bytes.lastIndex(where: { $0 == UInt8(ascii: "@") || isUnit && $0 == UInt8(ascii: ":") })
    else { return nil }
    return UInt32(String(decoding: bytes[(mark + 1)...], as: UTF8.self))
  }

  /// The user that an app without a manifest is by its name: `user:UID`. Nil for any other.
  fileprivate var user: UInt32? {
    guard bytes.starts(with: "user:".utf8) else { return nil }
    return UInt32(String(decoding: bytes.dropFirst("user:".utf8.count), as: UTF8.self))
  }
}
