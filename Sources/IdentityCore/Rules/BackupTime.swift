// The time of the last backup (identityd-protocol(7), section "STATUS").
extension Registry {
  /// Returns the changes that record a backup which a client has read to its end.
  ///
  /// The clock may have been set back meanwhile, so the backup that was read last counts, and not the latest time.
  ///
  /// - Parameter made: the time when the backup was made.
  package func changes(forBackup made: Timestamp) -> [Change] {
    guard !isSealed, made != lastBackup else { return [] }
    return [.backupTaken(made)]
  }
}
