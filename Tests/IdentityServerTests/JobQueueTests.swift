import IdentityCore
import Testing

@testable import IdentityServer

struct JobQueueTests {
  /// Returns a job whose connection token identifies it.
  private func job(_ number: Int, of user: UInt32) -> Job {
    Job(
      connection: ConnectionToken(slot: number, generation: 0), work: .registry(.get(.device, app: nil)), verb: 0,
      started: 0,
      peer: Peer(userID: user, groupID: 1, processID: 2, isAdmin: false), principal: .user(user), isShared: true)
  }

  private func queue(_ counts: [UInt32: Int]) -> JobQueue {
    var queue = JobQueue()
    for (user, count) in counts.sorted(by: { $0.key < $1.key }) {
      for number in 0..<count { queue.append(job(number, of: user)) }
    }
    return queue
  }

  private func numbers(_ jobs: [Job], of user: UInt32) -> [Int] {
    jobs.filter { $0.peer.userID == user }.map(\.connection.slot)
  }

  @Test func `a user with one job is in the next batch, however many another one has`() {
    var queue = queue([1: 10_000, 2: 1])
    #expect(numbers(queue.take(8), of: 2) == [0])
  }

  @Test func `places that one user leaves are another's`() {
    var queue = queue([1: 100, 2: 3])
    let batch = queue.take(20)
    #expect(batch.count == 20)
    #expect(numbers(batch, of: 1) == Array(0..<17))
    #expect(numbers(batch, of: 2) == [0, 1, 2])
  }

  @Test func `each user's jobs keep their order, and none is lost`() {
    var queue = queue([1: 31, 2: 7, 3: 100])
    var taken: [Job] = []
    while !queue.isEmpty {
      let batch = queue.take(6)
      #expect((1...6).contains(batch.count))
      taken += batch
    }
    for (user, count) in [1: 31, 2: 7, 3: 100] as [UInt32: Int] {
      #expect(numbers(taken, of: user) == Array(0..<count))
    }
  }

  @Test func `with more users than places, every user gets one job before any gets a second`() {
    var queue = queue(Dictionary(uniqueKeysWithValues: (1...100).map { ($0, 50) }))
    var first = Set<UInt32>()
    for _ in 0..<25 {
      let users = queue.take(4).map(\.peer.userID)
      #expect(first.isDisjoint(with: users))
      first.formUnion(users)
    }
    #expect(first.count == 100)
  }

  @Test func `a job with a long task is not kept once it has ended`() {
    var jobs = LongJobs()
    weak var first: Job?
    do {
      let ended = job(0, of: 0)
      first = ended
      jobs.append(ended, .backup(key: SealedSecret(bytes: [], length: 0)))
    }
    jobs.append(job(1, of: 0), .backup(key: SealedSecret(bytes: [], length: 0)))
    #expect(first != nil)
    jobs.removeFirst()
    // An upload has up to 256 MiB.
    #expect(first == nil)
    #expect(jobs.jobs.map(\.job.connection.slot) == [1])
  }
}
