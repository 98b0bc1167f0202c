import IdentityCore

/// Jobs that wait for the writer. Principals take turns, so that one who asks for much waits for itself; each one's own keep
/// their order.
struct JobQueue {
  private var jobs: [Principal: ArraySlice<Job>] = [:]
  /// Those of the user whose job came last, which are not among ``jobs`` yet: the next one often is the same user's.
  private var latest: (user: Principal, jobs: [Job]) = (.user(0), [])
  /// The users with jobs, whose turn it is first.
  private var users: [Principal] = []

  /// Whether there were other users when the last one was asked for.
  private(set) var isShared = false

  var isEmpty: Bool { users.isEmpty && latest.jobs.isEmpty }

  /// Takes one in.
  mutating func append(_ job: Job) {
    let user = job.principal
    isShared = job.isShared
    if user != latest.user {
      keepLatest()
      latest.user = user
    }
    latest.jobs.append(job)
  }

  private mutating func keepLatest() {
    guard !latest.jobs.isEmpty else { return }
    if jobs[latest.user] == nil { users.append(latest.user) }
    jobs[latest.user, default: []] += takeLatest()
  }

  private mutating func takeLatest() -> [Job] {
    var taken: [Job] = []
    swap(&taken, &latest.jobs)
    return taken
  }

  /// Takes the next ones out, of each user the same number where they have it.
  ///
  /// - Parameter count: how many, at most.
  mutating func take(_ count: Int) -> [Job] {
    // Of one user alone there is nobody to share with.
    if users.isEmpty, latest.jobs.count <= count { return takeLatest() }
    keepLatest()
    var taken: [Job] = []
    while taken.count < count, !users.isEmpty {
      let share = max(1, (count - taken.count) / users.count)
      var served: [Principal] = []
      var passedOver: [Principal] = []
      for user in users {
        let some = jobs[user]?.prefix(min(share, count - taken.count)) ?? []
        taken += some
        jobs[user]?.removeFirst(some.count)
        if some.isEmpty {
          passedOver.append(user)
        } else if jobs[user]?.isEmpty == false {
          served.append(user)
        } else {
          jobs[user] = nil
        }
      }
      // Where there are more users than places, those who got none are the first next time.
      users = passedOver + served
    }
    return taken
  }
}
