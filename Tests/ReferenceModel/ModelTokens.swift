// Push tokens: PUSH TOKENS in identityd-protocol(7).
extension ReferenceModel {
  package struct Token: Sendable {
    let app: String
    let provider: String
    var value: String
    var environment: String?
    var topic: String?
    /// The device identifier that senders were last told.
    var device: String
    var isValid = true
    /// Whether another machine may have the token, too.
    var isCopied = false
    var isUsable: Bool { isValid && !isCopied }
    let created: String
    var changed: String
    var confirmed: String
    /// The time of the last `token put`, in milliseconds.
    var heard: Int64

    fileprivate func says(_ request: Request) -> Bool {
      isUsable && value == request.word(1) && environment == request["environment"] && topic == request["topic"]
    }
  }

  private func place(_ provider: String, _ app: String) -> Int? {
    tokens.firstIndex { $0.app == app && $0.provider == provider }
  }

  private func row(_ token: Token) -> String {
    "\(token.value) provider=\(token.provider) app=\(token.app) device=\(token.device)"
      + said("environment", token.environment) + said("topic", token.topic)
      + state(token)
      + " created=\(token.created) changed=\(token.changed) confirmed=\(token.confirmed)"
  }

  private func state(_ token: Token) -> String {
    token.isCopied ? " state=invalid reason=copied" : " state=\(token.isValid ? "valid" : "invalid")"
  }

  // MARK: Verbs

  mutating func putToken(_ request: Request) throws(Fault) -> [String] {
    let app = try app(request["app"])
    try requireOpen()
    use(app)
    let scope = deviceScope(of: app)
    // The reply must name the device for the sender.
    if current(scope) == nil { make(scope) }
    let device = current(scope)?.value ?? ""
    guard let place = place(request.word(0), app) else {
      tokens.append(
        Token(
          app: app, provider: request.word(0), value: request.word(1), environment: request["environment"],
          topic: request["topic"], device: device, created: time, changed: time, confirmed: time, heard: now))
      tell("created", tokens[tokens.count - 1])
      return ["OK created device=\(device)"]
    }
    let before = tokens[place]
    if before.isCopied, before.value == request.word(1), request["renewed"] != "yes" {
      return ["OK unchanged device=\(before.device)\(state(before))"]
    }
    tokens[place].confirmed = time
    tokens[place].heard = now
    if before.says(request) { return ["OK unchanged device=\(device)"] }
    tokens[place].value = request.word(1)
    tokens[place].environment = request["environment"]
    tokens[place].topic = request["topic"]
    tokens[place].isValid = true
    (tokens[place].isCopied, tokens[place].device) = (false, device)
    tokens[place].changed = time
    tell("replaced", tokens[place])
    return ["OK replaced device=\(device)\(said("previous", before.value == request.word(1) ? nil : before.value))"]
  }

  func getToken(_ request: Request) throws(Fault) -> [String] {
    guard let place = place(request.word(0), try app(request["app"])) else { throw .notFound }
    return ["OK \(row(tokens[place]))"]
  }

  func listTokens(_ request: Request) throws(Fault) -> [String] {
    guard request["app"] != "*" || peer.isAdmin else { throw .denied }
    let app = request["app"] == "*" ? nil : try app(request["app"])
    if let limit = request["limit"].flatMap({ Int($0) }) {
      var page: [Token] = []
      for app in Set(tokens.map(\.app)).sorted() where app > request["after"] ?? "" && page.count < limit {
        page += tokens.filter { $0.app == app }
      }
      return rows(page.map { row($0) })
    }
    let stale = request["stale"].flatMap { Int64($0) } ?? 0
    let meant = placesInOrder.map { tokens[$0] }
      .filter { (app == nil || $0.app == app) && now - $0.heard >= stale * 1_000 }
    return rows(meant.map { row($0) })
  }

  /// The indices of all tokens in the order of their apps' IDs, those of one app in the order of their creation.
  private var placesInOrder: [Int] {
    let apps = tokens.map { Array($0.app.utf8) }
    return tokens.indices.sorted { left, right in
      apps[left] == apps[right] ? left < right : apps[left].lexicographicallyPrecedes(apps[right])
    }
  }

  mutating func invalidateToken(_ request: Request) throws(Fault) -> [String] {
    let app = try app(request["app"])
    guard let place = place(request.word(0), app), tokens[place].value == request.word(1) else {
      return ["OK unchanged"]
    }
    if tokens[place].isUsable {
      try requireOpen()
      tokens[place].isValid = false
      tokens[place].changed = time
      tell("invalidated", tokens[place])
    }
    return ["OK invalidated"]
  }

  mutating func deleteToken(_ request: Request) throws(Fault) -> [String] {
    guard let place = place(request.word(0), try app(request["app"])) else { throw .notFound }
    guard request["dry-run"] != "yes" else {
      return rows([row(tokens[place]) + (tokens[place].app == peer.app ? "" : " own=no")])
    }
    try requireOpen()
    tell("deleted", tokens.remove(at: place))
    return ["OK"]
  }

  // MARK: Events

  /// Reports a changed device identifier of a scope to the senders of its tokens.
  mutating func rehome(_ scope: Scope, isCopy: Bool = false) {
    guard let device = current(scope)?.value else { return }
    for place in placesInOrder
    where tokens[place].device != device && !tokens[place].isCopied && deviceScope(of: tokens[place].app) == scope {
      if isCopy {
        tokens[place].isCopied = true
        tell("invalidated", tokens[place], isCopied: true)
      } else {
        rehome(place, device)
      }
    }
  }

  private mutating func rehome(_ place: Int, _ device: String) {
    let before = tokens[place].device
    tokens[place].device = device
    tell("rehomed", tokens[place], from: before)
  }

  /// Gives the items and tokens of before a renewal on what may be a copy to this device, which is the original.
  mutating func regain() {
    for place in items.indices { items[place].isOriginals = false }
    for place in placesInOrder where tokens[place].isCopied {
      tokens[place].isCopied = false
      if let device = current(deviceScope(of: tokens[place].app))?.value { rehome(place, device) }
    }
  }

  mutating func removeTokens(where isMeant: (Token) -> Bool) {
    for place in placesInOrder where isMeant(tokens[place]) { tell("deleted", tokens[place]) }
    tokens.removeAll(where: isMeant)
  }

  /// The event never contains the token. A fingerprint identifies it instead.
  private mutating func tell(
    _ name: String, _ token: Token, from before: String? = nil, isCopied: Bool = false
  ) {
    let attributes =
      " app=\(token.app) provider=\(token.provider) device=\(token.device)\(said("previous-device", before))"
      + " fingerprint=<f\(token.value)>" + (isCopied ? " reason=copied" : "")
    tell("token", name, attributes, to: .app(token.app))
  }
}
