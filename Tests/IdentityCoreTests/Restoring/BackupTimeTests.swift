import IdentityCore
import Testing

/// The time of the last backup that a client has read.
struct BackupTimeTests {
  private func record(_ time: Int64, _ life: inout Life) {
    life.take(life.registry.changes(forBackup: Timestamp(milliseconds: time)))
  }

  @Test func `the backup that was read last counts, also after the clock was set back`() {
    var life = Life()
    #expect(life.registry.lastBackup == nil)
    for time in [5_000, 9_000, 1_000] as [Int64] {
      record(time, &life)
      #expect(life.registry.lastBackup == Timestamp(milliseconds: time))
    }
  }

  @Test func `only the first record adds a row, and the same time changes nothing`() {
    var life = Life()
    let times = [5_000, 6_000].map { Timestamp(milliseconds: $0) }
    #expect(life.registry.changes(forBackup: times[0]) == [.backupTaken(times[0])])
    record(5_000, &life)
    #expect(life.registry.changes(forBackup: times[0]).isEmpty)
    #expect(life.registry.changes(forBackup: times[1]) == [.backupTaken(times[1])])
  }

  @Test func `a record is no event`() {
    var life = Life()
    let before = life.registry.lastEvent
    record(5_000, &life)
    #expect(life.registry.lastEvent == before)
  }

  @Test func `a sealed store records no backup`() throws {
    var life = Life()
    record(5_000, &life)
    try life.ask(.seal(dryRun: false), as: root)
    #expect(life.registry.changes(forBackup: Timestamp(milliseconds: 6_000)).isEmpty)
  }

  @Test(arguments: [true, false]) func `a restore leaves the time as it is`(fromHere: Bool) throws {
    var (old, life) = (Life(), Life())
    record(5_000, &old)
    try life.restore(old.backup(fromHere: fromHere))
    #expect(life.registry.lastBackup == nil)
    record(6_000, &life)
    try life.restore(old.backup(fromHere: fromHere))
    #expect(life.registry.lastBackup == Timestamp(milliseconds: 6_000))
  }

  @Test func `an unproven time is not told`() {
    var life = Life()
    record(5_000, &life)
    var other = life.registry
    other.doubt(Records.all.subtracting(.backup), incomplete: [])
    #expect(other.lastBackup != nil)
    other.doubt(.backup, incomplete: [])
    #expect(other.lastBackup == nil)
  }
}
