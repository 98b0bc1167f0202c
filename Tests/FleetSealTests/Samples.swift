import FleetWire
import IdentityCore
import Testing

@testable import FleetSeal

/// The values of the published vector.
enum Sample {
  static let device = UUID(high: 0x557e_5958_d390_4cbf, low: 0xb928_2a2b_19a1_399a)
  /// Further devices. The first one is in the same bucket as the device above.
  static let others = [UUID(high: 10, low: 11), UUID(high: 1, low: 2), UUID(high: 3, low: 4)]
  static let run = Run(high: 0x4041_4243_4445_4647, low: 0x4849_4a4b_4c4d_4e4f)
  static let time = Timestamp(milliseconds: 1_790_000_000_000)

  /// Returns the secret of 32 successive bytes.
  static func secret(from first: UInt8) throws -> SecretKey {
    var bytes = Array(first..<first + 32)
    return try #require(SecretKey(consuming: &bytes))
  }

  static func account() throws -> AccountKeys { try #require(AccountKeys(root: try secret(from: 0))) }

  static func keys(_ seed: UInt8 = 0x20) throws -> DeviceKeys { try #require(DeviceKeys(seed: try secret(from: seed))) }

  /// Returns the body of a record that a device writes about itself.
  static func record(of device: UUID = device, by keys: DeviceKeys, name: Text = "laptop", counter: UInt64 = 7) throws
    -> Body
  {
    Body(
      subject: device, generation: 1, counter: counter, run: run, time: time, author: device,
      fields: DeviceDescription(
        name: name, signingKey: keys.signingKey, boxKey: keys.boxKey, joined: time, home: Home(high: 0, low: 0)
      ).fields)
  }

  /// Returns the body of a device's message to a sender.
  static func tokens(by keys: DeviceKeys) throws -> Body {
    var fields = Fields()
    fields[.signingKey] = keys.signingKey.bytes
    fields[.boxKey] = keys.boxKey.bytes
    let place = CarriedToken.Place(app: "org.example.mail", provider: "apns")
    fields.set(.token, [CarriedToken(place, environment: "production", topic: "org.example.mail", value: "abc")])
    return Body(
      subject: device, generation: 1, counter: 7, run: run, time: time, author: device, fields: fields)
  }
}

/// Returns the bytes of hexadecimal digits.
func bytes(_ text: String) -> [UInt8] {
  let digits = text.utf8.compactMap { hexadecimalDigit($0) }
  return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// Returns the hexadecimal digits of bytes.
func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
  bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
