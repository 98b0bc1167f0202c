import ClientFormats
import ClientSecrets
import FleetSeal
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// The commands that the fleet's service carries out, at a socket of its own (identity-fleet(8)).
extension Program {
  /// The path of the service's socket, unless `IDENTITY_FLEET_SOCKET` or `--socket` names another one.
  private static let fleetSocket = "/run/identity-fleet/identity-fleet.sock"
  /// The user that the service runs as.
  private static let fleetUser = "identity-fleet"

  /// Sends a command to the service, and shows the answer.
  ///
  /// - Returns: nil for any other command.
  static func askFleet(_ line: CommandLine) throws -> Int32? {
    let name = VerbName(line.words).text
    guard let command = ClientCommand.all.first(where: { $0.words == name && $0.isForFleet }) else { return nil }
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    if name == "fleet setup" { return try setUpFleet(line, format) }
    if name == "fleet keygen" { return try makeKeys(line, format) }
    if name == "fleet keys" { return try writeFleetKeys(line, format) }
    if name == "fleet peers" { return try showPeers(line, format) }
    if name == "fleet status" {
      if let path = line.options["key"] { return try showReports(with: path, line, format) }
      guard line.options["stale"] == nil else { throw CommandLine.UsageError("option '--stale' requires '--key'") }
    }
    if name == "account invite" {
      return line.options["file"] == nil ? try inviteWithCode(line, format) : try invite(line, format)
    }
    if name == "account join", line.words.count > 2 { return try joinWithCode(line, format) }
    let consent = try Consent(to: line)
    var request = RequestLine(
      words: Command.withCanonicalUUIDs(line.words, of: name, command.operands, command.attributes))
    if name == "account join" { request = request.secret(try invitation(line)) }
    let patience = try patience(line)
    var connection = try connectToFleet(line, patience)
    try consent?.ask()
    let answer = try connection.ask(request, patience)
    guard case .ok(let content) = answer.final else { return try show(answer, to: line.words, line, format) }
    if name == "account join" {
      return try showMembership(answer, to: line.words, &connection, patience, line, format)
    }
    if name == "account create" { try awaitBroker(&connection, patience, line) }
    if content["pending"] == "yes" {
      complain(
        "the broker is not reached, so the other devices do not know it yet: this device leaves as soon as the broker is "
          + "reached, and 'identityctl fleet status' shows when", line)
    }
    if content["password"] == "replaced" {
      complain(
        "the account has another password at the broker, too: have the broker's admin enter that of 'identityctl fleet "
          + "credentials'. Until then, the devices use the former one, which a removed device knows", line)
    }
    return try show(answer, to: line.words, line, format)
  }

  /// The system's socket, or the user's own one if only that one exists, as for identityd.
  private static var usualFleetSocket: String {
    guard Accounts.ownUserID != 0, UnixSocket.identity(of: fleetSocket) == nil,
      let own = Environment["XDG_RUNTIME_DIR"].map({ "\($0)/identity-fleet/identity-fleet.sock" }),
      UnixSocket.identity(of: own) != nil
    else { return fleetSocket }
    return own
  }

  /// Connects with the service.
  static func connectToFleet(_ line: CommandLine, _ patience: Patience) throws -> DaemonConnection {
    let isOwn = line.options["user"] != nil
    let path =
      try isOwn
      ? "\(runtimeDirectory(line))/identity-fleet/identity-fleet.sock"
      : line.options["socket"] ?? Environment["IDENTITY_FLEET_SOCKET"] ?? usualFleetSocket
    let limit = patience.silence.map { Clock.monotonicMicroseconds + $0 }
    do throws(DaemonConnection.Failure) {
      return try DaemonConnection(to: DaemonSocket(path, user: fleetUser), Patience(until: limit))
    } catch {
      guard case .unreachable(let path, let code) = error else { throw error }
      let command = "systemctl \(isOwn ? "--user " : "")enable --now identity-fleet.service"
      throw Ending(
        status: ExitStatus.unreachable,
        text: "no identity-fleet at \(path) (\(SystemError.text(of: code))); run '\(command)'")
    }
  }

