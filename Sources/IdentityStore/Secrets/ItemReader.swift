package import IdentityCore

/// Reads the secrets of items on a separate connection, on another thread than the writer.
///
/// A reader never waits for a writer (sqlite.org/wal.html).
package final class ItemReader: Sendable {
  private let finding: Statement
  // Declared after the statement, so that the connection closes after the statement is finalized.
  private let database: Database
  private let cipher: ItemCipher

  /// The result of reading a secret.
  package enum Outcome: Equatable, Sendable {
    /// The secret was appended.
    case appended
    /// The item is gone, or the store has another edition of it. The writer must be asked.
    case changed
    /// The secret is not as it was stored.
    case damaged
    /// SQLite failed, with this reason.
    case failed(String)
  }

  init(path: String, readOnly: Bool, _ cipher: ItemCipher) throws(DatabaseError) {
    let database = try Database(path: path, create: false, readOnly: readOnly)
    try database.execute("PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
    let finding = database.prepare(SecretStatements.selection)
    // Compiling opens the files. Reads go on even if the files are removed later.
    try finding.compile()
    database.releaseMemory()
    self.finding = finding
    self.database = database
    self.cipher = cipher
  }

  /// Appends an item's secret in a form.
  ///
  /// - Parameter memory: the guarded memory of the calling thread.
  package func append(
    secretOf item: Item, as form: SecretForm, to output: inout [UInt8], _ memory: SecretMemory
  ) -> Outcome {
    read(item) { stored, associated in
      memory.append(stored: stored, with: associated, cipher.key, as: form, to: &output)
    }
  }

  /// Appends an item's secret, encrypted with the transit key.
  ///
  /// - Parameter memory: the guarded memory of the calling thread.
  package func append(
    secretOf item: Item, to secrets: inout [SealedSecret], _ memory: SecretMemory
  ) -> Outcome {
    read(item) { stored, associated in
      guard let secret = memory.reencrypted(forTransit: stored, with: associated, cipher.key) else { return false }
      secrets.append(secret)
      return true
    }
  }

  /// Reads an item's ciphertext.
  ///
  /// - Parameter use: takes the ciphertext and its associated data, and returns whether they belong together.
  private func read(_ item: Item, _ use: (_ stored: [UInt8], _ associated: [UInt8]) -> Bool) -> Outcome {
    do {
      guard let stored = try StoredSecret(finding.row([.integer(item.number)], columns: 2)),
        stored.edition == item.edition
      else { return .changed }
      return use(stored.ciphertext, item.associated(with: cipher.store)) ? .appended : .damaged
    } catch {
      return .failed("\(error)")
    }
  }
}
