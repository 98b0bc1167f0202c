import IdentityCore
import IdentityWire
import LinuxSystem
import Sessions

/// The answers to `stats`.
final class StatisticsAnswers {
  private let state: CommittedState
  private let connections: ConnectionTable
  private let writer: WriterChannel
  private let known: KnownAnswers
  private let measurements: Measurements
  private let status: StatusAnswers
  private let logBacklog: () -> LogBacklog

  init(
    _ state: CommittedState, _ connections: ConnectionTable, _ writer: WriterChannel, _ known: KnownAnswers,
    _ measurements: Measurements, _ status: StatusAnswers, logBacklog: @escaping () -> LogBacklog
  ) {
    self.state = state
    self.connections = connections
    self.writer = writer
    self.known = known
    self.measurements = measurements
    self.status = status
    self.logBacklog = logBacklog
  }

  /// `stats`: one row per series, in the order of the table of metrics.
  func answer(for peer: Peer) -> Reply {
    let sharesDevice = state.registry.may(peer, see: .sharing)
    var reply = Reply()
    for sample in samples where sample.metric.audience.includes(peer, sharesDevice: sharesDevice) {
      sample.append(to: &reply)
    }
    reply.ok()
    return reply
  }

  /// The samples of all metrics.
  private var samples: [MetricSample] {
    let states = stateCounts
    let log = logBacklog()
    var samples = [
      MetricSample(.build, 1, Version.program),
      MetricSample(.start, milliseconds: status.started.milliseconds),
    ]
    samples += requestSamples
    samples.append(MetricSample(.turns, measurements.turns))
    for (family, jobs) in zip(VerbTable.families, measurements.jobs) where jobs.count > 0 {
      samples.append(MetricSample(.jobs, jobs, family.name))
    }
    samples += [
      MetricSample(.jobsUnderWay, connections.allShares.reduce(0) { $0 + $1.jobs }),
      MetricSample(.writerQueue, writer.queueLength),
      MetricSample(.commits, measurements.commits.done, "ok"),
      MetricSample(.commits, measurements.commits.failed, "failed"),
      MetricSample(.commitSeconds, measurements.commitSeconds),
      MetricSample(.commitChanges, measurements.commitChanges),
      MetricSample(.storeBytes, measurements.storeSize),
      MetricSample(.storeWritable, state.condition == .writable ? 1 : 0),
    ]
    samples += StoreCondition.Kind.allCases.map {
      MetricSample(.storeCondition, state.kind == $0 ? 1 : 0, $0.rawValue)
    }
    samples += [
      MetricSample(.keyAvailable, state.usableKeySource == nil ? 0 : 1),
      MetricSample(.manifestFaults, state.manifestFaults.count),
      MetricSample(
        .machineSuspect, state.registry.machine?.suspicion == nil && state.registry.unacknowledged == nil ? 0 : 1),
    ]
    samples += ConnectionState.allCases.map { MetricSample(.connections, states[$0] ?? 0, $0.rawValue) }
    samples.append(MetricSample(.accepted, measurements.accepted))
    samples += ConnectionRefusal.Reason.allCases.map {
      MetricSample(.refused, measurements.refused[$0] ?? 0, $0.rawValue)
    }
    samples += PrincipalBound.allCases.map {
      MetricSample(.principalsAtBound, connections.principals(at: $0), $0.rawValue)
    }
    samples += [
      MetricSample(.subscribers, connections.subscribers),
      MetricSample(.subscriberLag, greatestLag),
      MetricSample(.events, measurements.events),
    ]
    if let time = state.events.newest?.time {
      samples.append(MetricSample(.lastEvent, milliseconds: time.milliseconds))
    }
    if let time = state.registry.lastBackup {
      samples.append(MetricSample(.lastBackup, milliseconds: time.milliseconds))
    }
    let fleet = status.lease.state
    samples += FleetState.allCases.map { MetricSample(.fleetState, fleet == $0 ? 1 : 0, $0.rawValue) }
    if let time = status.lease.lastContact {
      samples.append(MetricSample(.fleetContact, milliseconds: time.milliseconds))
    }
    samples += [
      MetricSample(.logQueue, log.waiting),
      MetricSample(.logSuppressed, log.suppressed),
      MetricSample(.logDropped, log.lost),
    ]
    return samples
  }

