// `subscribe snapshot=yes`: EVENTS in identityd-protocol(7).
extension ReferenceModel {
  /// Returns the rows of the current values that a peer may see, of all topics, in no particular order.
  package func snapshot(for peer: Peer) -> [String] {
    var rows: [String] = []
    for identifier in current where sees(peer, audience(of: identifier.scope)) {
      rows.append(
        "\(identifier.scope.level) value=\(identifier.value) cause=\(identifier.cause)\(whose(identifier.scope))")
    }
    for app in apps.keys where sees(peer, .vendor(vendor(of: app))) {
      rows.append("app app=\(app) vendor=\(vendor(of: app))")
    }
    for item in items where sees(peer, .group(item.group)) {
      rows.append("item group=\(item.group) service=\(item.service) account=\(item.account)")
    }
    for app in apps.keys where sees(peer, .app(app)) || isToldOfAll("version", peer) {
      guard let release = reports.last(where: { $0.app == app })?.release else { continue }
      rows.append("version of=app app=\(app) version=\(release.version)\(said("build", release.build))")
    }
    for token in tokens where sees(peer, .app(token.app)) || isToldOfAll("token", peer) {
      rows.append(
        "token app=\(token.app) provider=\(token.provider) device=\(token.device) fingerprint=<f\(token.value)>")
    }
    if sees(peer, .sharing) {
      rows += devices.map { "devices value=\($0.value)" } + ["account value=\(word(account))"]
    }
    return rows.map { "* \($0)" }
  }
}
