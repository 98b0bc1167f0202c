import Glibc
import IdentityCore
import LinuxSystem

/// Every master key that is there, those that come first being wanted most.
struct KeyRing: Sendable {
  private(set) var masters: [MasterKey] = []

  /// There is none.
  init() {}

  /// Those that the service manager handed over; the arrays they came in are wiped. What is no key counts as none.
  init(_ credentials: inout KeyCredentials) {
    take(&credentials.current, .credential, MasterKey.credentialName)
    take(&credentials.previous, .credential, "the credential identityd.key.previous")
  }

  /// Takes those of the state directory besides.
  init(_ handedOver: KeyRing, in folder: borrowing Folder) {
    masters = handedOver.masters
    for name in [MasterKey.fileName, MasterKey.nextFileName] {
      // One that cannot be read is no key: only the items wait for it, up to the next start. One read that fails proves
      // nothing.
      var content = (try? folder.read(name, limit: Self.fileLength)) ?? nil
      if content == nil { content = (try? folder.read(name, limit: Self.fileLength)) ?? nil }
      take(&content, .file, name)
    }
  }

  private static let fileLength = 1_024

  private mutating func take(_ content: inout [UInt8]?, _ source: KeySource, _ name: String) {
    // Taken out, so that it is the only one with these bytes when they are wiped.
    guard var bytes = content.take() else { return }
    defer { bytes.wipe() }
    if let master = MasterKey(consuming: &bytes, source: source, name: name) { masters.append(master) }
  }

  /// Opens a data key with whichever master key wrapped it.
  func unwrap(_ wrapped: WrappedKey, of store: UUID) -> (key: DataKey, master: MasterKey)? {
    for master in masters {
      if let key = master.unwrap(wrapped, of: store) { return (key, master) }
    }
    return nil
  }

  /// Why none of them opens a data key.
  func fault(_ wrapped: WrappedKey) -> String {
    let wanted =
      switch wrapped.source {
      case .credential: MasterKey.credentialName
      case .file: MasterKey.fileName
      }
    let found = masters.isEmpty ? "no master key is there" : "none of the master keys that are there is the right one"
    return "items cannot be opened: \(found); their data key is wrapped in key \(wrapped.master), from \(wanted)"
  }

  /// The key that a new data key is to be wrapped in: the service manager's, else the one in the file, which is made where
  /// it is missing.
  mutating func preferred(in folder: borrowing Folder) throws(SystemError) -> MasterKey {
    let wanted = [MasterKey.credentialName, MasterKey.fileName]
    if let first = masters.first(where: { wanted.contains($0.name) }) { return first }
    let master = try Self.makeFile(MasterKey.fileName, in: folder)
    masters.append(master)
    return master
  }

  /// Draws a master key and stores it under a name, in the place of what is there.
  static func makeFile(_ name: String, in folder: borrowing Folder) throws(SystemError) -> MasterKey {
    var bytes = [UInt8](repeating: 0, count: MasterKey.shortest)
    defer { bytes.wipe() }
    try Entropy.fill(&bytes)
    var content = hexadecimalLine(bytes)
    defer { content.wipe() }
    try folder.replace(name, with: content, mode: 0o600)
    guard let master = MasterKey(consuming: &content, source: .file, name: name) else {
      throw SystemError(call: "lock memory for the master key", code: ENOMEM)
    }
    return master
  }

  /// Puts the master key that the data key is wrapped in into the place of its predecessor, and removes those in files that
  /// nothing is wrapped in. Repeating it after a cut does no harm.
  ///
  /// - Parameter master: the one that opened the data key.
  static func settle(_ master: MasterKey, in folder: borrowing Folder) throws(SystemError) {
    if master.source == .credential {
      let (old, next) = (try folder.status(of: MasterKey.fileName), try folder.status(of: MasterKey.nextFileName))
      guard old != nil || next != nil else { return }
      try folder.remove(MasterKey.fileName)
      try folder.remove(MasterKey.nextFileName)
      return try folder.synchronize()
    }
    guard try folder.status(of: MasterKey.nextFileName) != nil else { return }
    // By what is in the files: a name says nothing once a rotation was refused behind one that was not.
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
    file.take(&content, .file, name)
    return file.masters.first?.id
  }

  /// Takes in a key that the data key is about to be wrapped in.
  mutating func take(_ master: MasterKey) {
    if !masters.contains(where: { $0 === master }) { masters.append(master) }
  }

  /// Keeps the key that the data key is wrapped in from now on, and forgets those in files that it was before.
  mutating func keep(_ master: MasterKey) {
    masters.removeAll { $0.source == .file }
    take(master)
  }
}
