import IdentityCore

/// A row of a ``Table`` without its proof.
struct Row {
  let table: Table
  let values: [Value]
}

// Changes as rows, and back.
extension Change {
  /// The row that this change adds.
  func row(revision: Int64) -> Row {
    switch self {
    case .appInstalled(let id, let app):
      Row(
        table: .app,
        values: [.text(id.bytes), .text(app.vendor.bytes), .text("\(app.installed)"), .integer(revision)])
    case .deviceCreated(let identifier):
      Self.row(.device, app: "", identifier, revision)
    case .installationCreated(let app, let identifier):
      Self.row(.installation, app: app, identifier, revision)
    }
  }

  private static func row(_ level: Level, app: Text, _ identifier: Identifier, _ revision: Int64) -> Row {
    Row(
      table: .identifier,
      values: [
        .text(level.rawValue), .text(app.bytes), .text("\(identifier.value)"), .text("\(identifier.created)"),
        identifier.origin.map { .text($0.rawValue) } ?? .null, .integer(revision),
      ])
  }

  /// Reads a row back; nil where it is none that this program writes, proof or not.
  init?(_ row: Row) {
    switch (row.table.name, row.values.map(\.asText)) {
    case (Table.app.name, let texts):
      guard let id = texts[0], let vendor = texts[1], let installed = texts[2].flatMap(Timestamp.init(parsing:)) else {
        return nil
      }
      self = .appInstalled(id, App(vendor: vendor, installed: installed))
    case (Table.identifier.name, let texts):
      guard let level = texts[0].flatMap({ Level(rawValue: "\($0)") }), let app = texts[1],
        let value = texts[2].flatMap({ UUID($0) }), let created = texts[3].flatMap(Timestamp.init(parsing:))
      else { return nil }
      let origin = texts[4].flatMap { Origin(rawValue: "\($0)") }
      guard (origin == nil) == (row.values[4] == .null) else { return nil }
      let identifier = Identifier(value: value, created: created, origin: origin)
      switch level {
      case .device: self = .deviceCreated(identifier)
      case .installation: self = .installationCreated(app: app, identifier)
      }
    default: return nil
    }
  }
}

extension Value {
  fileprivate var asText: Text? {
    guard case .text(let bytes) = self else { return nil }
    return Text(validating: bytes)
  }
}
