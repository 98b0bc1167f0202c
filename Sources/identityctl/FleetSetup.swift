import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// `fleet setup`: names a broker to the service, has the service try the broker, and enables the unit.
extension Program {
  /// The unit of the service, of the system and of a user.
  private static let fleetUnit = "identity-fleet.service"
  /// The program of the service, which judges its configuration.
  private static let fleetProgram = "/usr/sbin/identity-fleet"
  /// The longest waits for the service manager and for a trial of all brokers, in microseconds.
  private static let (managerPatience, trialPatience): (UInt64, UInt64) = (120_000_000, 90_000_000)

  /// Sets the service up, and makes or joins an account if the options tell so.
  static func setUpFleet(_ line: CommandLine, _ format: UUIDFormat) throws -> Int32 {
    guard line.words.count == 3 else {
      throw CommandLine.UsageError("'fleet setup' takes one BROKER, such as mqtts://USER@HOST")
    }
    guard line.options["socket"] == nil else {
      throw CommandLine.UsageError("'--socket' cannot be combined with 'fleet setup', which starts the service")
    }
    let isOwn = line.options["user"] != nil
    guard isOwn || Accounts.ownUserID == 0 else {
      throw Ending(
        status: ErrorCode.denied.exitStatus, text: "'fleet setup' changes the system; run it as root, or with --user")
    }
    let membership = try membership(line)
    let broker = try BrokerAddress(line.words[2])
    var files = try BrokerFiles(isOwn: isOwn)
    defer { files.forgetFormer() }
    try PresentFile.obtainConsent(
      toReplace: files.configuration, unlessItBegins: BrokerFiles.head, as: "a file of 'fleet setup'", line)
    var secret = try password(for: broker, isTaken: files.takesPassword, line)
    defer { secret?.wipe() }
    let wasActive = try isRunning(isOwn)
    let outcome = try SignalWatch.hold(SignalWatch.ending) { hasCome in
      do {
        try withFileFailures { try files.write(broker, authorities: line.options["ca-file"], secret) }
        let outcome = try tryBroker(broker, line, hasCome)
        guard !hasCome() else { throw interruption }
        return outcome
      } catch {
        try putBack(files, wasActive, isOwn, isHurried: hasCome())
        throw error
      }
    }
    try manage(["enable", "--quiet"], isOwn)
    if line.options["json"] == nil, line.options["quiet"] == nil {
      tell("\(outcome.sentence(about: broker))\nThe configuration is \(files.configuration).")
    }
    if let membership {
      let status = try askFleet(membership) ?? ExitStatus.success
      if status == ExitStatus.success { tellNext(after: membership.words[1], broker, line) }
      return status
    }
    guard line.options["json"] == nil else {
      return try show(outcome.answer(files.configuration), to: line.words, line, format)
    }
    tellNext(after: nil, broker, line)
    return ExitStatus.success
  }

  /// A signal that ends this process has come.
  private static var interruption: Ending { Ending(status: ErrorCode.unavailable.exitStatus, text: "interrupted") }

  /// Puts the former files back, and has the service go on with them.
  ///
  /// - Parameter isHurried: whether a signal ends this process afterwards, so that nothing else tells the outcome.
  private static func putBack(
    _ files: borrowing BrokerFiles, _ wasActive: Bool, _ isOwn: Bool, isHurried: Bool
  ) throws {
    let change = wasActive ? "restart" : "stop"
    try? manage(["reset-failed"], isOwn)
    guard isHurried else {
      try withFileFailures { try files.putBack() }
      try? manage([change], isOwn)
      return
    }
    do {
      try withFileFailures { try files.putBack() }
      try manage([change, "--no-block"], isOwn)
      complain("interrupted; the former configuration is in force again", nil)
    } catch {
      complain("interrupted, and the former configuration is not back: \(error)", nil)
    }
  }

  // MARK: The account

  /// Returns the command that makes or joins an account, as the options tell; nil if they do not.
  private static func membership(_ line: CommandLine) throws(CommandLine.UsageError) -> CommandLine? {
    var next = line
    let given = ["create", "join", "file"].filter { line.options[$0] != nil }
    guard given.count < 2 else {
      throw CommandLine.UsageError("'--\(given[0])' cannot be combined with '--\(given[1])'")
    }
    if line.options["join"] == "-", line.options["password-file"] == "-" {
      throw CommandLine.UsageError("the code and the password cannot both be on standard input")
    }
    switch given.first {
    case "create"?: next.words = ["account", "create", line.options["create"] ?? ""]
    case "join"?: next.words = ["account", "join", line.options["join"] ?? ""]
    case "file"?: next.words = ["account", "join"]
    default: return nil
    }
    return next
  }

