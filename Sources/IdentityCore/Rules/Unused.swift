// Apps without a manifest that nobody uses any more (protocol, section 8).

/// When an app was used last, or the daemon began its newest day.
///
/// Days without the daemon do not count: a machine that was off for a month finds every app as it left it, and a clock that
/// jumps is one day at most.
package struct AppUse: Equatable, Sendable {
  /// How many days the daemon had run by then.
  package let day: Int64
  /// The day of the calendar.
  package let date: Day

  /// Puts both together.
  package init(day: Int64, date: Day) {
    self.day = day
    self.date = date
  }
}

/// Which apps `app forget` is about.
package struct AppCondition: Equatable, Sendable {
  /// Apps that were not used for that many days; nil for any.
  package let unused: Int?
  /// Apps with such a name, in which `*` stands for any number of bytes; nil for any.
  package let pattern: Text?

  /// Puts a condition together.
  package init(unused: Int?, pattern: Text?) {
    self.unused = unused
    self.pattern = pattern
  }
}

extension Registry {
  /// The changes that record which apps were used.
  ///
  /// - Parameter used: apps with a connection since the last time.
  package func changes(forUsed used: Set<Text>, at now: Timestamp) -> [Change] {
    guard !isSealed else { return [] }
    var changes: [Change] = []
    var today = AppUse(day: max(1, day?.day ?? 1), date: Day(of: now))
    if let day, day.date != today.date { today = AppUse(day: day.day + 1, date: today.date) }
    if today != day { changes.append(.dayBegan(today, isFirst: day == nil)) }
    for (id, app) in apps where app.manifest == nil {
      let use = use(of: id)
      // One that is not known yet counts as used now, because nothing says that it was not.
      if use == nil || used.contains(id) && use?.day != today.day {
        changes.append(.appUsed(id, today, isFirst: use == nil))
      }
    }
    return changes
  }

  /// Apps that meet a condition, and whose removal takes no item from anybody: these have no manifest, no items, and no item
  /// is in their access group. By their names.
  func forgettable(_ condition: AppCondition) -> [Text] {
    let today = day?.day ?? 0
    let candidates = apps.filter { id, app in
      guard app.manifest == nil, items.isEmpty(group: id) else { return false }
      if let unused = condition.unused {
        guard let use = use(of: id), today - use.day >= Int64(unused) else { return false }
      }
      return condition.pattern.map { id.matches($0) } ?? true
    }.map(\.key)
    // A look at all items, unless nobody who is charged for these apps has any.
    guard candidates.contains(where: { items.usage(of: holder(of: $0)).items > 0 }) else { return candidates.sorted() }
    let owners = Set(items.all.map(\.owner))
    return candidates.filter { !owners.contains($0) }.sorted()
  }

  /// `app forget unused=DAYS app=PATTERN`: what is uninstalled, or would be, and how many are left for the next time.
  func forget(_ condition: AppCondition, dryRun: Bool, _ context: Context) -> Decision {
    let found = forgettable(condition)
    let now = found.prefix(Bound.forgottenTogether)
    var reply = Reply.rows(Array(now)) { id, reply in
      reply.word(.text(id))
      reply.attribute("installed", (apps[id]?.installed).map(Reply.Value.time))
      reply.attribute("used", use(of: id)?.date.start.map(Reply.Value.time))
    }
    reply.attribute("left", .number(Int64(found.count - now.count)))
    return Decision(changes: dryRun ? [] : removal(of: now, context), reply: reply)
  }

  /// `ForgetUnused=`: what uninstalls apps that were not used for so many days, as many as go together.
  package func removalOfUnused(days: Int, _ context: Context) -> [Change] {
    guard !isSealed else { return [] }
    return removal(
      of: forgettable(AppCondition(unused: days, pattern: nil)).prefix(Bound.forgottenTogether), context)
  }

  private func removal(of ids: some Sequence<Text>, _ context: Context) -> [Change] {
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

extension Text {
  /// Whether this is of a pattern, in which `*` stands for any number of bytes.
  func matches(_ pattern: Text) -> Bool {
    let star = UInt8(ascii: "*")
    var place = 0
    var patternPlace = 0
    // Behind the last star, and how much it stood for: more is tried where the rest does not fit.
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
