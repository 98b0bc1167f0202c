import Glibc
package import IdentityCore
import LinuxSystem

/// The last time in this boot at which the machine went on from a snapshot of itself (`machine resumed`).
///
/// Two machines that go on from one snapshot have the same boot ID and the same processes. What they derive from those
/// differs by this random value.
package enum Resumption: Equatable, Sendable {
  /// The machine has not gone on from a snapshot in this boot, as far as is known.
  case none
  /// The value that was drawn then.
  case last(UUID)
  /// Whether there was one cannot be found out, for the given reason.
  case unknown(String)
}

/// The file of a resumption: one line of text, `identityd-resumed 1 <boot> <value> <proof>`.
///
/// The file is beside the database, because sessions are served while the database cannot be read.
struct ResumptionFile {
  static let fileName = "resumed"

  /// The kernel's ID of the boot.
  let boot: String
  let value: UUID

  /// Returns the content of the file.
  func bytes(_ authenticator: borrowing Authenticator) -> [UInt8] {
    let proof = authenticator.proof(table: Self.fileName, [.blob(Array(boot.utf8)), .blob(value.bytes)])
    return Array("identityd-resumed 1 \(boot) \(value) ".utf8) + hexadecimal(proof) + Array("\n".utf8)
  }

  init(boot: String, value: UUID) {
    self.boot = boot
    self.value = value
  }

  /// Parses and verifies the content of a file; nil if this store did not write it.
  init?(_ content: [UInt8], _ authenticator: borrowing Authenticator) {
    let words = content.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
    guard words.count == 5, let value = UUID(Text(trusted: Array(words[3]))) else { return nil }
    self.init(boot: String(decoding: words[2], as: UTF8.self), value: value)
    guard bytes(authenticator) == content else { return nil }
  }
}

extension StateDirectory {
  /// Reads the last resumption in this boot. A damaged file is set aside, and counts as a resumption at this moment:
  /// sessions get other identifiers once too often, rather than those of another machine.
  func resumption(
    _ authenticator: borrowing Authenticator, at now: Timestamp, _ notices: inout [StoreNotice]
  ) -> Resumption {
    do {
      guard let content = try folder.read(ResumptionFile.fileName, limit: Witness.longestLength) else { return .none }
      if let file = ResumptionFile(content, authenticator) { return file.boot == boot ? .last(file.value) : .none }
      guard !isReadOnly else { return .unknown("\(folder.path)/\(ResumptionFile.fileName) is damaged") }
      let value = try UUID.fresh()
      let aside = Store.asideName(ResumptionFile.fileName, now)
      try folder.rename(ResumptionFile.fileName, to: aside)
      notices.append(.setAside(path: "\(folder.path)/\(aside)"))
      try record(value, authenticator)
      return .last(value)
    } catch {
      return .unknown("\(folder.path)/\(ResumptionFile.fileName) cannot be read or replaced (\(error))")
    }
  }

  /// Writes the file of a resumption in this boot.
  fileprivate func record(_ value: UUID, _ authenticator: borrowing Authenticator) throws(SystemError) {
    guard let boot else { throw SystemError(call: "read the ID of this boot", code: ENOENT) }
    let file = ResumptionFile(boot: boot, value: value)
    try folder.replace(ResumptionFile.fileName, with: file.bytes(authenticator), mode: 0o600)
  }
}

extension Store {
  /// Records that the machine goes on from a snapshot. Durable when the call returns.
  ///
  /// - Parameter value: a random UUID, drawn after the resumption.
  /// - Returns: the resumption from now on.
  /// - Throws: the refusal if the file cannot be written. Nothing is changed then.
  package func resume(as value: UUID) throws(Refusal) -> Resumption {
    do {
      try directory.record(value, authenticator)
      return .last(value)
    } catch {
      throw StoreCondition(after: error).refusal ?? .broken("\(error)")
    }
  }
}
