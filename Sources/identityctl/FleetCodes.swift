import ClientFormats
import FleetSeal
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// Joining with a code. The client derives the key from the code, which takes more memory than the service has.
extension Program {
  /// The longest wait for the end of an attempt to join, in microseconds. The service ends it after a minute.
  private static let joinPatience: UInt64 = 90_000_000

  /// Invites a device with a code, and shows the code.
  static func inviteWithCode(_ line: CommandLine, _ format: UUIDFormat) throws -> Int32 {
    try refuseFileOptions(line, "account invite")
    let patience = try patience(line)
    var connection = try connectToFleet(line, patience)
    guard let code = JoinCode.random() else { throw noMemory }
    let answer = try connection.ask(
      RequestLine(words: line.words).secret(try meeting(of: code), as: "meeting"), patience)
    guard case .ok(var content) = answer.final else { return try show(answer, to: line.words, line, format) }
    // In JSON, the code is an attribute.
    if line.options["json"] == nil {
      content.words.insert(Text("\(code)"), at: 0)
    } else {
      content.attributes.insert(ReplyLine.Attribute(name: "code", value: Text("\(code)")), at: 0)
    }
    try warnOfSilence(&connection, patience, line)
    return try show(.init(final: .ok(content)), to: line.words, line, format)
  }

  /// Joins an account with a code, and waits for the end of the attempt.
  static func joinWithCode(_ line: CommandLine, _ format: UUIDFormat) throws -> Int32 {
    try refuseFileOptions(line, "account join")
    guard line.options["file"] == nil, line.words.count == 3 else {
      throw CommandLine.UsageError("'account join' takes either one CODE or --file=PATH")
    }
    let code: JoinCode
    do {
      code = try JoinCode(parsing: line.words[2] == "-" ? try codeFromInput() : line.words[2])
    } catch let error as JoinCode.Fault {
      throw CommandLine.UsageError("\(error)")
    }
    let patience = try patience(line)
    var connection = try connectToFleet(line, patience)
    let words = Array(line.words.prefix(2))
    let answer = try connection.ask(
      RequestLine(words: words).secret(try meeting(of: code), as: "meeting"), patience)
    guard case .ok = answer.final else { return try show(answer, to: words, line, format) }
    let end = Clock.monotonicMicroseconds + joinPatience
    var told: String?
    while Clock.monotonicMicroseconds < end {
      let progress = try FleetProgress(&connection, patience)
      switch progress.state == nil ? "trying" : progress["join"] {
      case "trying"?:
        let trouble = progress.obstacle.map { "no broker has taken this device: \($0)" } ?? progress["join-reason"]
        if let trouble, trouble != told { complain("still trying: \(trouble)", line) }
        told = trouble ?? told
        _ = try TimedWait.wait(for: nil, until: Clock.monotonicMicroseconds + FleetProgress.pause)
      case "confirmed"?: return try showMembership(answer, to: words, &connection, patience, line, format)
      case "unconfirmed"?:
        complain("this device has joined, but the inviting one has not confirmed it yet", line)
        return try showMembership(answer, to: words, &connection, patience, line, format)
      case let reason:
        return try show(
          .init(final: .error(code: Text(ErrorCode.conflict.rawValue), text: Text(reason ?? "the attempt has ended"))),
          to: words, line, format)
      }
    }
    throw Ending(
      status: ExitStatus.timedOut, text: "the service is still trying to join; see 'identityctl fleet status'")
  }

  /// The options for a file make no sense with a code.
  private static func refuseFileOptions(_ line: CommandLine, _ name: String) throws(CommandLine.UsageError) {
    for option in ["passphrase-fd", "no-passphrase"] where line.options[option] != nil {
      throw CommandLine.UsageError("'\(name)' takes --\(option) only with --file=PATH")
    }
  }

  /// Reads a code from standard input. Every user can read the command line of a process.
  private static func codeFromInput() throws -> String {
    var bytes = try bytes(of: "-", limit: 64)
    defer { bytes.wipe() }
    return String(decoding: bytes.filter { $0 > UInt8(ascii: " ") }, as: UTF8.self)
  }

  private static func meeting(of code: JoinCode) throws -> Secret {
    try ProcessGuard.forbidDumps()
    guard var bytes = code.stretched() else { throw noMemory }
    defer { bytes.wipe() }
    return Secret(bytes.span)
  }

  private static var noMemory: Ending {
    Ending(status: ErrorCode.unavailable.exitStatus, text: "there is not enough memory for a code, which takes 256 MiB")
  }
}