  /// Tells the next step.
  private static func tellNext(after command: String?, _ broker: BrokerAddress, _ line: CommandLine) {
    guard line.options["json"] == nil, line.options["quiet"] == nil else { return }
    let own = line.options["user"] == nil ? "" : "--user "
    let isForAccount = broker.user == BrokerAddress.accountUser
    switch command {
    case "create"? where isForAccount:
      tell(
        """
        Next, have the broker's admin enter the user and the password of
          identityctl \(own)fleet credentials
        Then connect with them, and invite other devices:
          systemctl \(own)reload identity-fleet
          identityctl \(own)account invite --file=invitation
        """)
    case "create"?: tell("Next, invite another device with\n  identityctl \(own)account invite")
    case nil:
      let code = isForAccount ? "--file=invitation" : "CODE"
      tell(
        """
        Next, make an account on the first device with
          identityctl \(own)account create NAME
        and on any other one, join the account with
          identityctl \(own)account join \(code)
        """)
    default: break
    }
  }

  private static func tell(_ text: String) { StandardStream.error.write("\(text)\n") }

  // MARK: The password

  /// Reads the password of the user at the broker; nil if the user has none.
  private static func password(
    for broker: BrokerAddress, isTaken: Bool, _ line: CommandLine
  ) throws -> [UInt8]? {
    guard broker.needsPassword, let user = broker.user else {
      guard line.options["password-file"] == nil else {
        throw CommandLine.UsageError("'--password-file' needs a user in BROKER, such as mqtts://USER@HOST")
      }
      return nil
    }
    guard isTaken else {
      throw CommandLine.UsageError(
        "the service of a user has no password at a broker; use the user 'account', or a broker without users")
    }
    try ProcessGuard.forbidDumps()
    var password: [UInt8]
    if let path = line.options["password-file"] {
      password = try bytes(of: path, limit: BrokerFiles.longestPassword + 1)
      if password.last == UInt8(ascii: "\n") { password.removeLast() }
      guard !password.isEmpty else { throw emptyInput(path, "the file has to contain the password") }
    } else {
      guard let terminal = Terminal() else {
        throw CommandLine.UsageError(
          "there is no terminal to ask for the password at; '--password-file=PATH' reads it from a file")
      }
      password = []
      // A growing array would leave copies in memory.
      password.reserveCapacity(BrokerFiles.longestPassword + 1)
      try terminal.readHidden("Password of \(WordEncoder.visible(user)) at the broker: ") { byte in
        if password.count <= BrokerFiles.longestPassword { password.append(byte) }
      }
    }
    guard password.count <= BrokerFiles.longestPassword else {
      password.wipe()
      throw CommandLine.UsageError("the password is longer than \(BrokerFiles.longestPassword) bytes")
    }
    guard !password.isEmpty else { throw CommandLine.UsageError("the password is empty, and nothing was changed") }
    return password
  }

  // MARK: The trial

  /// The outcome of a trial in which a broker has answered.
  private struct Trial {
    /// Whether the broker has let this device in; false if it can tell only once this device is in an account.
    let isTaken: Bool
    let reason: String?

    func sentence(about broker: BrokerAddress) -> String {
      isTaken
        ? "\(broker.url) has let this device in, and identity-fleet runs." : "identity-fleet runs: \(reason ?? "")."
    }

    func answer(_ configuration: String) -> DaemonConnection.Answer {
      var content = ReplyLine.Content()
      content.attributes = [
        .init(name: "outcome", value: Text(isTaken ? "taken" : "untried")),
        .init(name: "configuration", value: Text(configuration)),
      ]
      if let reason { content.attributes.append(.init(name: "reason", value: Text(reason))) }
      return .init(final: .ok(content))
    }
  }

