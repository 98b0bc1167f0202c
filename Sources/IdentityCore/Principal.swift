/// The user or container that bounds and turns are charged to (identityd.conf(5), section "[Limits]").
///
/// A user who creates any number of users or containers remains one principal.
package enum Principal: Hashable, Sendable, CustomStringConvertible {
  /// A user, together with its subordinate users.
  case user(UInt32)
  /// A container, or a root service with contained processes, by name.
  case container(Text)

  /// Whether the principal is root outside of containers. Root is trusted, and unrelated services run as root.
  package var isTrusted: Bool { self == .user(0) }

  /// The name of the principal in error texts.
  package var description: String {
    switch self {
    case .user(let user): "uid \(user)"
    case .container(let name): "container \(name)"
    }
  }

  package init(of peer: Peer, _ subordinates: SubordinateUsers) {
    let place = peer.place
    if let container = place.container {
      // Users choose the names of their own containers, so the owner is charged.
      self = place.owner.map { .user(subordinates.owner(of: $0)) } ?? .container(container)
    } else if place.isContained, peer.userID == 0 {
      self = .container(place.unit ?? "root")
    } else {
      self = .user(subordinates.owner(of: peer.userID))
    }
  }
}

/// The ranges of subordinate users and their owners (subuid(5)). A user may become any of its subordinate users.
package struct SubordinateUsers: Equatable, Sendable {
  /// A contiguous range of user IDs with one owner.
  package struct Range: Equatable, Sendable {
    let first: UInt32
    let last: UInt32
    let owner: UInt32

    /// Creates a range. Returns nil if the count is zero or the last user ID would overflow.
    package init?(first: UInt32, count: UInt32, owner: UInt32) {
      guard count > 0, first.addingReportingOverflow(count - 1).overflow == false else { return nil }
      self.first = first
      last = first + (count - 1)
      self.owner = owner
    }
  }

  /// Sorted by user ID, without overlaps.
  private var ranges: [Range] = []
  /// Whether a name service provides ranges too, by one query per owner. Ranges of owners not queried yet are missing.
  package var isByOwner = false

  /// Creates a table of ranges. Of two overlapping ranges, only the one with the lower user IDs counts.
  package init(_ ranges: [Range] = []) {
    for range in ranges.sorted(by: { ($0.first, $0.last) < ($1.first, $1.last) }) {
      if let last = self.ranges.last, range.first <= last.last { continue }
      self.ranges.append(range)
    }
  }

  /// Returns the owner of a user, or the user itself if the user is not subordinate.
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

/// Computes the fair share of a limited resource, as dbus-broker(1) does.
///
/// A principal may hold at most 1/n of the amount that the others leave. The divisor n is one more than the number of
/// principals that hold some, including the requesting principal.
package enum FairShare {
  /// Returns the largest amount that one principal may hold.
  ///
  /// - Parameters:
  ///   - total: the total amount of the resource.
  ///   - used: the amount that the other principals hold.
  ///   - others: the number of other principals that hold some.
  package static func most(of total: Int, usedByOthers used: Int, others: Int) -> Int {
    max(0, total - used) / (others + 2)
  }
}

/// The party charged for stored state: an app alone, or a principal for all of its apps together.
package enum Holder: Hashable, Sendable, CustomStringConvertible {
  /// An app that a package or root installed: an app with a manifest, a system service, or root outside of services.
  case app(Text)
  /// A principal, for its apps without a manifest. A principal can create any number of these apps.
  case principal(Principal)

  /// Creates the holder that is charged for the state of an app.
  package init(of app: Text, _ subordinates: SubordinateUsers) {
    guard let principal = Principal(app: app, subordinates), !principal.isTrusted else {
      self = .app(app)
      return
    }
    self = .principal(principal)
  }

  /// The name of the holder in error texts.
  package var description: String {
    switch self {
    case .app(let app): "\(app)"
    case .principal(let principal): "\(principal)"
    }
  }
}

extension Principal {
  /// Creates the principal of an app without a manifest from the form of the app's ID.
  ///
  /// Returns nil for any other app, and for a system service.
  package init?(app: Text, _ subordinates: SubordinateUsers) {
    if let user = app.owner ?? app.user {
      self = .user(subordinates.owner(of: user))
    } else if app.begins(with: .containerMark) {
      self = .container(Text(trusted: Array(app.bytes.dropFirst(Text.containerMark.bytes.count))))
    } else {
      return nil
    }
  }
}

extension Text {
  /// The user that owns the service or container in the ID of an app without a manifest, else nil.
  ///
  /// The forms are `unit:NAME@UID`, `unit:NAME:UID` and `container:ID@UID`. The ID of a system service matches none of
  /// these forms, because the name of a service ends with `.service`.
  package var owner: UInt32? {
    let isUnit = begins(with: .unitMark)
    guard isUnit || begins(with: .containerMark),
      let mark = bytes.lastIndex(where: { $0 == UInt8(ascii: "@") || isUnit && $0 == UInt8(ascii: ":") })
    else { return nil }
    return UInt32(String(decoding: bytes[(mark + 1)...], as: UTF8.self))
  }

  /// The user in the ID `user:UID` of an app without a manifest, else nil.
  fileprivate var user: UInt32? {
    guard begins(with: .userMark) else { return nil }
    return UInt32(String(decoding: bytes.dropFirst(Self.userMark.bytes.count), as: UTF8.self))
  }

  fileprivate static let unitMark: Text = "unit:"
  fileprivate static let containerMark: Text = "container:"
  fileprivate static let userMark: Text = "user:"

  fileprivate func begins(with mark: Text) -> Bool { bytes.span.begins(with: mark.bytes.span) }
}
