/// The stages of a service's stop, which decide how a connection ends.
@usableFromInline package enum StopStage: Sendable {
  case running
  /// No request is read any more. Each connection closes after its last answer.
  case closingConnections
  /// No request is read any more. Each connection is left to the next run of the service after its last answer.
  case handingOver
  /// Like ``handingOver``, but connections are left to the next run even if the client has not read its answers.
  case handoverDue
  /// All connections are closed or parked, and the writer was told to close the store.
  case closingStore
}
