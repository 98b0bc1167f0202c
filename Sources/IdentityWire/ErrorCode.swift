package import IdentityCore

/// The error codes of the protocol (identityd-protocol(7), section Errors). Programs depend on the
/// codes, so a code never changes.
package enum ErrorCode: String, CaseIterable, Sendable {
  case syntax
  case tooLong = "too-long"
  case unknownVerb = "unknown-verb"
  case badArgument = "bad-argument"
  case invalidUUID = "invalid-uuid"
  case denied
  case notFound = "not-found"
  case exists
  case conflict
  case limit
  case gone
  case busy
  case noSpace = "no-space"
  case readOnly = "read-only"
  case unavailable
  case `internal`
  case unknown

  /// The exit status of `identityctl` for this error code. The status is stable, and identityctl(1) lists it.
  package var exitStatus: Int32 {
    switch self {
    case .syntax: 10
    case .tooLong: 11
    case .unknownVerb: 12
    case .badArgument: 13
    case .invalidUUID: 14
    case .denied: 15
    case .notFound: 16
    case .exists: 17
    case .conflict: 18
    case .limit: 19
    case .gone: 20
    case .busy: 21
    case .noSpace: 22
    case .readOnly: 23
    case .unavailable: 24
    case .internal: 25
    case .unknown: 26
    }
  }
}

extension Refusal {
  /// The error code of the refusal. This property is the only mapping from refusals to error codes.
  package var code: ErrorCode {
    switch self {
    case .syntax: .syntax
    case .tooLong: .tooLong
    case .unknownVerb: .unknownVerb
    case .badArgument: .badArgument
    case .invalidUUID: .invalidUUID
    case .denied, .unattested, .foreign, .unprovenPlace, .noControlGroups, .orphaned: .denied
    case .notFound: .notFound
    case .exists: .exists
    case .conflict: .conflict
    case .limit: .limit
    case .gone, .anotherEpoch: .gone
    case .busy: .busy
    case .unavailable: .unavailable
    case .noSpace: .noSpace
    case .readOnly: .readOnly
    case .broken: .internal
    case .unknown: .unknown
    }
  }

  /// The human-readable text. Names in the text may contain control characters, which ``append(to:)`` escapes.
  package var text: String {
    switch self {
    case .syntax(let fault): fault.text
    case .tooLong(let limit): "a line has at most \(limit) bytes, including its line feed"
    case .unknownVerb(let words): "unknown verb \(quoted(words)); 'help' lists the verbs"
    case .badArgument(let verb, let fault): "\(verb): \(fault.text)"
    case .denied(let app, let userID, let grant): "\(app) (uid \(userID)) lacks \(grant)"
    case .unattested: "the kernel could not identify the client, which may have ended; connect again"
    case .foreign:
      "the client's process or user has no ID in the daemon's namespaces; run the client in these namespaces"
    case .unprovenPlace(let unit):
      "the client is in a control group below \(unit), where any name can be made; "
        + "run the client in a service, or its container in a scope of its own"
    case .noControlGroups:
      "no control groups are mounted on /sys/fs/cgroup where the daemon runs, so no client can be identified; "
        + "mount them ('identityctl check' shows the command)"
    case .orphaned: "the process that opened this connection has ended; connect again"
    case .invalidUUID(let value):
      "\(quoted(value)) is not a valid identifier; give a UUID that is neither all zeros nor all ones"
    case .notFound(let what): what
    case .exists(let what): what
    case .conflict(let why): why
    case .limit(let why): why
    case .gone(let since, let oldest): "some events after \(since) were deleted; use since=\(oldest) or later"
    case .anotherEpoch(let epoch):
      "the sequence numbers began anew with epoch \(epoch); read the current values, then subscribe without since="
    case .busy(let why): why
    case .unavailable(let why): why
    case .noSpace: "the disk is full and nothing was changed; free space, then repeat the request"
    case .readOnly(let why): why
    case .broken(let why): why
    case .unknown(let why): why
    }
  }

  /// Appends the line `ERR code text` with its LF.
  package func append(to output: inout [UInt8]) {
    output.append(contentsOf: "ERR \(code.rawValue) \(lineText)\n".utf8)
  }

  /// The text on one line: as a JSON string if a name in the text contains control characters, otherwise unchanged.
  private var lineText: String {
    let text = text
    return text.unicodeScalars.contains(where: WordEncoder.isControl) ? WordEncoder.quoted(text) : text
  }
}

extension ReplacementFault {
  /// The fault as the log and `status` have it.
  package var text: String { "\(file): Replaces=\(previous): \(refusal.text)" }
}

extension SyntaxFault {
  var text: String {
    switch self {
    case .controlCharacter: "the line contains a control character; write it as an escape in a JSON string"
    case .nul:
      "the line contains a NUL; a line ends with a line feed, because identityd speaks neither varlink nor JSON-RPC"
    case .invalidUTF8: "the line is not valid UTF-8"
    case .brokenQuote: "misplaced quote or backslash; write the whole word or the whole value as one JSON string"
    case .invalidEscape: "a JSON string contains an invalid escape, a lone surrogate or \\u0000"
    case .emptyValue: "a value is empty; write it as \"\""
    case .tooManyWords: "a line has at most \(Bound.wordsPerLine) words"
    case .noVerb: "the line has no verb"
    case .json:
      "this is a JSON object, as in varlink and JSON-RPC, but identityd speaks the protocol of identityd-protocol(7); the connection is closed"
    case .http:
      "this is an HTTP request, but identityd speaks the protocol of identityd-protocol(7); the connection is closed"
    }
  }
}

extension ArgumentFault {
  var text: String {
    switch self {
    case .missingOperand(let name): "\(name) is missing"
    case .missingAttribute(let name): "\(name)= is missing"
    case .unexpectedOperand(let value): "unexpected word \(quoted(value))"
    case .unknownAttribute(let name): "unknown attribute \(quoted(name))"
    case .unexpectedWord(let usage): "unexpected word; usage: \(usage)"
    case .repeatedAttribute(let name): "\(quoted(name)) is given twice"
    case .notAllowed(let name, let value, let allowed): "\(name) cannot be \(quoted(value)); allowed: \(allowed)"
    case .notBase64(let name): "\(name) is not Base64 (RFC 4648, section 4)"
    case .combination(let what): what
    }
  }
}

/// Returns a client's own words for an error text: quoted, escaped, and cut to ``Bound/quotedBytes``.
private func quoted(_ text: Text) -> String {
  var bytes: [UInt8] = []
  let isCut = text.bytes.count > Bound.quotedBytes
  WordEncoder.append(quoted: Array(text.bytes.prefix(Bound.quotedBytes)), to: &bytes)
  return String(decoding: bytes, as: UTF8.self) + (isCut ? "…" : "")
}
