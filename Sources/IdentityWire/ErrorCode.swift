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
    case .denied, .unattested, .foreign, .orphaned: .denied
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
    case .tooLong(let limit): "a line is at most \(limit) bytes, its end included"
    case .unknownVerb(let words): "\(quoted(words)) is no verb; 'help' lists them"
    case .badArgument(let verb, let fault): "\(verb): \(fault.text)"
    case .denied(let app, let userID, let grant): "\(app) (uid \(userID)) lacks \(grant)"
    case .unattested: "the peer was gone before the kernel could say who it is"
    case .foreign: "the peer is in a namespace that cannot be seen from the daemon's"
    case .orphaned: "the process that connected has ended"
    case .invalidUUID(let value):
      "\(quoted(value)) cannot be an identifier: a UUID other than all zeros and all ones can"
    case .notFound(let what): what
    case .exists(let what): what
    case .conflict(let why): why
    case .limit(let why): why
    case .gone(let since, let oldest): "events after \(since) are not all kept; those after \(oldest) are"
    case .anotherEpoch(let epoch):
      "the events are of epoch \(epoch) and were numbered anew; read the current values, then subscribe without since="
    case .busy(let why): why
    case .unavailable(let why): why
    case .noSpace: "the disk is full; nothing was changed"
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

extension SyntaxFault {
  var text: String {
    switch self {
    case .controlCharacter: "a control character has to be written as an escape in a JSON string"
    case .invalidUTF8: "the line is not valid UTF-8"
    case .brokenQuote: "a quote or backslash stands in a bare word, or a JSON string does not end its word"
    case .invalidEscape: "a JSON string has an escape that is none, a lone surrogate, or \\u0000"
    case .emptyValue: "an empty value is written \"\""
    case .tooManyWords: "a line has at most \(Bound.wordsPerLine) words"
    case .noVerb: "the line has no verb"
    case .http:
      "this is HTTP, and here a protocol of its own is spoken, see identityd-protocol(7); the connection is closed"
    }
  }
}

extension ArgumentFault {
  var text: String {
    switch self {
    case .missingOperand(let name): "\(name) is missing"
    case .missingAttribute(let name): "\(name)= is missing"
    case .unexpectedOperand(let value): "\(quoted(value)) is one word too many"
    case .unknownAttribute(let name): "there is no attribute \(quoted(name))"
    case .unexpectedWord(let usage): "there is a word that does not belong there; usage: \(usage)"
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
