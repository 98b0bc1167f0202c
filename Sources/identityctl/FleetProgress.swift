import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

/// The state of the fleet's service, as `fleet status` tells it.
struct FleetProgress {
  /// The pause between two questions for the state, in microseconds.
  static let pause: UInt64 = 200_000

  private let rows: [ReplyLine.Content]
  /// The state; nil while identityd does not answer, so that the service cannot tell.
  let state: FleetState?

  /// Asks the service.
  init(_ connection: inout DaemonConnection, _ patience: Patience) throws(DaemonConnection.Failure) {
    let answer = try connection.ask(RequestLine(words: ["fleet", "status"]), patience)
    rows = answer.rows
    if case .error = answer.final {
      state = nil
    } else {
      state = rows.lazy.compactMap { $0["state"] }.first.flatMap { FleetState(rawValue: "\($0)") }
    }
  }

  /// Returns the value of a row.
  subscript(name: Text) -> String? { rows.lazy.compactMap { $0[name] }.first.map { "\($0)" } }

  /// The reason why no broker has taken this device; nil if one has, or if none was tried yet.
  var obstacle: String? { state == .waiting || state == .refused ? self["reason"] : nil }
  /// Whether a broker has taken this device.
  var isConnected: Bool { state?.isConnected == true }
  /// Whether the list of the account's devices is read.
  var isListed: Bool { state == .live || state == .unpublished }
}

// Waits for the fleet's service, for a person who wants to know how it went.
extension Program {
  /// The longest wait for a broker after an account was made, and for the list after this device has joined, in
  /// microseconds.
  private static let (brokerPatience, listPatience): (UInt64, UInt64) = (5_000_000, 60_000_000)

  /// Waits until a broker has taken this device, which has made an account, and tells why none has.
  static func awaitBroker(
    _ connection: inout DaemonConnection, _ patience: Patience, _ line: CommandLine
  ) throws {
    let end = Clock.monotonicMicroseconds + brokerPatience
    while Clock.monotonicMicroseconds < end {
      let progress = try FleetProgress(&connection, patience)
      if progress.isConnected { return }
      if let obstacle = progress.obstacle {
        return complain(
          "the account is made, and no broker has taken this device: \(obstacle); see 'identityctl check'", line)
      }
      _ = try TimedWait.wait(for: nil, until: Clock.monotonicMicroseconds + FleetProgress.pause)
    }
    complain("the account is made, and no broker has answered yet; see 'identityctl fleet status'", line)
  }

  /// Tells why an invitation by code is of no use at present.
  static func warnOfSilence(
    _ connection: inout DaemonConnection, _ patience: Patience, _ line: CommandLine
  ) throws {
    let progress = try FleetProgress(&connection, patience)
    guard !progress.isListed else { return }
    let reason = progress.obstacle.map { ": \($0)" } ?? ""
    complain(
      "the broker has not taken this device yet, so nobody can use the code\(reason); see 'identityctl check'", line)
  }

  /// Waits until this device, which has joined an account, has read the list of the account's devices. Shows both.
  static func showMembership(
    _ answer: DaemonConnection.Answer, to words: [String], _ connection: inout DaemonConnection, _ patience: Patience,
    _ line: CommandLine, _ format: UUIDFormat
  ) throws -> Int32 {
    guard case .ok(var content) = answer.final else { return try show(answer, to: words, line, format) }
    if StandardStream.error.isTerminal, line.options["quiet"] == nil {
      StandardStream.error.write("Reading the list of the account's devices\n")
    }
    // A socket in the options is that of the service.
    let daemon = line.options["user"] == nil ? DaemonSocket(nil) : try socket(line)
    let end = Clock.monotonicMicroseconds + listPatience
    var (list, obstacle) = (DaemonConnection.Answer?.none, String?.none)
    repeat {
      let progress = try FleetProgress(&connection, patience)
      obstacle = progress.obstacle
      guard obstacle == nil else { break }
      if progress.isListed {
        do throws(DaemonConnection.Failure) {
          var identityd = try DaemonConnection(to: daemon, patience)
          list = try identityd.ask(RequestLine(words: ["devices"]), patience)
          break
        } catch {
          // identityd restarts, perhaps.
          obstacle = "\(error)"
        }
      }
      _ = try TimedWait.wait(for: nil, until: Clock.monotonicMicroseconds + FleetProgress.pause)
    } while Clock.monotonicMicroseconds < end
    guard let list else {
      let reason = obstacle.map { ": \($0)" } ?? ""
      complain(
        "this device has joined, and the list of the account's devices is not read yet\(reason); "
          + "see 'identityctl fleet status'", line)
      return try show(answer, to: words, line, format)
    }
    content.attributes.append(.init(name: "devices", value: Text("\(list.rows.count)")))
    guard line.options["json"] == nil, line.options["quiet"] == nil else {
      return try show(.init(final: .ok(content)), to: words, line, format)
    }
    let status = try show(answer, to: words, line, format)
    return status == ExitStatus.success ? try show(list, to: ["devices"], line, format) : status
  }
}
