/// A program as the daemon sees it, from facts that the kernel reports.
public struct IdentityPeer: Hashable, Sendable {
  /// The ID of the app.
  public let app: String
  /// The vendor of the app.
  public let vendor: String?
  /// The access groups of items that the app's manifest lists; empty if there are none.
  public let groups: [String]
  /// The systemd unit of the program; nil outside of a unit, and in a service of another user's manager.
  public let unit: String?
  /// The user ID of the program.
  public let userID: UInt32
  /// The group ID of the program.
  public let groupID: UInt32
  /// The process ID of the program.
  public let processID: Int32
  /// Whether the program is an admin.
  public let isAdmin: Bool

  init(_ fields: AnswerFields) throws(IdentityError) {
    app = try fields.word(0)
    vendor = fields.text("vendor")
    groups = fields.text("groups")?.split(separator: ",").map(String.init) ?? []
    unit = fields.text("unit")
    userID = try fields.number("uid")
    groupID = try fields.number("gid")
    processID = try fields.number("pid")
    isAdmin = try fields.flag("admin")
  }
}
