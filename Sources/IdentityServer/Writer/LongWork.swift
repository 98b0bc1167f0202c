import IdentityCore
import IdentityStore
import LinuxSystem

/// A task that takes longer than other principals may wait. The writer does it in pieces, and serves others in between.
enum LongTask: Sendable {
  case backup(key: SealedSecret)
  /// Restores an uploaded backup.
  case restore(BackupUpload, dryRun: Bool, adoptsDevice: Bool)
}

/// A task that is under way.
enum LongWork {
  case backup(BackupWriter, made: Timestamp)
  /// The verification of an uploaded backup. The restore itself follows in one transaction.
  case restore(BackupReader, dryRun: Bool, adoptsDevice: Bool)
}

/// The jobs with long tasks, in the order of their arrival. Only the first one is under way.
struct LongJobs {
  // No slice, which would keep an ended job with its upload.
  private(set) var jobs: [(job: Job, task: LongTask)] = []
  /// The work of the first job; nil before its first piece.
  var work: LongWork?

  mutating func append(_ job: Job, _ task: LongTask) { jobs.append((job, task)) }

  /// Ends the first job.
  mutating func removeFirst() {
    jobs.removeFirst()
    work = nil
  }
}

extension Writer {
  /// Does a piece of the first job with a long task.
  func goOnWithLongWork(_ report: inout WriterReport) {
    guard let (job, task) = longJobs.jobs.first else { return }
    originator = job.originator
    defer { originator = .daemon }
    do throws(Refusal) {
      // Before startup has finished, the identifiers may be those of another machine.
      try requireStarted()
      let work: LongWork
      if let begun = longJobs.work { work = begun } else { work = try begin(task) }
      guard let answer = try piece(of: work, for: job.peer, &report) else { return }
      report.results.add(.init(job, .success(answer)))
    } catch {
      report.results.add(.init(job, .failure(error)))
    }
    longJobs.removeFirst()
  }

  private func begin(_ task: LongTask) throws(Refusal) -> LongWork {
    let work: LongWork
    switch task {
    case .backup(let key):
      let made = Self.now
      work = .backup(try store.beginBackup(of: registry, key: key, at: made), made: made)
    case .restore(let upload, let dryRun, let adoptsDevice):
      if !dryRun { try refuseUnwritable() }
      work = .restore(try store.beginReading(upload), dryRun: dryRun, adoptsDevice: adoptsDevice)
    }
    longJobs.work = work
    return work
  }

  /// Goes on with long work until others have waited long enough.
  ///
  /// - Returns: the answer; nil if the work goes on.
  private func piece(
    of work: LongWork, for peer: Peer, _ report: inout WriterReport
  ) throws(Refusal) -> WriterReport.Answer? {
    let end = Clock.monotonicMicroseconds + Bound.writerPieceMicroseconds
    repeat {
      switch work {
      case .backup(let backup, let made):
        let written = try activity.inStorage { () throws(Refusal) in try backup.writeRecord(from: store) }
        guard let pieces = written else { continue }
        let reply = Reply.done(.number(Int64(pieces.reduce(0) { $0 + $1.count })))
        return .init(reply: reply, backup: OutgoingBackup(pieces, reply, made: made))
      case .restore(let reader, let dryRun, let adoptsDevice):
        guard let backup = try reader.readRecord() else { continue }
        return try restore(backup, dryRun: dryRun, adoptsDevice: adoptsDevice, for: peer, &report)
      }
    } while Clock.monotonicMicroseconds < end
    return nil
  }

  /// Restores a verified backup in one transaction, or in a dry run reports the changes that a restore would make.
  private func restore(
    _ backup: Backup, dryRun: Bool, adoptsDevice: Bool, for peer: Peer, _ report: inout WriterReport
  ) throws(Refusal) -> WriterReport.Answer {
    if !dryRun { try refuseUnwritable() }
    let context = context(for: peer)
    let decision = try registry.restoration(of: backup, adoptsDevice: adoptsDevice, context)
    if !dryRun, let refusal = commit(decision.changes, at: context.now, &report) { throw refusal }
    return .init(reply: decision.reply)
  }
}
