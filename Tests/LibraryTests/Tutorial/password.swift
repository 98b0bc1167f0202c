import IdentityClient

private let mailPassword = ItemKey(service: "mail", account: "alice")

/// Keeps the password, whether there was one before or not.
func keep(_ password: Secret, with client: IdentityClient) async throws(IdentityError) {
  _ = try await client.ask(.putItem(mailPassword, secret: password, ItemDescription(label: "My mail")))
}

/// The password; nil where none is kept.
func password(with client: IdentityClient) async throws(IdentityError) -> Secret? {
  do {
    return try await client.ask(.readItem(mailPassword)).secret
  } catch .refused(.notFound, _) {
    return nil
  }
}
