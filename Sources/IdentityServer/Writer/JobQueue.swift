import IdentityCore

/// Jobs that wait for the writer.
///
/// Principals take turns, so that a principal with many jobs delays only itself. The jobs of one principal keep
/// their order.
struct JobQueue {
  private var jobs: [Principal: ArraySlice<Job>] = [:]
  /// The jobs of the principal whose job came last, which are not in `jobs` yet. The next job often is of the
  /// same principal.
  private var latest: (user: Principal, jobs: [Job]) = (.user(0), [])
  /// The principals with jobs, in the order of their turns.
  private var users: [Principal] = []

  /// Whether other principals were connected when the last job was sent.
  private(set) var isShared = false

  var isEmpty: Bool { users.isEmpty && latest.jobs.isEmpty }

  /// Adds a job.
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

  /// Removes and returns the next jobs: the same number from each principal, as far as it has that many.
  ///
  /// - Parameter count: the maximum number of jobs.
  mutating func take(_ count: Int) -> [Job] {
    // A single principal shares with nobody.
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
      // If there are more principals than places, those passed over come first next time.
      users = passedOver + served
    }
    return taken
  }
}
