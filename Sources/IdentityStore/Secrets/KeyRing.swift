import Glibc
import IdentityCore
import LinuxSystem

/// All available master keys, in the order of preference.
struct KeyRing: Sendable {
  private(set) var masters: [MasterKey] = []
  /// The error of a key file that exists and cannot be read; nil if all can.
  private var unread: String?

  init() {}

  /// Adopts the keys that the service manager handed over, and wipes their arrays. Content that is no key is ignored.
  init(_ credentials: inout KeyCredentials) {
    append(consuming: &credentials.current, .credential, MasterKey.credentialName)
    append(consuming: &credentials.previous, .credential, "the credential identityd.key.previous")
  }

  /// Adds the keys of the state directory.
  init(_ handedOver: KeyRing, in folder: borrowing Folder) {
    masters = handedOver.masters
    for name in [MasterKey.fileName, MasterKey.nextFileName] {
      // An unreadable file counts as no key: only the items are unavailable, until the next start. A read is repeated
      // once, because one failed read proves nothing.
      var content = Self.content(of: name, in: folder, &unread)
      append(consuming: &content, .file, name)
    }
  }

  private static let fileLength = 1_024

  /// Returns the content of a key file; nil if the file is missing or cannot be read.
  private static func content(of name: String, in folder: borrowing Folder, _ unread: inout String?) -> [UInt8]? {
    if let content = (try? folder.read(name, limit: fileLength)) ?? nil { return content }
    do {
      return try folder.read(name, limit: fileLength)
    } catch {
      unread = "\(error)"
      return nil
    }
  }

  private mutating func append(consuming content: inout [UInt8]?, _ source: KeySource, _ name: String) {
    // Taken out of the optional, so that no second reference keeps a copy when the bytes are wiped.
    guard var bytes = content.take() else { return }
    defer { bytes.wipe() }
    if let master = MasterKey(consuming: &bytes, source: source, name: name) { masters.append(master) }
  }

  /// Unwraps a data key with the master key that wrapped it; nil if the ring does not contain that master key.
  func unwrap(_ wrapped: WrappedKey, of store: UUID) -> (key: DataKey, master: MasterKey)? {
    for master in masters {
      if let key = master.unwrap(wrapped, of: store) { return (key, master) }
    }
    return nil
  }

  /// Returns the reason why no master key of the ring opens a data key, as text.
  func fault(_ wrapped: WrappedKey) -> String {
    let wanted =
      switch wrapped.source {
      case .credential: MasterKey.credentialName
      case .file: MasterKey.fileName
      }
    let found =
      unread ?? (masters.isEmpty ? "no master key was found" : "none of the master keys found is the right one")
    return "items cannot be decrypted: \(found); they need key \(wrapped.master), from \(wanted)"
  }

  /// Returns the master key for a new data key: the service manager's, else the one in the file.
  ///
  /// Creates the file if it is missing. A new file is durable only after a sync of the folder.
  mutating func preferred(in folder: borrowing Folder) throws(SystemError) -> MasterKey {
    let wanted = [MasterKey.credentialName, MasterKey.fileName]
    if let first = masters.first(where: { wanted.contains($0.name) }) { return first }
    let master = try Self.makeFile(MasterKey.fileName, in: folder, isDurable: false)
    masters.append(master)
    return master
  }

  /// Draws a random master key and writes it to a file, replacing the file of that name.
  ///
  /// - Parameter isDurable: false if the file is durable only after a sync of the folder.
  static func makeFile(_ name: String, in folder: borrowing Folder, isDurable: Bool = true) throws(SystemError)
    -> MasterKey
  {
    var bytes = [UInt8](repeating: 0, count: MasterKey.shortest)
    defer { bytes.wipe() }
    try Entropy.fill(&bytes)
    var content = hexadecimalLine(bytes)
    defer { content.wipe() }
    try folder.replace(name, with: content, mode: 0o600, isDurable: isDurable)
    guard let master = MasterKey(consuming: &content, source: .file, name: name) else {
      throw SystemError(call: "lock memory for the master key", code: ENOMEM)
    }
    return master
  }

  /// Completes a rotation: gives the file of the new master key its final name, and removes key files that
  /// wrap nothing.
  ///
  /// Idempotent, so an interrupted call can be repeated.
  ///
  /// - Parameter master: the master key that opened the data key.
  static func completeRotation(to master: MasterKey, in folder: borrowing Folder) throws(SystemError) {
    if master.source == .credential {
      let (old, next) = (try folder.status(of: MasterKey.fileName), try folder.status(of: MasterKey.nextFileName))
      guard old != nil || next != nil else { return }
      try folder.remove(MasterKey.fileName)
      try folder.remove(MasterKey.nextFileName)
      return try folder.synchronize()
    }
    guard try folder.status(of: MasterKey.nextFileName) != nil else { return }
    // Compares the content of the files. If one rotation was committed and the next was refused, the names do not tell
    // which key is in use.
    if id(ofFile: MasterKey.fileName, in: folder) == master.id {
      try folder.remove(MasterKey.nextFileName)
    } else if id(ofFile: MasterKey.nextFileName, in: folder) == master.id {
      try folder.rename(MasterKey.nextFileName, to: MasterKey.fileName)
    }
    try folder.synchronize()
  }

  private static func id(ofFile name: String, in folder: borrowing Folder) -> Text? {
    var content = (try? folder.read(name, limit: fileLength)) ?? nil
    var file = KeyRing()
    file.append(consuming: &content, .file, name)
    return file.masters.first?.id
  }

  /// Adds a master key that is about to wrap the data key.
  mutating func insert(_ master: MasterKey) {
    if !masters.contains(where: { $0 === master }) { masters.append(master) }
  }

  /// Keeps the master key that wraps the data key now, and removes the other keys from files.
  mutating func keep(_ master: MasterKey) {
    masters.removeAll { $0.source == .file }
    insert(master)
  }
}
