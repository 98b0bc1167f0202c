/// A broker for tests: one process, or several.
package protocol MessageBroker: AnyObject {
  /// The lines of a service's configuration that name the broker.
  var configuration: String { get }
  /// The command that starts another one at a place from which the broker is reached.
  var place: [String] { get }
  /// The options of mosquitto_pub(1) and mosquitto_sub(1) that name the broker.
  var options: [String] { get }

  /// Kills the broker, and starts it again without its messages.
  func forget() throws
}

extension MessageBroker {
  /// Publishes a message with mosquitto_pub(1).
  package func publish(_ payload: String, to topic: String, isRetained: Bool = true) throws {
    let result = try run(
      place + ["mosquitto_pub"] + options + ["-q", "1", "-t", topic, "-s"] + (isRetained ? ["-r"] : []), input: payload)
    guard result.status == 0 else { throw Failure("mosquitto_pub: \(result.errors)") }
  }

  /// Returns the retained messages of topics as lines `TOPIC PAYLOAD`, sorted, with the payload in hexadecimal digits
  /// (mosquitto_sub(1)).
  package func retained(_ filter: String, count: Int? = nil) throws -> [String] {
    let end = count.map { ["-C", "\($0)", "-W", "\(Int(patience))"] } ?? ["-W", "1"]
    let result = try run(
      place + ["mosquitto_sub"] + options + ["-t", filter, "-F", "%t %x", "--retained-only"] + end)
    // 27 is MOSQ_ERR_TIMEOUT.
    guard result.status == 0 || result.status == 27 else { throw Failure("mosquitto_sub: \(result.errors)") }
    return result.output.split(separator: "\n").map(String.init).sorted()
  }
}
