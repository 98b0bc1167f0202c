/// The reason why a request is not carried out. The direct caller answers with it, and the refusal has no other effect.
package enum Refusal: Error, Equatable, Sendable {
  /// The line does not parse.
  case syntax(SyntaxFault)
  /// The line is longer than the limit, in bytes.
  case tooLong(limit: Int)
  /// No verb begins with these words.
  case unknownVerb(Text)
  /// An operand or attribute of the verb is wrong.
  case badArgument(verb: String, ArgumentFault)
  /// The text is not a UUID although one is needed, or is a UUID that cannot be an identifier.
  case invalidUUID(Text)
  /// The peer lacks the right for the request.
  case denied(app: Text, userID: UInt32, grant: String)
  /// The kernel could not tell who the peer is, for example because the peer was gone too early.
  case unattested
  /// The peer's user or process has no ID in the daemon's namespaces, so the peer cannot be told from others.
  case foreign
  /// The peer is in a cgroup below a unit of the system, and the name of the cgroup proves neither a container nor that
  /// the peer is outside of containers.
  case unprovenPlace(below: String)
  /// No cgroups are mounted where the daemon runs, so the daemon cannot tell who any peer is.
  case noControlGroups
  /// The process that connected has ended, and another process holds the connection.
  case orphaned
  /// Nothing matches the request.
  case notFound(String)
  /// An item with that key exists already.
  case exists(String)
  /// The present state does not allow the request.
  case conflict(String)
  /// A quota is used up.
  case limit(String)
  /// The events after `since` are no longer kept. The oldest kept event follows `oldest`.
  case gone(since: Int64, oldest: Int64)
  /// The event number belongs to another epoch. The associated value is the store's epoch.
  case anotherEpoch(Text)
  /// The outcome of the change is unknown.
  case unknown(String)
  /// There are too many connections, or the daemon is short of descriptors or memory.
  case busy(String)
  /// A required part is unavailable.
  case unavailable(String)
  /// The disk is full, and nothing was changed.
  case noSpace
  /// The store cannot be written now. Reads continue.
  case readOnly(String)
  /// The daemon or its store has a fault, which is logged in the journal.
  case broken(String)
}

/// The reason why a line does not parse.
package enum SyntaxFault: Error, Equatable, Sendable {
  case controlCharacter
  case nul
  case invalidUTF8
  case brokenQuote
  case invalidEscape
  case emptyValue
  case tooManyWords
  case noVerb
  /// The line is an HTTP request line or header.
  case http
  /// The first line begins a JSON object.
  case json
}

/// The fault of an operand or attribute.
package enum ArgumentFault: Equatable, Sendable {
  case missingOperand(String)
  case missingAttribute(String)
  case unexpectedOperand(Text)
  case unknownAttribute(Text)
  /// A surplus word for a verb that takes a secret. The word may be the secret, so the error text does not repeat it.
  case unexpectedWord(usage: String)
  case repeatedAttribute(Text)
  case notAllowed(name: String, value: Text, allowed: String)
  /// The value is a secret, so the error text does not repeat it.
  case notBase64(name: String)
  /// The arguments are valid individually but do not go together, or one of several is required.
  case combination(String)
}
