import IdentityCore
import IdentityWire
import LinuxSystem

/// The reason why a request failed, or why following events ended.
public enum IdentityError: Error, Hashable, Sendable {
  /// The daemon refused the request. The code is stable and for programs; the text is for people and may change.
  ///
  /// Nothing was changed, unless the code is ``IdentityError/Code/unknown``.
  case refused(Code, String)
  /// No daemon listens at this path, or the client lacks a resource to connect.
  case unreachable(path: String, reason: String)
  /// The daemon at this path may belong to another user, for this reason. Nothing was sent; see ``DaemonTrust``.
  case untrusted(path: String, reason: String)
  /// The connection ended before the answer. A change may or may not have been made.
  ///
  /// A request that only reads has already been repeated once when this error is thrown.
  case connectionLost
  /// The daemon sent something that is not an answer to the request. A change may or may not have been made.
  case brokenAnswer(String)
  /// The answer did not arrive within the time limit. A change may or may not have been made.
  case timedOut
  /// The task was cancelled. If the request was sent before, a change may or may not have been made.
  case cancelled

  /// An error code of the protocol (identityd-protocol(7), Errors). A later daemon may have codes that are
  /// not named here.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The code as in the protocol, such as `not-found`.
    public let rawValue: String
    /// Creates a code from its form in the protocol.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The code as in the protocol.
    public var description: String { rawValue }

    /// The request line is malformed.
    public static let syntax = Code(rawValue: "syntax")
    /// The request line is longer than 98,304 bytes.
    public static let tooLong = Code(rawValue: "too-long")
    /// The daemon does not know the verb.
    public static let unknownVerb = Code(rawValue: "unknown-verb")
    /// An operand or attribute is missing, unknown, given twice, or out of its range.
    public static let badArgument = Code(rawValue: "bad-argument")
    /// A value that must be a UUID is not one.
    public static let invalidUUID = Code(rawValue: "invalid-uuid")
    /// The program lacks a right. The text names the caller and the missing grant.
    public static let denied = Code(rawValue: "denied")
    /// Nothing matches: no such app is installed, or there is no such device, identifier, item, version or token.
    public static let notFound = Code(rawValue: "not-found")
    /// An item with this key exists.
    public static let exists = Code(rawValue: "exists")
    /// The current state does not allow the request.
    public static let conflict = Code(rawValue: "conflict")
    /// A quota of the app or user is used up, or a value is too long.
    public static let limit = Code(rawValue: "limit")
    /// The events after the requested sequence number are no longer kept, or the number belongs to another epoch.
    public static let gone = Code(rawValue: "gone")
    /// The daemon has too many connections, of this user or in total, or is short of file descriptors or memory.
    public static let busy = Code(rawValue: "busy")
    /// The disk is full. Nothing was changed.
    public static let noSpace = Code(rawValue: "no-space")
    /// The store cannot be written now. Reads still work.
    public static let readOnly = Code(rawValue: "read-only")
    /// A required part is missing: for example, the store is sealed, a key is missing, or startup has not finished.
    public static let unavailable = Code(rawValue: "unavailable")
    /// The daemon or its store has a fault, which is in the journal.
    public static let `internal` = Code(rawValue: "internal")
    /// The disk failed at the end of the change.
    ///
    /// After a restart of the daemon the change may or may not be present. Read the value before repeating the change.
    public static let unknown = Code(rawValue: "unknown")
  }

  /// Whether the request changed nothing and may succeed if it is repeated a little later.
  public var isWorthRetrying: Bool {
    switch self {
    case .refused(let code, _): [.busy, .noSpace, .readOnly, .unavailable].contains(code)
    case .unreachable: true
    case .untrusted, .connectionLost, .brokenAnswer, .timedOut, .cancelled: false
    }
  }
}

extension IdentityError: CustomStringConvertible {
  /// The cause, in one line. Invisible characters in the daemon's text are escaped.
  public var description: String { WordEncoder.visible(text) }

  private var text: String {
    switch self {
    case .refused(let code, let text): "\(text) (\(code))"
    case .unreachable(let path, let reason): "no identityd at \(path) (\(reason))"
    case .untrusted(let path, let reason): "nothing was sent to \(path): \(reason)"
    case .connectionLost: "the connection to identityd ended before the answer"
    case .brokenAnswer(let what): "identityd sent an invalid answer: \(what)"
    case .timedOut: "identityd did not answer in time"
    case .cancelled: "the request was cancelled"
    }
  }
}

extension IdentityError {
  init(_ failure: DaemonConnection.Failure) {
    self =
      switch failure {
      case .unreachable(let path, let code): .unreachable(path: path, reason: SystemError.text(of: code))
      case .untrusted(let path, let fault): .untrusted(path: path, reason: "\(fault)")
      case .busy(let why): .refused(.busy, why)
      case .closed: .connectionLost
      case .malformed: .brokenAnswer("\(failure)")
      case .timeUp: .timedOut
      case .outputClosed, .interrupted: .cancelled
      }
  }

  init(code: Text, text: Text) { self = .refused(Code(rawValue: "\(code)"), "\(text)") }
}
