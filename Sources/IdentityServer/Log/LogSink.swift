/// Takes log events. Only the loop's thread uses the sink, and a call never blocks.
struct LogSink {
  private let write: Log

  init(_ write: @escaping Log) { self.write = write }

  /// Logs an event.
  func callAsFunction(_ event: LogEvent) { write(event.entry) }
}
