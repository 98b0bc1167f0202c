// Rights of peers (identityd-protocol(7), section "WHO IS ASKING"). The verb table lists the verbs for admins only.
extension Registry {
  /// Returns the app that a request means: the peer's own, or a named one, which takes admin rights.
  ///
  /// - Parameters:
  ///   - remembered: whether an app that was once installed is accepted too.
  ///   - right: the right by which a peer may name another app, too; nil if there is none.
  /// - Throws: `notFound` if the app is not installed; `denied` if a peer without admin rights names another app.
  package func app(named: Text?, by peer: Peer, remembered: Bool = false, orBy right: Right? = nil)
    throws(Refusal) -> Text
  {
    guard let named, named != peer.app else {
      // The manifest may have been removed while the connection stayed open. An uninstalled app gets no new state.
      guard peer.app.isUnclaimedApp || remembered || apps.isInForce(peer.app) else {
        guard apps.contains(peer.app) else { throw .notFound("\(peer.app) is no longer installed") }
        throw .notFound("\(peer.app) is suspended, because its manifest is missing")
      }
      return peer.app
    }
    if let right {
      try require(right, of: peer)
    } else if !peer.isAdmin {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights to name another app")
    }
    guard apps.contains(named) || remembered && count(of: .installation(named)) > 0 else {
      throw .notFound("no such app is installed")
    }
    return named
  }

  /// Returns the vendor of an app. An app without a manifest is a vendor of its own.
  package func vendor(of app: Text) -> Text { apps[app]?.manifest?.vendor ?? app }

  /// Returns the vendor to report for a scope: the scope's own, or that of the installed app.
  func vendor(of scope: Scope) -> Text? {
    if case .installation(let app) = scope { return vendor(of: app) }
    return scope.vendor
  }

  /// Returns the access groups that an app may use besides its own.
  package func accessGroups(of app: Text) -> [Text] { manifestInForce(of: app)?.accessGroups ?? [] }

  /// Returns the rights that the manifest of an app gives.
  package func rights(of app: Text) -> Set<Right> { manifestInForce(of: app)?.rights ?? [] }

  /// Returns whether the manifest of an app consents to proofs in spite of a device identifier of its own.
  func isLinkable(_ app: Text) -> Bool { manifestInForce(of: app)?.proofConsent == .linkable }

  /// Returns the manifest of an app that is not suspended.
  private func manifestInForce(of app: Text) -> Manifest? {
    guard let app = apps[app], app.suspended == nil else { return nil }
    return app.manifest
  }

  /// Checks that a peer has the right that a command needs.
  package func requireRight(of command: RegistryCommand, for peer: Peer) throws(Refusal) {
    if let right = command.rule.right { try require(right, of: peer) }
  }

  /// Checks that a peer has a right: as an admin, or by the present manifest of its app.
  package func require(_ right: Right, of peer: Peer) throws(Refusal) {
    guard !peer.isAdmin, !rights(of: peer.app).contains(right) else { return }
    try requireRecord(of: peer.app)
    throw .denied(
      app: peer.app, userID: peer.userID, grant: "admin rights or Rights=\(right.rawValue) in its manifest")
  }

  /// Returns the scope of a level for an app.
  func scope(_ level: Level, app: Text) -> Scope {
    switch level {
    case .installation: .installation(app)
    case .vendor: .vendor(vendor(of: app))
    case .device: deviceScope(of: app)
    }
  }

  /// Returns the scope of the device identifier that an app sees.
  package func deviceScope(of app: Text) -> Scope { deviceScope(of: app, apps[app]) }

  /// Returns the scope of the device identifier for an app that was looked up already. A nil `app` means not installed.
  func deviceScope(of id: Text, _ app: App?) -> Scope {
    switch app?.manifest?.deviceBinding {
    case .app?: .deviceOfApp(id)
    case .vendor?: .deviceOfVendor(app?.manifest?.vendor ?? id)
    case .shared?, nil: .device
    }
  }

  /// Returns whether a peer may see values for an audience, by its present rights.
  package func may(_ peer: Peer, see audience: Audience) -> Bool {
    if peer.isAdmin { return true }
    let isThere = isInstalledOrUnclaimed(peer.app)
    return switch audience {
    case .sharing: isThere && deviceScope(of: peer.app) == .device
    case .vendor(let vendor): isThere && vendor == self.vendor(of: peer.app)
    case .app(let app): app == peer.app
    case .group(let group): may(peer, use: group)
    }
  }

  /// Returns whether a peer may see an event of a topic, by its present rights.
  ///
  /// An app with the right `fleet` may list the tokens and versions of all apps, so it hears of their changes.
  package func may(_ peer: Peer, see audience: Audience, of topic: Topic) -> Bool {
    may(peer, see: audience) || (topic == .token || topic == .version) && rights(of: peer.app).contains(.fleet)
  }

  /// Returns whether an app is in force or has no manifest.
  ///
  /// Without its manifest, an uninstalled app would otherwise pass for one that shares the device identifier, and for a
  /// vendor of its name.
  func isInstalledOrUnclaimed(_ app: Text) -> Bool { app.isUnclaimedApp || apps.isInForce(app) }

  /// Checks that a peer's app shares the device identifier.
  ///
  /// An app with a device identifier of its own must not read a value that all apps of the device share, because apps
  /// could be linked by that value.
  func requireSharing(_ peer: Peer) throws(Refusal) {
    guard may(peer, see: .sharing) else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "DeviceIdentifier=shared in its manifest")
    }
  }
}
