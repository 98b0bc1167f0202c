import IdentityClient

private let mailPassword = ItemPrimaryKey(service: "mail", account: "alice")

/// Stores the password, and replaces a previous one.
func keep(_ password: Secret, with client: IdentityClient) async throws(IdentityError) {
  _ = try await client.ask(.putItem(mailPassword, secret: password, ItemMetadata(label: "My mail")))
}

/// Returns the password; nil if none is stored.
func password(with client: IdentityClient) async throws(IdentityError) -> Secret? {
  do {
    return try await client.ask(.readItem(mailPassword)).secret
  } catch .refused(.notFound, _) {
    return nil
  }
}