  /// The samples of the number of requests, by verb and outcome.
  private var requestSamples: [MetricSample] {
    var samples: [MetricSample] = []
    for verb in 0...Measurements.noVerb {
      let words = verb == Measurements.noVerb ? "none" : VerbTable.verbs[verb].words
      for (outcome, name) in Measurements.outcomes.enumerated() {
        let isKnown = verb != Measurements.noVerb && outcome == 0
        let count =
          measurements.count(ofVerb: verb, outcome: outcome) + (isKnown ? known.count(ofVerb: verb) : 0)
        if count > 0 { samples.append(MetricSample(.requests, count, words, name)) }
      }
    }
    return samples
  }

  private var stateCounts: [ConnectionState: Int] {
    connections.all.reduce(into: [:]) { counts, connection in counts[connection.state, default: 0] += 1 }
  }

  /// The number of events that the subscriber furthest behind has not examined.
  private var greatestLag: Int64 {
    connections.all.reduce(0) { lag, connection in
      max(lag, connection.subscription.map { state.events.last - $0.position } ?? 0)
    }
  }

  /// `stats apps=yes`: the apps with the most requests so far. A peer that may not monitor the daemon sees only its
  /// own app.
  func answerOfApps(for asking: Connection) -> Reply {
    let own = asking.peer.app
    let seesAll = asking.peer.mayMonitor
    // A request is counted after its answer, so this one is added here.
    var connected = [own: AppStatistics(app: own, requests: 1)]
    for connection in connections.all where seesAll || connection.peer.app == own {
      connected[connection.peer.app, default: AppStatistics(app: connection.peer.app)].count(connection)
    }
    var busiest = BusiestApps()
    for (app, requests) in measurements.requestsOfApps where seesAll || app == own {
      var statistics = connected.removeValue(forKey: app) ?? AppStatistics(app: app)
      statistics.requests += requests
      busiest.add(statistics)
    }
    for statistics in connected.values { busiest.add(statistics) }
    return .rows(busiest.apps) { app, row in
      row.word(.text(app.app))
      row.attribute("connections", .number(app.connections))
      row.attribute("subscribers", .number(app.subscribers))
      row.attribute("requests", .number(Int64(clamping: app.requests)))
    }
  }
}

/// The connections, subscribers and requests of one app.
private struct AppStatistics: Sendable {
  let app: Text
  var connections: Int64 = 0
  var subscribers: Int64 = 0
  var requests: UInt64 = 0

  mutating func count(_ connection: Connection) {
    connections += 1
    if connection.isSubscribed { subscribers += 1 }
    requests += connection.session.requests
  }

  /// Whether the app is listed before another one.
  func isBefore(_ other: AppStatistics) -> Bool {
    requests == other.requests ? app < other.app : requests > other.requests
  }
}

/// The apps with the most requests, the busiest first, chosen without a sort of all counted apps.
private struct BusiestApps {
  private(set) var apps: [AppStatistics] = []

  mutating func add(_ app: AppStatistics) {
    if apps.count == Bound.appsInStats {
      guard let last = apps.last, app.isBefore(last) else { return }
      apps.removeLast()
    }
    let index = apps.firstIndex { app.isBefore($0) } ?? apps.count
    apps.insert(app, at: index)
  }
}

/// The state of a connection, as reported by `stats`.
enum ConnectionState: String, CaseIterable {
  case idle
  /// A request is in progress.
  case working
  /// Output waits for the client to read.
  case sending
  /// The last answer is given, or nothing more is read.
  case ending
}

extension Connection {
  /// The current state.
  var state: ConnectionState {
    if session.isDraining || session.isClosing || session.hasEnded { return .ending }
    if session.isAtWriter || session.hasLongAnswer { return .working }
    return hasUnsentOutput || session.awaitsReader ? .sending : .idle
  }
}
