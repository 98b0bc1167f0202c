/// Who is at the other end of a connection, by the kernel's word at the time it connected.
package struct Peer: Equatable, Sendable {
  /// The app: `unit:NAME.service`, `unit:NAME.service@UID` for a user's service, else `user:UID` (protocol, section 2).
  package let app: Text
  /// The vendor: an app without a manifest is one of its own.
  package let vendor: Text
  /// The user, as SO_PEERCRED gave it.
  package let userID: UInt32
  /// The group, as SO_PEERCRED gave it.
  package let groupID: UInt32
  /// The process that connected. It may be gone by now: never use it to decide anything.
  package let processID: Int32
  /// The systemd service that the process ran in, if any.
  package let unit: Text?
  /// Whether it is root or in `AdminGroup=`.
  package let isAdmin: Bool

  /// Derives the app from what the kernel and the control group say.
  ///
  /// - Parameters:
  ///   - unit: the service, or nil outside of one.
  ///   - unitOwner: the user whose manager runs that service; nil for the system's.
  package init(
    userID: UInt32, groupID: UInt32, processID: Int32, unit: Text? = nil, unitOwner: UInt32? = nil, isAdmin: Bool
  ) {
    switch (unit, unitOwner) {
    case (let unit?, nil): app = Text("unit:\(unit)")
    case (let unit?, let owner?): app = Text("unit:\(unit)@\(owner)")
    case (nil, _): app = Text("user:\(userID)")
    }
    vendor = app
    self.userID = userID
    self.groupID = groupID
    self.processID = processID
    self.unit = unit
    self.isAdmin = isAdmin
  }
}