  // MARK: Files with invitations

  private static func invite(_ line: CommandLine, _ format: UUIDFormat) throws -> Int32 {
    let path = line.options["file"] ?? ""
    try ProcessGuard.forbidDumps()
    let file = try withFileFailures { try FileReplacement(of: path) }
    try PresentFile.obtainConsent(toReplace: path, unlessItBegins: Invitation.fileHead, as: "an invitation", line)
    guard line.options["no-passphrase"] == nil else {
      return try invite(line, format, file) { secret, text in
        secret.withBytes { Base64Text.append($0, to: &text) }
      }
    }
    let header = try BackupHeader()
    let key = try newKey(try passphraseSource(line), header, of: "invitation")
    return try invite(line, format, file) { secret, text in
      text += header.line
      let sealed = secret.withBytes { key.seal($0) }
      Base64Text.append(sealed.span, to: &text)
    }
  }

  /// Asks for an invitation, and writes it to a file that only this user can read.
  private static func invite(
    _ line: CommandLine, _ format: UUIDFormat, _ file: FileReplacement, _ append: (Secret, inout [UInt8]) -> Void
  ) throws -> Int32 {
    let patience = try patience(line)
    var connection = try connectToFleet(line, patience)
    let answer = try connection.exchange(RequestLine(words: line.words).takingSecret(), patience)
    if case .ok(let content) = answer.final {
      if content["password"] == "former" {
        complain(
          "the broker has a former password of the account, which the invited device may not know: first have the broker's "
            + "admin enter that of 'identityctl fleet credentials'", line)
      }
      guard let secret = answer.secret else {
        throw Ending(status: ExitStatus.brokenAnswer, text: "the service sent an invitation without its data")
      }
      var text: [UInt8] = []
      defer { text.wipe() }
      // A growing array would leave copies in memory.
      text.reserveCapacity(3 * secret.count + 1_024)
      text += Array(Invitation.fileHead.utf8)
      append(secret, &text)
      text.append(UInt8(ascii: "\n"))
      try withFileFailures {
        defer { file.discard() }
        let draft = try file.begin()
        try draft.writeAll(text)
        try file.finish(draft)
      }
    }
    return try show(.init(final: answer.final.withoutData), to: line.words, line, format)
  }

  /// Reads the invitation from the file that the options name.
  private static func invitation(_ line: CommandLine) throws -> Secret {
    guard let path = line.options["file"] else {
      throw CommandLine.UsageError("'account join' needs a CODE, or --file=PATH, the file with the invitation")
    }
    try ProcessGuard.forbidDumps()
    var text = try bytes(of: path, limit: Bound.fileLength)
    defer { text.wipe() }
    var lines = text.split(separator: UInt8(ascii: "\n")).map(Array.init)
    defer { for index in lines.indices { lines[index].wipe() } }
    let isNone = Ending(status: ExitStatus.fileFailed, text: "\(path) is not an invitation of identity-fleet")
    guard text.starts(with: Invitation.fileHead.utf8), (2...3).contains(lines.count), let last = lines.last,
      var bytes = Base64Text.decode(last.span)
    else { throw isNone }
    defer { bytes.wipe() }
    guard lines.count == 3 else { return Secret(bytes.span) }
    guard let header = try? BackupHeader(parsing: lines[1]) else { throw isNone }
    let keys = try keys(try passphraseSource(line), header, of: "invitation")
    guard var opened = keys.open(bytes) else {
      throw Ending(status: ExitStatus.fileFailed, text: "the passphrase is wrong, or \(path) was altered")
    }
    defer { opened.wipe() }
    return Secret(opened.span)
  }
}

extension ReplyLine {
  /// The line without the bytes of a secret, which were taken out of it.
  fileprivate var withoutData: ReplyLine {
    guard case .ok(var content) = self else { return self }
    content.attributes.removeAll { $0.name == "data" }
    return .ok(content)
  }
}
