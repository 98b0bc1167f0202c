import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// The credentials of services, which are items with names of their own (identityd-protocol(7), CREDENTIALS OF SERVICES).
extension Program {
  /// Carries out a command about credentials.
  ///
  /// - Returns: nil for any other command.
  static func manageCredentials(_ line: CommandLine) throws -> Int32? {
    switch VerbName(line.words).both {
    case "credential put": try putCredential(line)
    case "credential list": try listCredentials(line)
    case "credential delete": try deleteCredential(line)
    default: nil
    }
  }

  private static func putCredential(_ line: CommandLine) throws -> Int32 {
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    let (target, name) = try target(line)
    let request = try request(["item", "put"] + target.condition(name: name), line)
    let patience = try patience(line)
    let socket = try socket(line)
    var connection = try connect(line, patience)
    var answer = try connection.ask(request, patience)
    if case .ok(let content) = answer.final {
      var shown = ReplyLine.Content()
      // systemd takes % for a specifier (systemd.unit(5)).
      let escaped = "\(name):\(socket.path)".split(separator: "%", omittingEmptySubsequences: false)
      shown.words = [Text("LoadCredential=\(escaped.joined(separator: "%%"))")]
      shown.attributes = [.init(name: "outcome", value: content.words.first ?? "")]
      answer = .init(final: .ok(shown))
      for note in target.notes(isReplaced: content.words.first == "replaced") { complain(note, line) }
    }
    return try show(answer, to: line.words, line, format)
  }

  private static func listCredentials(_ line: CommandLine) throws -> Int32 {
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    let words = try CredentialWords(line, most: 1)
    let target = try words.operands.first.map { try CredentialTarget($0, words.owner, line) }
    let request = RequestLine(words: ["item", "find", "service=credential", target?.group ?? "group=*"])
    let patience = try patience(line)
    var connection = try connect(line, patience)
    let answer = try connection.ask(request, patience)
    let status = status(of: answer.final)
    guard status == ExitStatus.success || status == ErrorCode.notFound.exitStatus else {
      return try show(answer, to: line.words, line, format)
    }
    let rows = answer.rows.compactMap(row(ofCredential:)).filter { row in
      words.owner.map { row["owner"] == Text("\($0)") } ?? true
    }
    var end = ReplyLine.Content()
    end.words = [Text("\(rows.count)")]
    return try show(.init(rows: rows, final: .ok(end)), to: line.words, line, format)
  }

  /// Returns the row of an item; nil if the item is not a credential of a service.
  private static func row(ofCredential item: ReplyLine.Content) -> ReplyLine.Content? {
    guard let (unit, owner) = item["group"].flatMap({ CredentialRequest.unit(of: $0) }), let name = item["account"]
    else { return nil }
    var row = ReplyLine.Content()
    row.words = [unit, name]
    if let owner { row.attributes.append(.init(name: "owner", value: Text("\(owner)"))) }
    row.attributes += item.attributes.filter { ["created", "modified", "state", "reason"].contains($0.name) }
    return row
  }

  private static func deleteCredential(_ line: CommandLine) throws -> Int32 {
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    let (target, name) = try target(line)
    let request = RequestLine(words: ["item", "delete"] + target.condition(name: name))
    let patience = try patience(line)
    var connection = try connect(line, patience)
    return try show(try connection.ask(request, patience), to: line.words, line, format)
  }

  /// Returns the unit and the name that a command names.
  private static func target(_ line: CommandLine) throws -> (CredentialTarget, name: String) {
    let words = try CredentialWords(line, most: 2)
    guard words.operands.count == 2 else {
      throw CommandLine.UsageError("'\(line.words.prefix(2).joined(separator: " "))' needs UNIT and NAME")
    }
    let target = try CredentialTarget(words.operands[0], words.owner, line)
    try target.check(name: words.operands[1])
    return (target, words.operands[1])
  }
}

/// The words of a command about credentials, after its own two.
private struct CredentialWords {
  /// The unit and the name. Either may contain `=`.
  let operands: [String]
  /// The user of `owner=`.
  let owner: UInt32?

  init(_ line: CommandLine, most: Int) throws {
    let rest = line.words.dropFirst(2)
    let given = rest.filter { $0.lowercased().hasPrefix("owner=") }
    operands = rest.filter { !given.contains($0) }
    guard operands.count <= most, given.count < 2 else {
      throw CommandLine.UsageError("unexpected word '\((operands.dropFirst(most) + given.dropFirst()).first ?? "")'")
    }
    owner = try given.first.map { try Self.user(String($0.dropFirst("owner=".count))) }
  }

  /// Returns the number of a user, which may be given by name.
  private static func user(_ text: String) throws -> UInt32 {
    if let number = UInt32(text) { return number }
    guard let number = try Accounts.userID(named: text) else {
      throw CommandLine.UsageError("there is no user '\(text)'")
    }
    return number
  }
}