  /// Starts the service with the present files, and has it try the brokers.
  ///
  /// - Throws: if no broker lets this device in, although one could.
  private static func tryBroker(_ broker: BrokerAddress, _ line: CommandLine, _ hasCome: () -> Bool) throws -> Trial {
    let isOwn = line.options["user"] != nil
    try checkConfiguration(isOwn)
    guard !hasCome() else { throw interruption }
    // Attempts that follow each other would reach the limit of starts (systemd.unit(5), StartLimitBurst=).
    try? manage(["reset-failed"], isOwn)
    try manage(["restart"], isOwn)
    let patience = try patience(line)
    var connection = try connectToFleet(line, patience)
    var answer = try connection.ask(RequestLine(words: ["fleet", "try"]), patience)
    let end = Clock.monotonicMicroseconds + trialPatience
    while case .ok = answer.final, answer.rows.contains(where: { $0["outcome"] == "trying" }),
      Clock.monotonicMicroseconds < end
    {
      guard !hasCome() else { throw interruption }
      _ = try TimedWait.wait(for: nil, until: Clock.monotonicMicroseconds + FleetProgress.pause)
      answer = try connection.ask(RequestLine(words: ["fleet", "tried"]), patience)
    }
    if case .error(let code, let text) = answer.final {
      throw Ending(status: status(of: code), text: "\(text); nothing was changed")
    }
    if answer.rows.contains(where: { $0["outcome"] == "taken" }) { return Trial(isTaken: true, reason: nil) }
    if let row = answer.rows.first(where: { $0["outcome"] == "untried" }) {
      return Trial(isTaken: false, reason: row["reason"].map { "\($0)" })
    }
    let reasons = answer.rows.map { row in
      var reason = "\(row["reason"] ?? "the broker does not answer")"
      while reason.hasSuffix(".") { reason.removeLast() }
      let isRefused = row["outcome"] == "refused"
      return "\(row["broker"] ?? ""): \(isRefused ? "the broker refuses the user or the password (\(reason))" : reason)"
    }
    throw Ending(
      status: ErrorCode.unavailable.exitStatus,
      text: "\(reasons.joined(separator: "; ")); the former configuration is in force again; correct BROKER, --ca-file "
        + "or the password, and repeat the command")
  }

  /// Has the service judge its configuration, which other files are a part of, too.
  private static func checkConfiguration(_ isOwn: Bool) throws {
    // The unit of a user reads its own file alone, and its service tells a fault in the journal.
    guard !isOwn else { return }
    let outcome = try run([fleetProgram, "--check-config"])
    guard outcome.status != 0 else { return }
    let text = String(decoding: outcome.output, as: UTF8.self)
    throw Ending(
      status: ExitStatus.fileFailed,
      text: "\(text.split(separator: "\n").last ?? "the configuration is refused"); nothing was changed")
  }

  // MARK: The service manager

  /// Has the service manager do something with the unit.
  private static func manage(_ words: [String], _ isOwn: Bool) throws {
    let options = isOwn ? ["--user"] : []
    let outcome = try run(["/usr/bin/systemctl"] + options + words + [fleetUnit])
    guard outcome.status != 0 else { return }
    let text = String(decoding: outcome.output, as: UTF8.self)
    throw Ending(
      status: ErrorCode.unavailable.exitStatus,
      text: "'systemctl \((options + words + [fleetUnit]).joined(separator: " "))' failed: "
        + "\(text.split(separator: "\n").joined(separator: " "))")
  }

  /// Whether the unit runs, or has a job: a former command may have left a restart on its way, in which the unit is
  /// inactive for a moment.
  private static func isRunning(_ isOwn: Bool) throws -> Bool {
    let options = isOwn ? ["--user"] : []
    let outcome = try run(
      ["/usr/bin/systemctl"] + options + ["show", "--property=ActiveState,Job", fleetUnit], reading: .standardOutput)
    return String(decoding: outcome.output, as: UTF8.self).split(separator: "\n").contains { line in
      !["ActiveState=inactive", "ActiveState=failed", "Job=", "Job=0"].contains(line)
    }
  }

  private static func run(
    _ command: [String], reading stream: ChildProcess.Stream = .standardError
  ) throws -> ChildProcess.Outcome {
    do throws(ChildProcess.Failure) {
      return try ChildProcess.run(
        command, reading: stream, passing: ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "HOME"],
        until: Clock.monotonicMicroseconds + managerPatience)
    } catch {
      throw Ending(status: ErrorCode.unavailable.exitStatus, text: "\(command[0]): \(error)")
    }
  }
}
