import CBench

/// A request of a connection, its reply, and the event that other connections get from it.
struct Exchange {
  /// The request. Empty if there is nothing to send.
  var request: [UInt8] = []
  /// The reply.
  var reply: [UInt8] = []
  /// The number of bytes at the beginning that all replies share.
  var replySame = 0
  /// The event that other connections get.
  var event: [UInt8] = []
  /// The number of bytes at the beginning that all events share.
  var eventSame = 0

  /// Creates an exchange without an event.
  init(_ request: [UInt8] = [], _ reply: [UInt8] = [], same: Int? = nil) {
    self.request = request
    self.reply = reply
    replySame = same ?? reply.count
  }

  /// Creates an exchange of texts without an event.
  init(_ request: String, _ reply: String) { self.init(Array(request.utf8), Array(reply.utf8)) }

  /// Returns the same exchange with an event.
  func event(_ bytes: [UInt8], same: Int? = nil) -> Exchange {
    var exchange = self
    exchange.event = bytes
    exchange.eventSame = same ?? bytes.count
    return exchange
  }

  /// Runs `body` with the exchange as a C structure.
  func withC<Result>(_ body: (UnsafePointer<bench_exchange>) throws -> Result) rethrows -> Result {
    try unsafe request.withUnsafeBytes { request in
      try unsafe reply.withUnsafeBytes { reply in
        try unsafe event.withUnsafeBytes { event in
          var exchange = unsafe bench_exchange()
          unsafe exchange.request = request.baseAddress?.assumingMemoryBound(to: CChar.self)
          unsafe exchange.request_length = request.count
          unsafe exchange.reply = reply.baseAddress?.assumingMemoryBound(to: CChar.self)
          unsafe exchange.reply_length = reply.count
          unsafe exchange.reply_same = replySame
          unsafe exchange.event = event.baseAddress?.assumingMemoryBound(to: CChar.self)
          unsafe exchange.event_length = event.count
          unsafe exchange.event_same = eventSame
          return try unsafe body(&exchange)
        }
      }
    }
  }
}
