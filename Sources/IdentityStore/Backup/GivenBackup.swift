import ClientSecrets
package import IdentityCore
import LinuxSystem

// A backup that the machine is given as a file at its first start, and not by a client.
extension Store {
  /// Reads a whole backup that `identityctl backup` wrote, with the passphrase in another file.
  ///
  /// - Throws: `conflict` if the file is not such a backup, or if the passphrase does not open it; `unavailable` if the
  ///   passphrase cannot be read.
  package func backup(in file: [UInt8], passphraseFile path: String) throws(Refusal) -> Backup {
    let end = file.firstIndex(of: UInt8(ascii: "\n")) ?? file.endIndex
    let header: BackupHeader
    do {
      header = try BackupHeader(parsing: Array(file[..<end]))
    } catch {
      throw .conflict("the file \(error)")
    }
    let body = Array(file[end...].dropFirst())
    let keys = try Self.keys(for: header, passphraseFile: path)
    do throws(Refusal) {
      return try backup(of: body, keys.key)
    } catch {
      switch keys.former {
      case nil: throw error
      case .some(let former): return try backup(of: body, former)
      }
    }
  }

  private static func keys(for header: BackupHeader, passphraseFile path: String) throws(Refusal) -> BackupKeys {
    do {
      return try Passphrase(from: InputFile(path: path)).keys(for: header)
    } catch {
      throw .unavailable("\(error)")
    }
  }

  private func backup(of body: [UInt8], _ key: borrowing BackupKey) throws(Refusal) -> Backup {
    let memory = keys.memory
    let sealed = key.withBytes { bytes in
      unsafe bytes.withUnsafeBufferPointer { buffer in
        unsafe buffer.baseAddress.map { unsafe memory.encrypted($0, count: buffer.count) }
      }
    }
    guard let sealed else { throw .broken("guarded memory cannot be allocated") }
    let reader = try beginReading(try BackupUpload(key: sealed, whole: body))
    while true { if let backup = try reader.readRecord() { return backup } }
  }
}
