// Who may ask what (protocol, section 2). Whether a verb is for admins alone is in the verb table.
extension Registry {
  /// The app a request is about: the peer's own, or the one that it names, which takes an admin and has to be installed.
  ///
  /// - Parameter remembered: whether it is enough that the app was installed once.
  package func app(named: Text?, by peer: Peer, remembered: Bool = false) throws(Refusal) -> Text {
    guard let named, named != peer.app else {
      // The manifest went while the connection stayed: nothing may be made for an app that was uninstalled.
      guard peer.app.isUnclaimedApp || remembered || apps.contains(peer.app) else {
        throw .notFound("\(peer.app) is not installed any more")
      }
      return peer.app
    }
    guard peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights, to name another app")
    }
    guard apps.contains(named) || remembered && count(of: .installation(named)) > 0 else {
      throw .notFound("no such app is installed")
    }
    return named
  }

  /// The vendor of an app; one without a manifest is a vendor of its own.
  package func vendor(of app: Text) -> Text { apps[app]?.manifest?.vendor ?? app }

  /// The vendor that is told of a scope: its own, or an installation's app's.
  func vendor(of scope: Scope) -> Text? {
    if case .installation(let app) = scope { return vendor(of: app) }
    return scope.vendor
  }

  /// The access groups an app may use besides its own.
  package func accessGroups(of app: Text) -> [Text] { apps[app]?.manifest?.accessGroups ?? [] }

  /// The scope of a level for an app.
  func scope(_ level: Level, app: Text) -> Scope {
    switch level {
    case .installation: .installation(app)
    case .vendor: .vendor(vendor(of: app))
    case .device: deviceScope(of: app)
    }
  }

  /// Whose device identifier an app sees.
  package func deviceScope(of app: Text) -> Scope { deviceScope(of: app, apps[app]) }

  /// The same, where the app is known; nil for one that is not installed.
  func deviceScope(of id: Text, _ app: App?) -> Scope {
    switch app?.manifest?.deviceBinding {
    case .app?: .deviceOfApp(id)
    case .vendor?: .deviceOfVendor(app?.manifest?.vendor ?? id)
    case .shared?, nil: .device
    }
  }

  /// Whether a peer may see what is meant for this audience, by the rights in force now.
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

  /// Without its manifest an app that was uninstalled would pass for one that shares, and for a vendor of its name.
  func isInstalledOrUnclaimed(_ app: Text) -> Bool { app.isUnclaimedApp || apps.contains(app) }

  /// Whoever has a device identifier of its own must not learn what all devices' apps have in common: they could be
  /// linked by it.
  func requireSharing(_ peer: Peer) throws(Refusal) {
    guard may(peer, see: .sharing) else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "DeviceIdentifier=shared in its manifest")
    }
  }
}
