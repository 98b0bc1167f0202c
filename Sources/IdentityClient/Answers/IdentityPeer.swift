/// Who the daemon takes a program for, by the kernel's word.
public struct IdentityPeer: Hashable, Sendable {
  /// The app.
  public let app: String
  /// The app's vendor.
  public let vendor: String?
  /// The access groups that its manifest lists.
  public let groups: [String]
  /// The systemd unit that it runs in.
  public let unit: String?
  /// The user's number.
  public let userID: UInt32
  /// The group's number.
  public let groupID: UInt32
  /// The process's number.
  public let processID: Int32
  /// Whether it may do what is for admins.
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
