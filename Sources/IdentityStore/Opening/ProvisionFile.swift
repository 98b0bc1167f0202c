import CSodium
import Glibc
import IdentityCore
package import LinuxSystem

/// The file that records which identity the machine was given: one line of text, `identityd-provisioned 1 <digest> <step>`.
///
/// The file outlives the store: after `seal`, or a factory reset, the same credentials would bring the former identity
/// back. It names them by a digest, and has no secret.
private struct ProvisionFile: Equatable {
  static let fileName = "provisioned"

  enum Step: String {
    /// The changes may be committed or not. They are, if the store has an identity.
    case begun
    case done
  }

  let digest: String
  let step: Step

  var bytes: [UInt8] { Array("identityd-provisioned 1 \(digest) \(step.rawValue)\n".utf8) }

  /// Nil if the machine was never given an identity.
  ///
  /// - Throws: EBADMSG if the file is damaged. It is kept: the credentials may be those of a former identity.
  init?(in folder: borrowing Folder) throws(SystemError) {
    guard let content = try folder.read(Self.fileName, limit: 256) else { return nil }
    let words = String(decoding: content, as: UTF8.self).split(separator: " ")
    guard words.count == 4, let step = Step(rawValue: String(words[3].dropLast())),
      ProvisionFile(digest: String(words[2]), step).bytes == content
    else {
      throw SystemError(
        call: "read \(folder.path)/\(Self.fileName), which is damaged: to apply the credentials, remove the file",
        code: EBADMSG)
    }
    self.init(digest: String(words[2]), step)
  }

  init(digest: String, _ step: Step) {
    self.digest = digest
    self.step = step
  }

  func write(in folder: borrowing Folder) throws(SystemError) {
    try folder.replace(Self.fileName, with: bytes, mode: 0o600)
  }
}

extension Store {
  /// Records that the machine is about to be given an identity, before the changes are committed.
  ///
  /// - Parameter credentials: the credentials, without passphrases.
  /// - Returns: false if it was given this one before: an earlier store had it.
  package func beginProvision(_ credentials: [[UInt8]?]) throws(SystemError) -> Bool {
    let digest = Self.digest(credentials)
    if let last = try ProvisionFile(in: directory.folder), last == ProvisionFile(digest: digest, .done) { return false }
    try ProvisionFile(digest: digest, .begun).write(in: directory.folder)
    return true
  }

  /// Records that the machine has its identity, if that was begun.
  package func endProvision() throws(SystemError) {
    guard let last = try ProvisionFile(in: directory.folder), last.step == .begun else { return }
    try ProvisionFile(digest: last.digest, .done).write(in: directory.folder)
  }

  private static func digest(_ credentials: [[UInt8]?]) -> String {
    var message: [UInt8] = []
    for credential in credentials {
      message += Array("\(credential?.count ?? -1) ".utf8) + (credential ?? [])
    }
    var digest = [UInt8](repeating: 0, count: Int(crypto_hash_sha256_BYTES))
    // Always returns 0.
    _ = unsafe crypto_hash_sha256(&digest, message, UInt64(message.count))
    return String(decoding: hexadecimal(digest), as: UTF8.self)
  }
}
