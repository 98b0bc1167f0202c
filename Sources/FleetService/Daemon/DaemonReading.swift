import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire

// Requests for the data that readers outside of the account get.
extension DaemonLink {
  /// The state of identityd for a report.
  struct State {
    /// The release.
    let version: Text
    /// The condition in a word: `ok`, `sealed`, `no-key`, or the condition of the store.
    let word: Text
  }

  /// Asks for the events of a topic, too.
  func subscribe(to topic: String) throws(DaemonFault) { _ = try ask("subscribe", topic) }

  /// Returns the valid push tokens of the apps that share the device identifier, or of the first of them, once they have
  /// more bytes than a number.
  ///
  /// Apps with an identifier of their own must not be found under this one.
  func tokens(of device: UUID, until bytes: Int) throws(DaemonFault) -> [CarriedToken] {
    var tokens: [CarriedToken] = []
    var (count, last) = (0, Text?.none)
    repeat {
      // A page of the longest tokens has 2.5 MB.
      let start = last.map { ["after=\($0)"] } ?? []
      let rows = try ask(RequestLine(words: ["token", "list", "app=*", "limit=256"] + start)).rows
      for row in rows where row["state"] == "valid" && row["device"].flatMap({ UUID($0) }) == device {
        guard let value = row.words.first, let app = row["app"], let provider = row["provider"] else { continue }
        let token = CarriedToken(
          .init(app: app, provider: provider), environment: row["environment"] ?? "", topic: row["topic"] ?? "",
          value: value)
        tokens.append(token)
        count += token.field.count
      }
      last = rows.last?["app"]
    } while last != nil && count <= bytes
    return tokens
  }

  /// Marks a push token as invalid, if the app still has it.
  func invalidate(_ token: CarriedToken) throws(DaemonFault) {
    _ = try ask(
      "token", "invalidate", "\(token.place.provider)", "\(token.value)", "app=\(token.place.app)")
  }

  /// Returns the versions of all apps.
  func apps() throws(DaemonFault) -> [ReportedApp] {
    try ask("version", "state", "app=*").rows.compactMap { row in
      guard row.words.count > 1, let app = row["app"] else { return nil }
      return ReportedApp(app: app, version: row.words[1], build: row["build"] ?? "")
    }
  }

  /// Returns the state of identityd.
  func state() throws(DaemonFault) -> State {
    let rows = try ask("status").rows
    func value(_ row: StatusRow) -> Text? { rows.lazy.compactMap { $0[Text(row.name)] }.first }
    var word = value(.store) ?? "unknown"
    if word == "ok", value(.sealed) == "yes" { word = "sealed" }
    if word == "ok", value(.masterKey) == "unavailable" { word = "no-key" }
    return State(version: value(.version) ?? "unknown", word: word)
  }
}
