/// Why a request is not carried out. Its direct caller answers it; nothing else goes wrong with it.
package enum Refusal: Error, Equatable, Sendable {
  /// The line does not parse.
  case syntax(SyntaxFault)
  /// The line is over the limit, in bytes.
  case tooLong(limit: Int)
  /// No verb begins with these words.
  case unknownVerb(Text)
  /// An operand or attribute of this verb is wrong.
  case badArgument(verb: String, ArgumentFault)
  /// Not a UUID where one is needed, or one that is nobody's identifier.
  case invalidUUID(Text)
  /// The peer may not do that.
  case denied(app: Text, userID: UInt32, grant: String)
  /// The peer was gone before the kernel could say who it was.
  case unattested
  /// The peer is of a namespace whose users or processes have no number here, so it cannot be told from others.
  case foreign
  /// The process that connected has ended: whoever has the connection now is not it.
  case orphaned
  /// Nothing matches.
  case notFound(String)
  /// An item with that key is there already.
  case exists(String)
  /// The state does not allow it.
  case conflict(String)
  /// A quota is used up.
  case limit(String)
  /// Events after this number are no longer kept; the oldest kept one follows `oldest`.
  case gone(since: Int64, oldest: Int64)
  /// The number is of another epoch than the store's, which is this one.
  case anotherEpoch(Text)
  /// Nobody can say whether the change is in force.
  case unknown(String)
  /// Too many connections.
  case busy(String)
  /// A needed part is not there.
  case unavailable(String)
  /// The disk is full, and nothing was changed.
  case noSpace
  /// The store cannot be written now; reads go on.
  case readOnly(String)
  /// A fault of the daemon or its store; the journal has it.
  case broken(String)
}

/// Why a line does not parse.
package enum SyntaxFault: Error, Equatable, Sendable {
  case controlCharacter
  case invalidUTF8
  case brokenQuote
  case invalidEscape
  case emptyValue
  case tooManyWords
  case noVerb
  /// A line of HTTP.
  case http
}

/// What is wrong with an operand or attribute.
package enum ArgumentFault: Equatable, Sendable {
  case missingOperand(String)
  case missingAttribute(String)
  case unexpectedOperand(Text)
  case unknownAttribute(Text)
  /// A word too many for a verb that takes a secret: it may be that secret, so it is not repeated.
  case unexpectedWord(usage: String)
  case repeatedAttribute(Text)
  case notAllowed(name: String, value: Text, allowed: String)
  /// The value is a secret, so it is not repeated.
  case notBase64(name: String)
  /// Each may be fine by itself, but they do not go together, or one of them is needed.
  case combination(String)
}
