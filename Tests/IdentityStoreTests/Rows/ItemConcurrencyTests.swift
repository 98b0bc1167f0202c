import IdentityCore
import IdentityStore
import LinuxSystem
import Testing

/// One thread writes while others read.
struct ItemConcurrencyTests {
  /// The items that the writer announced to the readers, and the results of the readers.
  private struct Shared: Sendable {
    var told: [Known]
    var isDone = false
    var appended = 0
    var changed = 0
    var wrong: [String] = []
  }

  /// Reads the announced items repeatedly until the writer is done.
  private static func read(_ reader: ItemReader, _ memory: SecretMemory, _ shared: Locked<Shared>) {
    var turn = 0
    while true {
      let (known, isDone) = shared.withLock { ($0.told[turn % $0.told.count], $0.isDone) }
      turn += 1
      if isDone { return }
      let answer = ReaderAnswer(reader, known.item, memory)
      shared.withLock { shared in
        switch answer {
        case .appended(known): shared.appended += 1
        case .changed: shared.changed += 1
        default: shared.wrong.append("\(answer.outcome): \(answer.text.count) bytes, \(known.item.edition)")
        }
      }
    }
  }

  /// - Parameter checkpointSize: decides how often the log is written back during the reads.
  @Test(arguments: [32_768, 262_144, 4_194_304])
  func `a reader returns the secret of the requested edition, or reports a change`(checkpointSize: Int) throws {
    let workspace = try Workspace(inMemory: true)
    var options = Store.Options()
    options.checkpointSize = checkpointSize
    let numbers = 1...4 as ClosedRange<Int64>
    // Secrets of one page and of several pages.
    func known(_ number: Int64, _ edition: UInt64) -> Known {
      Known(number, edition: edition, length: edition % 3 == 0 ? 9_000 : 40 * Int(number))
    }
    let shared = Locked(Shared(told: numbers.map { known($0, 0) }))
    try workspace.withStore(options: options) { store, _ in
      try store.put(numbers.map { known($0, 0) })
      let memory = try store.makeSecretMemory()
      let (first, second) = (try store.reader(), try store.reader())
      let (one, two) = (try store.makeSecretMemory(), try store.makeSecretMemory())
      let left = try Thread(named: "reader 1") { Self.read(first, one, shared) }
      let right = try Thread(named: "reader 2") { Self.read(second, two, shared) }
      var failure: (any Error)?
      do {
        for edition in 1...60 as ClosedRange<UInt64> {
          for number in numbers {
            let next = known(number, edition)
            let sealed = try memory.encrypt(next.secret)
            try store.mustCommit([.itemStored(next.item, sealed, edition % 2 == 0 ? .updated : .replaced)])
            shared.withLock { $0.told[Int(number) - 1] = next }
            if edition % 20 == 0 { try store.expectOpen([next]) }
          }
        }
      } catch {
        failure = error
      }
      shared.withLock { $0.isDone = true }
      left.join()
      right.join()
      if let failure { throw failure }
      #expect(store.condition == .writable)
    }
    let end = shared.withLock { $0 }
    #expect(end.wrong == [])
    #expect(end.appended > 100, "\(end.changed) changed")
    let last = numbers.map { known($0, 60) }
    try workspace.withStore { store, _ in try store.expectOpen(last) }
  }
}