/// The service that a command about credentials names.
struct CredentialTarget {
  /// The canonical name of the unit.
  let unit: String
  /// The user whose manager runs the unit; nil for the system's manager.
  let owner: UInt32?
  /// The properties of the unit, as the service manager of the client's machine has them; empty if it cannot be asked.
  private let properties: [String: String]

  /// The greatest length of a unit's and a credential's name together, in bytes: systemd gives both to its socket as a
  /// name of at most 108 bytes (unix(7)), with up to 24 others.
  private static let mostBytes = 84
  /// How long systemctl(1) may take, in microseconds.
  private static let patience: UInt64 = 5_000_000

  /// Asks the service manager for the canonical name of a unit.
  ///
  /// - Parameters:
  ///   - operand: the unit as given.
  ///   - given: the user of `owner=`.
  /// - Throws: a usage error for a name that is not the name of a service.
  init(_ operand: String, _ given: UInt32?, _ line: CommandLine) throws {
    // systemctl(1) takes some other characters as a pattern.
    guard operand.utf8.allSatisfy(Self.isOfName) else { throw Self.isNoService(operand) }
    let isOwn = line.options["user"] != nil
    owner = given ?? (isOwn ? Accounts.ownUserID : nil)
    properties = owner == nil ? Self.ask([], operand) : isOwn && given == nil ? Self.ask(["--user"], operand) : [:]
    let written = properties["Id"] ?? (operand.contains(".") ? operand : "\(operand).service")
    unit = written
    guard written.utf8.allSatisfy(Self.isOfName), written.hasSuffix(".service"), !written.hasSuffix("@.service"),
      !written.hasPrefix("@"), written != ".service"
    else { throw Self.isNoService(operand) }
    guard !CredentialRequest.isOwn(Text(written)) else {
      throw CommandLine.UsageError("\(written) belongs to identityd, which gives no credentials to its own units")
    }
  }

  /// Refuses a name that systemd or identityd would refuse in `LoadCredential=` of this unit.
  func check(name: String) throws(CommandLine.UsageError) {
    guard !name.isEmpty, name != ".", name != "..", name.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
      !name.contains("/"), !name.contains(":")
    else {
      throw CommandLine.UsageError(
        "'\(name)' is not the name of a credential: visible ASCII without '/' and ':', and without spaces")
    }
    guard !name.hasPrefix("\(CredentialRequest.reservedBeginning)") else {
      throw CommandLine.UsageError("'\(name)' cannot be stored: names that begin with 'identityd.' are reserved")
    }
    guard name.utf8.count + unit.utf8.count <= Self.mostBytes else {
      throw CommandLine.UsageError(
        "the names of unit and credential have \(name.utf8.count + unit.utf8.count) bytes together, and systemd can connect with \(Self.mostBytes) at most"
      )
    }
  }

  /// The access group of the unit's credentials, as an attribute.
  var group: String { "group=\(CredentialRequest.group(of: Text(unit), owner: owner))" }

  /// Returns the attributes that name the item of a credential.
  func condition(name: String) -> [String] {
    ["service=\(CredentialRequest.service)", "account=\(name)", group]
  }

  /// Returns notes about the unit for a person who has stored a credential.
  ///
  /// - Parameter isReplaced: whether the credential has replaced another one.
  func notes(isReplaced: Bool) -> [String] {
    var notes: [String] = []
    let systemctl = owner == nil ? "systemctl" : "systemctl --user"
    if properties["LoadState"] == "not-found" { notes.append("there is no unit \(unit) yet") }
    if properties["DefaultDependencies"] == "no", owner == nil {
      notes.append("\(unit) may start before identityd; add After=identityd.service to its [Unit] section")
    }
    if isReplaced, properties["ActiveState"] == "active" {
      notes.append("\(unit) runs with the former secret; '\(systemctl) restart \(unit)' gives it the new one")
    }
    return notes
  }

  /// Whether a byte may be in the name of a unit (systemd.unit(5)).
  private static func isOfName(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
      || ":-_.\\@".utf8.contains(byte)
  }

  private static func isNoService(_ operand: String) -> CommandLine.UsageError {
    CommandLine.UsageError(
      "'\(operand)' is not the name of a service, such as web.service or, for a template, web@one.service")
  }

  /// Asks the service manager about a unit.
  ///
  /// - Returns: the properties by name; empty if there is no service manager.
  private static func ask(_ options: [String], _ unit: String) -> [String: String] {
    let command =
      ["/usr/bin/systemctl"] + options + [
        "show", "--property=Id,LoadState,ActiveState,DefaultDependencies", "--", unit,
      ]
    let outcome = try? ChildProcess.run(
      command, passing: ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"],
      until: Clock.monotonicMicroseconds + patience)
    guard let outcome, outcome.status == 0 else { return [:] }
    var properties: [String: String] = [:]
    for line in String(decoding: outcome.output, as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts.count == 2 { properties[String(parts[0])] = String(parts[1]) }
    }
    return properties
  }
}
