import CBench

/// What a connection says, what that is answered with, and what others get of it.
struct Exchange {
  /// What is sent; nothing where there is nothing to say.
  var request: [UInt8] = []
  /// What comes back.
  var reply: [UInt8] = []
  /// With how many bytes of that every reply begins.
  var replySame = 0
  /// What others get.
  var event: [UInt8] = []
  /// With how many bytes of that every event begins.
  var eventSame = 0

  /// Puts one together of which nobody else gets anything.
  init(_ request: [UInt8] = [], _ reply: [UInt8] = [], same: Int? = nil) {
    self.request = request
    self.reply = reply
    replySame = same ?? reply.count
  }

  /// The same for text.
  init(_ request: String, _ reply: String) { self.init(Array(request.utf8), Array(reply.utf8)) }

  /// The same, with what others get of it.
  func event(_ bytes: [UInt8], same: Int? = nil) -> Exchange {
    var exchange = self
    exchange.event = bytes
    exchange.eventSame = same ?? bytes.count
    return exchange
  }

  /// Has it as C does, for a while.
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
