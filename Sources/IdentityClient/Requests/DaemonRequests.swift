extension IdentityRequest where Answer == IdentityPeer {
  /// Requests the identity of this program as the daemon sees it.
  public static var whoami: IdentityRequest {
    IdentityRequest(.question("whoami")) { (fields) throws(IdentityError) in try IdentityPeer(fields) }
  }
}

extension IdentityRequest where Answer == [String: String] {
  /// Requests the daemon's state, as values by the names in identityd-protocol(7), Rows of status.
  ///
  /// Every program gets the rows about the daemon's health. Only a program that may monitor the daemon gets the other
  /// rows. If several rows have one name, the last value is kept.
  public static var status: IdentityRequest {
    IdentityRequest(.question("status")) { (fields) throws(IdentityError) in
      let rows = try fields.map { (row) throws(IdentityError) in row.values }
      return rows.reduce(into: [:]) { $0.merge($1) { $1 } }
    }
  }
}
