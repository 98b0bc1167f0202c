import Foundation

/// A broker for tests: one process, or several.
package protocol MessageBroker: AnyObject {
  /// The lines of a service's configuration that name the broker.
  var configuration: String { get }
  /// The command that starts another one at a place from which the broker is reached.
  var place: [String] { get }
  /// The address of the broker at that place.
  var address: (host: String, port: UInt16) { get }

  /// Kills the broker, and starts it again without its messages.
  func forget() throws
}

/// Runs a client of a broker, and runs it again if its connection was reset, as brokers do on a busy machine. So the
/// client may do the same twice.
package func runClient(_ command: [String], input: String = "") throws -> (
  status: Int32, output: String, errors: String
) {
  let deadline = Date(timeIntervalSinceNow: patience)
  while true {
    let result = try run(command, input: input)
    let isReset =
      result.status == 128 + SIGPIPE
      || ["Connection reset", "Broken pipe", "connection was lost"].contains { result.errors.contains($0) }
    guard isReset, Date() < deadline else { return result }
    usleep(100_000)
  }
}

extension MessageBroker {
  private var options: [String] { ["-h", address.host, "-p", "\(address.port)"] }

  /// Publishes a retained message with mosquitto_pub(1). An empty one deletes the present one.
  package func publish(_ payload: some Sequence<UInt8>, to topic: String) throws {
    let folder = try TemporaryFolder()
    let content = Data(payload)
    try content.write(to: URL(filePath: folder["payload"]))
    let source = content.isEmpty ? ["-n"] : ["-f", folder["payload"]]
    let result = try runClient(place + ["mosquitto_pub"] + options + ["-q", "1", "-r", "-t", topic] + source)
    guard result.status == 0 else { throw Failure("mosquitto_pub: \(result.errors)") }
  }

  /// Publishes many retained messages in one connection, for which mosquitto_pub(1) has no option.
  package func publish(all messages: some Sequence<(topic: String, payload: [UInt8])>) throws {
    // MQTT 3.1.1: CONNECT with a clean session, PUBLISH with RETAIN and quality of service 0, PINGREQ.
    func text(_ text: String) -> [UInt8] { [UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 0xff)] + text.utf8 }
    func packet(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
      var (length, rest) = ([UInt8](), content.count)
      repeat {
        length.append(UInt8(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
        rest >>= 7
      } while rest > 0
      return [type] + length + content
    }
    var bytes = Data(packet(0x10, text("MQTT") + [4, 2, 0, 60] + text("publisher")))
    for (topic, payload) in messages { bytes += packet(0x31, text(topic) + payload) }
    bytes += packet(0xc0, [])
    let folder = try TemporaryFolder()
    try bytes.write(to: URL(filePath: folder["packets"]))
    let script = #"exec 3<>"/dev/tcp/$0/$1" && cat "$2" >&3 && od -An -tx1 -N6 <&3"#
    let result = try runClient(
      place + ["bash", "-c", script, address.host, "\(address.port)", folder["packets"]])
    // CONNACK and PINGRESP: the broker has taken all packets.
    guard result.output == " 20 02 00 00 d0 00\n" else { throw Failure("the broker answers \(result)") }
  }

  /// Returns the retained messages of topics as lines `TOPIC PAYLOAD`, sorted, with the payload in hexadecimal digits
  /// (mosquitto_sub(1)).
  ///
  /// - Parameter count: the number of messages to wait for; by default all that arrive within a second.
  package func retained(_ filter: String, count: Int? = nil) throws -> [String] {
    let end = count.map { ["-C", "\($0)", "-W", "\(Int(patience))"] } ?? ["-W", "1"]
    let result = try runClient(
      place + ["mosquitto_sub"] + options + ["-t", filter, "-F", "%t %x", "--retained-only"] + end)
    // 27 is MOSQ_ERR_TIMEOUT.
    guard result.status == 0 || result.status == 27 else { throw Failure("mosquitto_sub: \(result.errors)") }
    return result.output.split(separator: "\n").map(String.init).sorted()
  }

  /// Returns the retained messages of topics, sorted by topic.
  package func messages(_ filter: String) throws -> [(topic: String, payload: [UInt8])] {
    try retained(filter).map(Self.message)
  }

  /// Returns the topic and the payload in a line of ``retained(_:count:)``.
  package static func message(_ line: String) -> (topic: String, payload: [UInt8]) {
    let words = line.split(separator: " ", maxSplits: 1).map(String.init)
    let digits = Array(words.count > 1 ? words[1] : "")
    let payload = stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
    return (words[0], payload)
  }
}
