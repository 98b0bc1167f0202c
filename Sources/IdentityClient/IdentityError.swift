import IdentityCore
import IdentityWire
import LinuxSystem

/// Why a request has no answer, or events come no more.
public enum IdentityError: Error, Hashable, Sendable {
  /// The daemon said no. The code is for programs and never changes; the text is for people and may.
  case refused(Code, String)
  /// Nobody listens at this path, or what it takes to connect cannot be had.
  case unreachable(path: String, reason: String)
  /// The daemon at this path may be another user's, for this reason. Nothing was sent; see ``DaemonTrust``.
  case untrusted(path: String, reason: String)
  /// The connection ended before the answer. Whether a change was made is not known.
  ///
  /// A question that was under way has been asked once more before this is said.
  case connectionLost
  /// What came is not an answer to the request.
  case brokenAnswer(String)
  /// The answer did not come in time. Whether a change was made is not known.
  case timedOut
  /// The task was cancelled. Whether a change was made is not known where the request had been sent.
  case cancelled

  /// A code of the protocol (identityd-protocol(7)). A later daemon may have others than those named here.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// As the protocol has it: `not-found`.
    public let rawValue: String
    /// Takes a code of the protocol.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The code.
    public var description: String { rawValue }

    /// The line does not parse.
    public static let syntax = Code(rawValue: "syntax")
    /// The request is longer than a line may be.
    public static let tooLong = Code(rawValue: "too-long")
    /// There is no such verb.
    public static let unknownVerb = Code(rawValue: "unknown-verb")
    /// An operand or attribute is missing, unknown, given twice, or out of its range.
    public static let badArgument = Code(rawValue: "bad-argument")
    /// It is not a UUID, and one is needed.
    public static let invalidUUID = Code(rawValue: "invalid-uuid")
    /// The program may not do that; the text names who asked and the grant that is missing.
    public static let denied = Code(rawValue: "denied")
    /// Nothing matches.
    public static let notFound = Code(rawValue: "not-found")
    /// An item with that key is there already.
    public static let exists = Code(rawValue: "exists")
    /// The state does not allow it.
    public static let conflict = Code(rawValue: "conflict")
    /// A quota of the app or user is used up.
    public static let limit = Code(rawValue: "limit")
    /// Events from that sequence number are no longer kept, or the number is of another epoch.
    public static let gone = Code(rawValue: "gone")
    /// Too many connections of this user, or overloaded.
    public static let busy = Code(rawValue: "busy")
    /// The disk is full; nothing was changed.
    public static let noSpace = Code(rawValue: "no-space")
    /// The store cannot be written now; reads go on.
    public static let readOnly = Code(rawValue: "read-only")
    /// A needed part is not there yet.
    public static let unavailable = Code(rawValue: "unavailable")
    /// A fault of the daemon; it is in the journal.
    public static let `internal` = Code(rawValue: "internal")
    /// The disk failed at the end of the change. A restart of the daemon may find the change done, or not: ask for the value
    /// before the change is repeated.
    public static let unknown = Code(rawValue: "unknown")
  }

  /// Whether the same request may succeed a little later, and nothing was changed by this one.
  public var isWorthRetrying: Bool {
    switch self {
    case .refused(let code, _): [.busy, .noSpace, .readOnly, .unavailable].contains(code)
    case .unreachable: true
    case .untrusted, .connectionLost, .brokenAnswer, .timedOut, .cancelled: false
    }
  }
}

extension IdentityError: CustomStringConvertible {
  /// The cause, in one line. Invisible characters in the daemon's words are escaped.
  public var description: String { WordEncoder.visible(text) }

  private var text: String {
    switch self {
    case .refused(let code, let text): "\(text) (\(code))"
    case .unreachable(let path, let reason): "no identityd at \(path) (\(reason))"
    case .untrusted(let path, let reason): "nothing was sent to \(path): \(reason)"
    case .connectionLost: "the connection to identityd ended before the answer"
    case .brokenAnswer(let what): "identityd sent what is not an answer: \(what)"
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

  /// A refusal as it came.
  init(code: Text, text: Text) { self = .refused(Code(rawValue: "\(code)"), "\(text)") }
}
