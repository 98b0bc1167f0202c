// Removal of unused apps without a manifest (identityd-protocol(7), section "WHO IS ASKING").

/// The day of an app's last use, or the newest day of the daemon.
///
/// Days on which the daemon did not run do not count. A machine that was off for a month removes no app, and a clock
/// that jumps adds at most one day.
package struct AppUse: Equatable, Sendable {
  /// The number of days on which the daemon ran, up to and including the recorded day.
  package let day: Int64
  /// The calendar day.
  package let date: Day

  /// Creates a record of a day.
  package init(day: Int64, date: Day) {
    self.day = day
    self.date = date
  }
}

/// The condition of `app forget` for several apps.
package struct AppCondition: Equatable, Sendable {
  /// The minimum number of days without use; nil for any.
  package let unused: Int?
  /// The pattern of the app's ID, in which `*` stands for any number of bytes; nil for any.
  package let pattern: Text?

  /// Creates a condition.
  package init(unused: Int?, pattern: Text?) {
    self.unused = unused
    self.pattern = pattern
  }
}

extension Registry {
  /// Returns the changes that record the use of apps.
  ///
  /// - Parameter used: the apps that had a connection since the last call.
  package func changes(forUsed used: Set<Text>, at now: Timestamp) -> [Change] {
    guard !isSealed else { return [] }
    var changes: [Change] = []
    var today = AppUse(day: max(1, day?.day ?? 1), date: Day(of: now))
    if let day, day.date != today.date { today = AppUse(day: day.day + 1, date: today.date) }
    if today != day { changes.append(.dayBegan(today, isFirst: day == nil)) }
    for (id, app) in apps where app.manifest == nil {
      let use = use(of: id)
      // An app without a record counts as used now, because there is no evidence that it was unused.
      if use == nil || used.contains(id) && use?.day != today.day {
        changes.append(.appUsed(id, today, isFirst: use == nil))
      }
    }
    return changes
  }

  /// Returns the IDs of apps that meet a condition and whose removal deletes no items, in order.
  ///
  /// Such an app has no manifest and no items, and no item is in its access group.
  func forgettable(_ condition: AppCondition) -> [Text] {
    let today = day?.day ?? 0
    let candidates = apps.filter { id, app in
      guard app.manifest == nil, items.isEmpty(group: id) else { return false }
      if let unused = condition.unused {
        guard let use = use(of: id), today - use.day >= Int64(unused) else { return false }
      }
      return condition.pattern.map { id.matches($0) } ?? true
    }.map(\.key)
    // A scan of all items is needed only if a holder that is charged for one of these apps has items.
    guard candidates.contains(where: { items.usage(of: holder(of: $0)).items > 0 }) else { return candidates.sorted() }
    let owners = Set(items.all.map(\.owner))
    return candidates.filter { !owners.contains($0) }.sorted()
  }

  /// `ForgetUnused=`: returns the changes that uninstall apps after so many days without use, for one batch of apps.
  package func removalOfUnused(days: Int, _ context: Context) -> [Change] {
    guard !isSealed else { return [] }
    return removal(
      of: forgettable(AppCondition(unused: days, pattern: nil)).prefix(Bound.forgottenTogether), context)
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
/// - Throws: `denied` without admin rights.
struct ForgetMatchingRule: ChangeRule {
  let condition: AppCondition
  let dryRun: Bool
  var basis: Basis { Basis(whole: [.apps, .uses]) }

  func decide(in registry: Registry, for peer: Peer, _ context: Context?) throws(Refusal) -> Decision? {
    guard peer.isAdmin else {
      throw .denied(app: peer.app, userID: peer.userID, grant: "admin rights to forget apps by unused= and app=")
    }
    guard let context else { return nil }
    let found = registry.forgettable(condition)
    let now = found.prefix(Bound.forgottenTogether)
    var reply = Reply.rows(Array(now)) { id, reply in
      reply.word(.text(id))
      reply.attribute("installed", (registry.apps[id]?.installed).map(Reply.Value.time))
      reply.attribute("used", registry.use(of: id)?.date.start.map(Reply.Value.time))
    }
    reply.attribute("left", .number(Int64(found.count - now.count)))
    return Decision(changes: dryRun ? [] : registry.removal(of: now, context), reply: reply)
  }
}

extension Text {
  /// Returns whether the text matches a pattern, in which `*` stands for any number of bytes.
  func matches(_ pattern: Text) -> Bool {
    let star = UInt8(ascii: "*")
    var place = 0
    var patternPlace = 0
    // The position after the last star, and the end of its match. On a mismatch, the match grows by one byte.
    var retry: (pattern: Int, place: Int)?
    while place < bytes.count {
      if patternPlace < pattern.bytes.count, pattern.bytes[patternPlace] == star {
        patternPlace += 1
        retry = (patternPlace, place)
      } else if patternPlace < pattern.bytes.count, pattern.bytes[patternPlace] == bytes[place] {
        patternPlace += 1
        place += 1
      } else if let last = retry {
        retry = (last.pattern, last.place + 1)
        patternPlace = last.pattern
        place = last.place + 1
      } else {
        return false
      }
    }
    return pattern.bytes[patternPlace...].allSatisfy { $0 == star }
  }
}
