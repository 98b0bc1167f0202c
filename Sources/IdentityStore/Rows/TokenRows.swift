import CSodium
package import IdentityCore

// Conversion between a push token and the columns of a row of `token`, without its revision and proof.
extension Token: StoredRow {
  var key: Value { .integer(number) }

  func append(to row: inout RowBytes) {
    row.append(number)
    row.append(app)
    row.append(provider)
    row.append(value)
    row.append(environment)
    row.append(topic)
    row.append(device)
    row.append(isValid)
    row.append(created)
    row.append(changed)
    row.append(confirmed)
  }

  convenience init?(columns: [Value]) {
    guard let number = columns[0].number, let app = columns[1].asText, let provider = columns[2].asText,
      let value = columns[3].asText, columns[4].isTextOrNull, columns[5].isTextOrNull, let device = columns[6].uuid,
      let valid = columns[7].number, valid == 0 || valid == 1, let created = columns[8].time,
      let changed = columns[9].time, let confirmed = columns[10].time
    else { return nil }
    self.init(
      number: number, app: app, provider: provider, value: value, environment: columns[4].asText,
      topic: columns[5].asText, device: device, isValid: valid == 1, created: created, changed: changed,
      confirmed: confirmed, fingerprint: Token.fingerprint(of: value))
  }

  /// Returns a fingerprint that identifies a push token in places that must not contain the token itself.
  ///
  /// The fingerprint is the first 16 hexadecimal digits of the SHA-256 of the token. A holder of the token can compute
  /// it with `printf %s "$token" | sha256sum`.
  package static func fingerprint(of value: Text) -> Text {
    var digits: [UInt8] = []
    unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Int(crypto_hash_sha256_BYTES)) { hash in
      guard let start = hash.baseAddress else { return }
      // Always returns 0.
      _ = unsafe crypto_hash_sha256(start, value.bytes, UInt64(value.bytes.count))
      unsafe digits.append(hexadecimal: UnsafeMutableBufferPointer(rebasing: hash.prefix(8)))
    }
    return Text(trusted: digits)
  }
}

extension Edit {
  /// Writes a push token in its current state.
  mutating func store(_ token: Token, _ change: TokenChange, _ authenticator: borrowing Authenticator)
    throws(DatabaseError)
  {
    if change == .created {
      try insert(token, tables.token, authenticator)
    } else {
      try replace(token, tables.token, authenticator)
    }
  }

  /// Removes a push token.
  mutating func remove(_ token: Token, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    let number = Value.integer(token.number)
    let removed = Token(columns: try remove(number, tables.token, authenticator))
    guard removed?.app == token.app, removed?.provider == token.provider else {
      throw .unproven(Table.token.name, number)
    }
  }
}
