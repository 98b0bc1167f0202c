// Removal of unused apps without a manifest, and of suspended apps (identityd-protocol(7), section "WHO IS ASKING").

/// The day of an app's last use, or the newest day of the daemon.
///
/// Days on which the daemon did not run do not count. A machine that was off for a month removes no app, and a clock
/// that jumps adds at most one day.
package struct AppUse: Equatable, Sendable {
  /// The number of days on which the daemon ran, up to and including the recorded day.
  package internal(set) var day: Int64
  /// The calendar day.
  package internal(set) var date: Day

  package init(day: Int64, date: Day) {
    self.day = day
    self.date = date
  }
}

/// The days of use, which are counted from one to the next.
struct UseTable: Equatable, Sendable {
  /// The newest day on which the daemon ran; nil before the first day is recorded.
  var day: AppUse?
  private var last = DividedDictionary<Text, AppUse>()

  /// The last use of an app without a manifest; nil if none is recorded.
  subscript(_ app: Text) -> AppUse? {
    get { last[app] }
    set { last[app] = newValue }
  }
}

/// The condition of `app forget` for several apps.
package struct AppCondition: Equatable, Sendable {
  /// The minimum number of days without use; nil for any.
  package let unused: Int?
  /// The pattern of the app's ID, in which `*` stands for any number of bytes; nil for any.
  package let pattern: Text?

  package init(unused: Int?, pattern: Text?) {
    self.unused = unused
    self.pattern = pattern
  }
}

/// The numbers of days of operation after which the daemon uninstalls an app of its own accord; nil for never.
package struct ForgetPolicy: Equatable, Sendable {
  /// The days without use, for apps that have neither a manifest nor items (`ForgetUnused=`).
  package var unusedDays: Int?
  /// The days since the manifest was last there, for suspended apps (`ForgetSuspended=`).
  package var suspendedDays: Int?

  package init(unusedDays: Int? = nil, suspendedDays: Int? = nil) {
    self.unusedDays = unusedDays
    self.suspendedDays = suspendedDays
  }

  /// Whether no app is ever uninstalled.
  package var isNever: Bool { self == ForgetPolicy() }
}

extension Registry {
  /// Returns the changes that record the use of apps, and the day on which a suspended app was last in force.
  ///
  /// - Parameter used: the apps that had a connection since the last call.
  package func changes(forUsed used: Set<Text>, at now: Timestamp) -> [Change] {
    guard !isSealed else { return [] }
    var changes: [Change] = []
    var today = AppUse(day: max(1, day?.day ?? 1), date: Day(of: now))
    if let day, day.date != today.date { today = AppUse(day: day.day + 1, date: today.date) }
    if today != day { changes.append(.dayBegan(today)) }
    for (id, app) in apps where app.manifest == nil || app.suspended != nil {
      let use = use(of: id)
      // An app without a record counts as used now, because there is no evidence that it was unused.
      if use == nil || used.contains(id) && use?.day != today.day {
        changes.append(.appUsed(id, today))
      }
    }
    return changes
  }

  /// Returns the search for the apps that meet a condition and whose removal deletes no items, in the order of their IDs.
  ///
  /// Such an app has no manifest and no items, and no item is in its access group.
  fileprivate func search(_ condition: AppCondition) -> Search<OrderedBlocks<InstalledApp>> {
    Search(OrderedBlocks(apps.table)) { isForgettable($0, condition) }
  }

  fileprivate func isForgettable(_ installed: InstalledApp, _ condition: AppCondition) -> Bool {
    let id = installed.key
    guard installed.app.manifest == nil, items.isEmpty(group: id), !items.isOwner(id) else { return false }
    if let unused = condition.unused, !isUnused(id, days: unused) { return false }
    return condition.pattern.map { id.matches($0) } ?? true
  }

  private func isUnused(_ id: Text, days: Int) -> Bool {
    use(of: id).map { (day?.day ?? 0) - $0.day >= Int64(days) } ?? false
  }

  private func isDue(_ installed: InstalledApp, _ policy: ForgetPolicy) -> Bool {
    if installed.app.suspended != nil { return policy.suspendedDays.map { isUnused(installed.key, days: $0) } ?? false }
    return policy.unusedDays.map { isForgettable(installed, AppCondition(unused: $0, pattern: nil)) } ?? false
  }

  /// `ForgetUnused=`, `ForgetSuspended=`: returns the changes that uninstall the apps that are due, for one step.
  ///
  /// - Parameter last: the app after which the step begins; nil for the first step. Receives the last app examined; nil
  ///   after the last step.
  package func removalOfUnused(_ policy: ForgetPolicy, after last: inout Text?, _ context: Context) -> [Change] {
    guard !isSealed else {
      last = nil
      return []
    }
    var search = Search(OrderedBlocks(apps.table, from: last, isBehind: last != nil)) { isDue($0, policy) }
    var found: [Text] = []
    var effort = Bound.appsPerSearch
    var hasEnded = false
    search: while found.count < Bound.appsPerStep {
      switch search.step(&effort) {
      case .found(let unused): found.append(unused.key)
      case .paused: break search
      case .ended:
        hasEnded = true
        break search
      }
    }
    last = hasEnded ? nil : search.last?.key ?? last
    return removal(of: found, context)
  }

