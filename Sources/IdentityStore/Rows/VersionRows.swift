import IdentityCore

// Conversion between versions and the columns of rows, without their revision and proof.

extension InstalledRelease {
  /// Returns the columns of a row of `installed_release`.
  func columns(of subject: VersionSubject) -> [Value] {
    [
      .integer(number), Value(subject.app), Value(release.distribution), .text(release.version.bytes),
      Value(release.build), .text("\(installed)"), .text("\(last)"),
    ]
  }

  init?(columns: [Value]) {
    guard let number = columns[0].number, columns[1].isTextOrNull, let release = Release(columns: columns[2...4]),
      let installed = columns[5].time, let last = columns[6].time
    else { return nil }
    self.init(number: number, release: release, installed: installed, last: last)
  }
}

extension VersionReport {
  /// Returns the columns of a row of `version_report`.
  func columns(of subject: VersionSubject) -> [Value] {
    [
      .integer(number), Value(subject.app), .text("\(session)"), .text(state.rawValue), Value(release.distribution),
      .text(release.version.bytes), Value(release.build), Value(previous?.distribution), Value(previous?.version),
      Value(previous?.build),
    ]
  }

  init?(columns: [Value]) {
    guard let number = columns[0].number, columns[1].isTextOrNull, let session = columns[2].uuid,
      let state = columns[3].named(VersionState.self), let release = Release(columns: columns[4...6])
    else { return nil }
    let previous = Release(columns: columns[7...9])
    guard previous != nil || columns[7...9].allSatisfy({ $0 == .null }) else { return nil }
    self.init(number: number, session: session, release: release, state: state, previous: previous)
  }
}

extension VersionClaim {
  /// Returns the columns of a row of `version_claim`.
  func columns(of subject: VersionSubject) -> [Value] {
    [.integer(number), Value(subject.app), .text(version.bytes), .text(name.bytes)]
  }

  init?(columns: [Value]) {
    guard let number = columns[0].number, columns[1].isTextOrNull, let version = columns[2].asText,
      let name = columns[3].asText
    else { return nil }
    self.init(number: number, version: version, name: name)
  }
}

extension Release {
  fileprivate init?(columns: ArraySlice<Value>) {
    let columns = Array(columns)
    guard columns[0].isTextOrNull, let version = columns[1].asText, columns[2].isTextOrNull else { return nil }
    self.init(distribution: columns[0].asText, version: version, build: columns[2].asText)
  }
}

extension VersionSubject {
  /// Decodes the column `app`. NULL is the system.
  init(column: Value) { self = column.asText.map(VersionSubject.app) ?? .system }
}

// MARK: - Reading and writing

extension Reading {
  /// Reads versions and push tokens.
  mutating func readVersions(
    _ database: borrowing Database, _ authenticator: borrowing Authenticator, _ found: inout ProvenRows
  ) throws(DatabaseError) {
    try read(.release, database, authenticator, &found) { reading, row in
      let columns = row.values
      guard let installed = InstalledRelease(columns: columns),
        installed.number > reading.registry.versions.lastRelease
      else { return false }
      reading.registry.apply(.version(.installed(VersionSubject(column: columns[1]), installed)))
      return true
    }
    try read(.report, database, authenticator, &found) { reading, row in
      let columns = row.values
      guard let report = VersionReport(columns: columns), report.number > reading.registry.versions.lastReport else {
        return false
      }
      reading.registry.apply(.version(.reported(VersionSubject(column: columns[1]), report)))
      return true
    }
    try read(.claim, database, authenticator, &found) { reading, row in
      let columns = row.values
      guard let claim = VersionClaim(columns: columns), claim.number > reading.registry.versions.lastClaim else {
        return false
      }
      reading.registry.apply(.version(.claimed(VersionSubject(column: columns[1]), claim)))
      return true
    }
    try read(.token, database, authenticator, &found) { reading, row in
      let columns = row.values
      guard let token = Token(columns: columns), token.number > reading.registry.tokens.lastNumber else { return false }
      reading.registry.apply(.tokenStored(token, .confirmed))
      return true
    }
  }
}

extension Edit {
  /// Writes a change of versions.
  mutating func apply(_ change: VersionChange, _ authenticator: borrowing Authenticator) throws(DatabaseError) {
    switch change {
    case .installed(let subject, let installed):
      try insert(installed.columns(of: subject), tables.release, authenticator)
    case .reinstalled(let subject, let installed):
      try replace(installed.columns(of: subject), tables.release, authenticator)
    case .reported(let subject, let report):
      try insert(report.columns(of: subject), tables.report, authenticator)
    case .claimed(let subject, let claim): try insert(claim.columns(of: subject), tables.claim, authenticator)
    case .releaseForgotten(let subject, let installed):
      try remove(installed.number, of: subject, tables.release, authenticator)
    case .reportForgotten(let subject, let report):
      try remove(report.number, of: subject, tables.report, authenticator)
    case .claimForgotten(let subject, let claim): try remove(claim.number, of: subject, tables.claim, authenticator)
    }
  }

  /// Removes a row, which must belong to the subject.
  private mutating func remove(
    _ number: Int64, of subject: VersionSubject, _ table: TableStatements, _ authenticator: borrowing Authenticator
  ) throws(DatabaseError) {
    guard VersionSubject(column: try remove(.integer(number), table, authenticator)[1]) == subject else {
      throw .unproven(table.table.name, .integer(number))
    }
  }
}
