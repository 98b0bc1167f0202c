import IdentityCore
import IdentityWire
import LinuxSystem
import Systemd

extension Server {
  /// Answers one request line, or sends the request to the writer.
  ///
  /// - Returns: false if the request must wait for earlier changes of the connection. The caller then passes the line
  ///   again later.
  func answer(_ line: borrowing Span<UInt8>, _ connection: Connection) -> Bool {
    guard line.count > 0 else { return true }
    var verb = Measurements.noVerb
    do {
      try parse(line)
      let match = try table.match(parser, in: line)
      verb = match.place
      let command = try table.command(of: match, parser, in: line, by: connection.peer, secrets: secretMemory)
      let start = connection.output.count
      let jobs = connection.session.jobs
      switch command {
      case .local(let command):
        // Answers keep the order of the requests.
        guard !connection.session.isAtWriter else { return false }
        try answer(command, connection)
      case .registry(let command):
        // A list that waits behind a change would be held in memory as a whole.
        if command.isListing, connection.session.isAtWriter { return false }
        if !connection.session.isAtWriter, isSettled,
          let reply = try registry.answer(command, for: connection.peer, in: surroundings),
          try append(reply, to: connection)
        {
          break
        }
        try send(.registry(command), verb, of: connection)
      case .store(let command):
        // Earlier requests are answered first.
        guard case .restore(let dryRun, let adoptsDevice) = command else {
          try send(.store(command), verb, of: connection)
          break
        }
        guard !connection.session.isAtWriter else { return false }
        let upload = try upload.take(by: connection.token)
        try send(.restore(upload, dryRun: dryRun, adoptsDevice: adoptsDevice), verb, of: connection)
      }
      if command.hasStandingAnswer, !connection.session.isAtWriter {
        known.keep(line, verb: verb, of: connection.held.number, connection.output, from: start)
      }
      // A request at the writer is counted when its answer arrives.
      if connection.session.jobs == jobs { measurements.countAnswer(to: verb, nil) }
    } catch {
      guard !connection.session.isAtWriter else { return false }
      let isHTTP = HTTPRequest.hasLine(line)
      let refusal = isHTTP ? Refusal.syntax(.http) : error
      refusal.append(to: &connection.output)
      measurements.countAnswer(to: verb, refusal.code)
      if isHTTP { connection.session.close() }
    }
    connection.requests &+= 1
    return true
  }

  /// Sends a request to the writer.
  ///
  /// - Throws: `limit` if too many backups are in progress.
  private func send(_ work: Job.Work, _ verb: Int, of connection: Connection) throws(Refusal) {
    if case .store(.backup) = work {
      // Each backup is held in memory as a whole.
      guard connections.all.count(where: \.session.hasBackup) < Bound.backups else {
        throw .limit("\(Bound.backups) backups are under way, which is the limit; try again later")
      }
    }
    connection.session.sendJob(last: work.exclusiveAnswer)
    connection.share.changes += 1
    let job = Job(
      connection: connection.token, work: work, verb: verb, started: Clock.monotonicMicroseconds,
      peer: connection.peer, principal: connection.held.principal, isShared: connections.isShared)
    if inbox.put(.job(job)) { owesBell = true }
    if !isInTurn { ringForJobs() }
  }

  /// Runs `body`, and wakes the writer at most once afterwards, so that all requests of `body` share a commit.
  func inTurn(_ body: () -> Void) {
    isInTurn = true
    body()
    isInTurn = false
    ringForJobs()
  }

  private func ringForJobs() {
    guard owesBell else { return }
    owesBell = false
    inbox.ring()
  }

  private func parse(_ line: borrowing Span<UInt8>) throws(Refusal) {
    do {
      try parser.parse(line)
    } catch {
      throw .syntax(error)
    }
  }

  private func answer(_ command: LocalCommand, _ connection: Connection) throws(Refusal) {
    switch command {
    case .ping: Reply.done.append(to: &connection.output)
    case .hello: Reply.hello.append(to: &connection.output)
    case .help(let words): try VerbTable.help(words).append(to: &connection.output)
    case .whoami:
      let app = connection.peer.app
      try registry.requireRecord(of: app)
      Reply.whoami(connection.peer, vendor: registry.vendor(of: app), groups: registry.accessGroups(of: app))
        .append(to: &connection.output)
    case .check(let text): Reply.check(text).append(to: &connection.output)
    case .status: status(for: connection.peer).append(to: &connection.output)
    case .stats(ofApps: false): statistics(for: connection.peer).append(to: &connection.output)
    case .stats(ofApps: true): statisticsOfApps(for: connection).append(to: &connection.output)
    case .derived(let identifier): try derive(identifier, for: connection.peer).append(to: &connection.output)
    case .subscribe(let topics, let since, let snapshot):
      try subscribe(topics, since: since, snapshot: snapshot, connection)
    case .unsubscribe(let topics): unsubscribe(topics, connection)
    case .compare(let left, let right, let order): Reply.compare(left, right, order).append(to: &connection.output)
    case .uuids(nil, let version): Reply.done(.uuid(try nextUUID(version))).append(to: &connection.output)
    case .uuids(let count?, let version):
      connection.begin(.uuids(left: count, of: count, version))
      appendPiece(to: connection)
    case .beginRestore(let key):
      try upload.begin(key, by: connection.token)
      Reply.done.append(to: &connection.output)
    case .addToRestore(let text):
      Reply.done(.number(Int64(try upload.add(text, by: connection.token)))).append(to: &connection.output)
    case .quit:
      Reply.done.append(to: &connection.output)
      connection.session.close()
    }
  }
}

extension Job.Work {
  /// The answer after which no other request is carried out, if the answer is one.
  fileprivate var exclusiveAnswer: SessionState.ExclusiveAnswer? {
    switch self {
    case .registry(.item(.read)): .secret
    case .store(.backup): .backup
    case .registry, .store, .restore: nil
    }
  }
}
