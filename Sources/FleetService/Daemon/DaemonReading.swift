import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import Proofs

// Requests for the data that records and readers outside of the account get.
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

  /// Returns the valid push tokens of the apps that share the device identifier, earliest first. Of more than `bytes`
  /// bytes the later ones are left out.
  ///
  /// Apps with an identifier of their own must not be found under this one.
  ///
  /// - Returns: the tokens; nil if there are none because all are left to the machine that this one may be a copy of. Then
  ///   that machine alone tells senders of them.
  func tokens(of device: UUID, atMost bytes: Int) throws(DaemonFault) -> [CarriedToken]? {
    var tokens: [(created: String, token: CarriedToken)] = []
    var areLeft = false
    var last: Text?
    repeat {
      // A page of the longest tokens has 2.5 MB.
      let start = last.map { ["after=\($0)"] } ?? []
      let rows = try ask(RequestLine(words: ["token", "list", "app=*", "limit=256"] + start)).rows
      if rows.contains(where: { $0["reason"] == "copied" }) { areLeft = true }
      for row in rows where row["state"] == "valid" && row["device"].flatMap({ UUID($0) }) == device {
        guard let value = row.words.first, let app = row["app"], let provider = row["provider"] else { continue }
        let token = CarriedToken(
          .init(app: app, provider: provider), environment: row["environment"] ?? "", topic: row["topic"] ?? "",
          value: value)
        tokens.append(("\(row["created"] ?? "")", token))
      }
      // Pages come in the order of the apps' IDs. An app must not take another's place by its ID, so the earliest stay.
      tokens.sort { $0.created < $1.created }
      var room = bytes
      tokens = Array(
        tokens.prefix { each in
          defer { room -= each.token.field.count }
          return room > 0
        })
      last = rows.last?["app"]
    } while last != nil
    return tokens.isEmpty && areLeft ? nil : tokens.map(\.token)
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

  /// Returns the public proof keys of this device; nil if there are none, or if identityd is of a release without proofs.
  func proofKeys() throws(DaemonFault) -> PublishedKeys? {
    let answer: DaemonConnection.Answer
    do throws(DaemonFault) {
      answer = try ask("proof", "keys")
    } catch .refused(code: .unknownVerb, _) {
      return nil
    }
    guard case .ok(let content) = answer.final, let keys = content.words.first.flatMap({ KeySet(parsing: $0.bytes) })
    else { throw .refused(code: .unavailable, text: "the key set of proofs cannot be read") }
    return keys.entries.first.flatMap { first in
      PublishedKeys(issuer: Text(first.issuer), points: keys.entries.map(\.key.point))
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
