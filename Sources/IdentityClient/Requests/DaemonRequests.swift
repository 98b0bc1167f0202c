extension IdentityRequest where Answer == IdentityPeer {
  /// Who the daemon takes this program for.
  public static var whoami: IdentityRequest {
    IdentityRequest(.question("whoami")) { (fields) throws(IdentityError) in try IdentityPeer(fields) }
  }
}

extension IdentityRequest where Answer == [String: String] {
  /// The daemon's state, by the names that identityd-protocol(7) lists: its health, and to a program that may monitor the
  /// daemon the rest.
  public static var status: IdentityRequest {
    IdentityRequest(.question("status")) { (fields) throws(IdentityError) in
      let rows = try fields.map { (row) throws(IdentityError) in row.values }
      return rows.reduce(into: [:]) { $0.merge($1) { $1 } }
    }
  }
}