  fileprivate func removal(of ids: some Sequence<Text>, _ context: Context) -> [Change] {
    var plan = Plan(self)
    var holders: Set<Holder> = []
    for id in ids {
      plan.forget(id, at: context.now)
      holders.insert(holder(of: id))
    }
    for holder in holders { plan.trimHistory(of: holder, context.limits) }
    return plan.changes
  }
}

extension RegistryCommand {
  package static func forgetMatching(_ condition: AppCondition, dryRun: Bool) -> Self {
    Self(ForgetMatchingRule(condition: condition, dryRun: dryRun))
  }
}

/// `app forget unused=DAYS app=PATTERN`: uninstalls or lists apps without a manifest and without items, and counts those
/// left for the next request.
///
/// The apps are looked for before the change is decided, and are uninstalled in several steps if they are many.
///
/// - Throws: `denied` without admin rights.
struct ForgetMatchingRule: SearchRule {
  let condition: AppCondition
  let dryRun: Bool
  /// The apps found; nil before the search.
  var found: Found?
  var basis: Basis { Basis(whole: [.apps, .uses]) }
  var answerKind: AnswerKind { found == nil ? .search : dryRun ? .list : .steps }

  /// An app that is not used, with its last use.
  struct UnusedApp: Equatable, Sendable {
    let installed: InstalledApp
    let use: AppUse?
  }

  /// The result of the search.
  struct Found: Equatable, Sendable {
    /// The apps that are still to be uninstalled.
    var apps: ArraySlice<UnusedApp>
    /// The apps that were uninstalled.
    var gone: [UnusedApp] = []
    /// The number of apps that are left for the next request.
    let left: Int
  }

  func search(in registry: Registry, for peer: Peer) throws(Refusal) -> ObjectSearch {
    guard peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights to forget apps by unused= and app=")
    }
    return ObjectSearch(registry.search(condition)) { [condition, dryRun] all in
      let now = all.prefix(Bound.forgottenTogether)
      let apps = now.map { UnusedApp(installed: $0, use: registry.use(of: $0.key)) }
      return ForgetMatchingRule(
        condition: condition, dryRun: dryRun, found: Found(apps: apps[...], left: all.count - now.count))
    }
  }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard var found else { return try decideAtOnce(in: registry, for: peer, context) }
    if dryRun { return Decision(reply: reply(Array(found.apps), left: found.left)) }
    guard let context else { return nil }
    // An app may have been used, or got an item, since the search.
    let present = found.apps.prefix(Bound.appsPerStep).filter { app in
      registry.apps.table[app.installed.key].map { registry.isForgettable($0, condition) } ?? false
    }
    found.apps = found.apps.dropFirst(Bound.appsPerStep)
    found.gone += present
    var decision = Decision(
      changes: registry.removal(of: present.map(\.installed.key), context), reply: reply(found.gone, left: found.left))
    if !found.apps.isEmpty {
      decision.next = ForgetMatchingRule(condition: condition, dryRun: false, found: found)
    }
    return decision
  }

  private func reply(_ apps: [UnusedApp], left: Int) -> Reply {
    var reply = Reply.rows(apps) { app, reply in
      reply.word(.text(app.installed.key))
      reply.attribute("installed", .time(app.installed.app.installed))
      reply.attribute("used", app.use?.date.start.map(Reply.Value.time))
    }
    reply.attribute("left", .number(Int64(left)))
    return reply
  }
}

extension Text {
  /// Returns whether the text matches a pattern, in which `*` stands for any number of bytes.
  func matches(_ pattern: Text) -> Bool {
    let star = UInt8(ascii: "*")
    var offset = 0
    var patternOffset = 0
    // The position after the last star, and the end of its match. On a mismatch, the match grows by one byte.
    var retry: (pattern: Int, offset: Int)?
    while offset < bytes.count {
      if patternOffset < pattern.bytes.count, pattern.bytes[patternOffset] == star {
        patternOffset += 1
        retry = (patternOffset, offset)
      } else if patternOffset < pattern.bytes.count, pattern.bytes[patternOffset] == bytes[offset] {
        patternOffset += 1
        offset += 1
      } else if let last = retry {
        retry = (last.pattern, last.offset + 1)
        patternOffset = last.pattern
        offset = last.offset + 1
      } else {
        return false
      }
    }
    return pattern.bytes[patternOffset...].allSatisfy { $0 == star }
  }
}
