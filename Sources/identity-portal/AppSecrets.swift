import IdentityClient
import LinuxSystem

/// The secrets of the sandboxed apps of this user. Each is an item of identityd: made at the first call, and the same
/// at each later one.
final class AppSecrets {
  /// The reason why an app gets no secret.
  enum Refusal: Error, CustomStringConvertible {
    case noApp
    case invalidID
    case daemon(appID: String, IdentityError)
    case noRandomness(SystemError)
    case descriptor(appID: String, SystemError)
    case partial(appID: String)

    var description: String {
      switch self {
      case .noApp: "the portal named none; only an app in a sandbox has an ID"
      case .invalidID: "its ID is not one of Flatpak"
      case .daemon(let appID, let error): "'\(appID)': \(error)"
      case .noRandomness(let error): "\(error)"
      case .descriptor(let appID, let error): "'\(appID)' does not take it: \(error)"
      case .partial(let appID): "'\(appID)' has no room for it in its pipe"
      }
    }
  }

  /// The bytes of a secret: those that other backends give, and that apps expect.
  private static let length = 64
  /// The service of the items.
  private static let service = "org.freedesktop.portal.Secret"

  private var client: BlockingIdentityClient

  /// - Parameter daemon: the path of identityd's socket.
  init(daemon: String) { client = BlockingIdentityClient(socket: daemon) }

  /// Writes the secret of an app into a pipe or socket of the app, without waiting for room.
  func deliver(to appID: String, into descriptor: Int32) throws(Refusal) {
    if appID.isEmpty { throw .noApp }
    guard Self.isValid(appID) else { throw .invalidID }
    let secret = try self.secret(of: appID)
    let written: Int
    do {
      written = try secret.withBytes { bytes throws(SystemError) in try PeerPipe.write(bytes, to: descriptor) }
    } catch {
      throw .descriptor(appID: appID, error)
    }
    guard written == secret.count else { throw .partial(appID: appID) }
  }

  /// Returns the stored secret, or else a new one that is on disk.
  ///
  /// No other answer than `not-found` leads to a new secret: with another secret than before, an app cannot read
  /// its own data, and may overwrite them.
  private func secret(of appID: String) throws(Refusal) -> Secret {
    let key = ItemPrimaryKey(service: Self.service, account: appID)
    if let stored = try stored(key) { return stored }
    let made = try Self.random()
    do {
      try client.ask(.addItem(key, secret: made, ItemMetadata(label: "Secret of the app \(appID)")))
      return made
    } catch {
      // Another backend of this user may have been faster.
      guard case .refused(.exists, _) = error, let stored = try stored(key) else {
        throw .daemon(appID: appID, error)
      }
      return stored
    }
  }

  /// Returns the stored secret of an item; nil if there is no such item.
  private func stored(_ key: ItemPrimaryKey) throws(Refusal) -> Secret? {
    do {
      return try client.ask(.readItem(key)).secret
    } catch {
      guard case .refused(.notFound, _) = error else { throw .daemon(appID: key.account, error) }
      return nil
    }
  }

  private static func random() throws(Refusal) -> Secret {
    var bytes = [UInt8](repeating: 0, count: length)
    defer { bytes.wipe() }
    do {
      try Entropy.fill(&bytes)
    } catch {
      throw .noRandomness(error)
    }
    return Secret(bytes.span)
  }

  /// Whether a text has the characters and the length of a name on the bus, as the IDs of Flatpak and Snap have.
  private static func isValid(_ appID: String) -> Bool {
    appID.utf8.count <= 255
      && appID.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
