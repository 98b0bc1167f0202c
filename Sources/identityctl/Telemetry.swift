import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem

// `env otel`: the identifiers of this device and launch, as every SDK of OpenTelemetry reads them.
extension Program {
  /// The variable that OpenTelemetry's SDKs take attributes of the resource from: `NAME=VALUE`, separated by commas.
  private static let attributesVariable = "OTEL_RESOURCE_ATTRIBUTES"
  /// The variable that asks for `device.id`, too. The conventions of OpenTelemetry advise against it by default, because a
  /// device can be a person's.
  private static let deviceVariable = "IDENTITYD_OTEL_DEVICE_ID"

  /// Writes an environment variable for a program of OpenTelemetry.
  ///
  /// - Returns: nil for any other command.
  static func showTelemetryVariable(_ line: CommandLine) throws -> Int32? {
    let words = line.words.map { $0.lowercased() }
    guard words.first == "env" else { return nil }
    guard words == ["env", "otel"] else { throw CommandLine.UsageError("'env' needs 'otel', and nothing else") }
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    let patience = try patience(line)
    var connection = try connect(line, patience)
    let device = try connection.ask(RequestLine(words: ["get", "device"]), patience)
    guard case .ok(let host) = device.final, let value = host.words.first else {
      return try show(device, to: line.words, line, format)
    }
    let session = try connection.ask(RequestLine(words: ["get", "session"]), patience)
    guard case .ok(let launch) = session.final, let instance = launch.words.first else {
      return try show(session, to: line.words, line, format)
    }
    var attributes = ["host.id=\(value)", "service.instance.id=\(instance)"]
    if Environment[deviceVariable]?.lowercased() == "yes" { attributes.append("device.id=\(value)") }
    if let others = Environment[attributesVariable], !others.isEmpty { attributes.insert(others, at: 0) }
    var content = ReplyLine.Content()
    content.words = [Text("\(attributesVariable)=\(attributes.joined(separator: ","))")]
    return try show(.init(final: .ok(content)), to: line.words, line, format)
  }
}
