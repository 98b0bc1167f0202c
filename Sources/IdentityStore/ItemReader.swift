package import IdentityCore

/// Reads secrets on a connection of its own, on another thread than the one that writes: a reader never waits for a
/// writer (sqlite.org/wal.html).
package final class ItemReader: Sendable {
  private let finding: Statement
  // Behind the statement, so that it is closed after it.
  private let database: Database
  private let sealing: ItemSealing

  /// What came of looking for a secret.
  package enum Outcome: Equatable, Sendable {
    /// It was appended.
    case appended
    /// The store has another edition of the item already, or it is gone: the writer knows more.
    case changed
    /// It is not as it was stored.
    case damaged
    /// SQLite says why not.
    case failed(String)
  }

  init(path: String, readOnly: Bool, _ sealing: ItemSealing) throws(DatabaseError) {
    let database = try Database(path: path, create: false, readOnly: readOnly)
    try database.execute("PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
    let finding = database.prepare(SecretStatements.selection)
    // It reads on where the files are lost.
    try finding.compile()
    database.releaseMemory()
    self.finding = finding
    self.database = database
    self.sealing = sealing
  }

  /// Appends the Base64 text of an item's secret.
  ///
  /// - Parameter memory: the thread's own.
  package func appendSecret(of item: Item, to output: inout [UInt8], _ memory: SecretMemory) -> Outcome {
    do {
      guard let stored = try StoredSecret(finding.row([.integer(item.number)], columns: 2)),
        stored.edition == item.edition
      else { return .changed }
      let associated = item.associated(with: sealing.store)
      return memory.appendBase64(ofStored: stored.sealed, with: associated, sealing.key, to: &output)
        ? .appended : .damaged
    } catch {
      return .failed("\(error)")
    }
  }
}
