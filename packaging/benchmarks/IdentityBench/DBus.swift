import Foundation

/// The messages of clients of a D-Bus bus (D-Bus Specification, "Message Protocol"), little-endian.
enum DBus {
  /// The service of BusService.c, whose only object is `/`.
  private static let service = "org.identityd.Bench"
  private static let bus = "org.freedesktop.DBus"

  /// The number of bytes at the beginning of each message that are the same for all messages of a kind. The serial
  /// number follows them.
  static let same = 8

  /// The client's user ID, which the kernel confirms. The reply has the ID of the bus.
  static let authenticate = Question(
    Array("\0AUTH EXTERNAL \("\(geteuid())".utf8.map { String($0, radix: 16) }.joined())\r\n".utf8),
    reply: Array("OK \(String(repeating: "0", count: 32))\r\n".utf8), varyingEnd: 34)

  /// The beginning of a connection. The client sends all of it without waiting for an answer.
  static let hello =
    authenticate.request + Array("BEGIN\r\n".utf8)
    + call(serial: 1, destination: bus, path: "/org/freedesktop/DBus", member: "Hello")

  /// The request that is measured most.
  static let get = call(serial: 2, destination: service, path: "/", member: "Get")

  /// The subscription to the signals of the service.
  static let subscribe = call(
    serial: 2, destination: bus, path: "/org/freedesktop/DBus", member: "AddMatch",
    argument: "type='signal',interface='\(service)'")

  /// Returns a signal to all subscribers.
  static func signal(_ text: String) -> [UInt8] {
    message(.signal, serial: 2, [(.path, "/"), (.interface, service), (.member, "Changed")], argument: text)
  }

  private enum Kind: UInt8 {
    case call = 1
    case signal = 4
  }

  private enum Field: UInt8 {
    case path = 1
    case interface = 2
    case member = 3
    case destination = 6
    case signature = 8

    var type: String {
      switch self {
      case .path: "o"
      case .signature: "g"
      case .interface, .member, .destination: "s"
      }
    }
  }

  private static func call(
    serial: UInt32, destination: String, path: String, member: String, argument: String? = nil
  ) -> [UInt8] {
    // The interface of each service has the service's name.
    let fields: [(Field, String)] = [
      (.path, path), (.interface, destination), (.member, member), (.destination, destination),
    ]
    return message(.call, serial: serial, fields, argument: argument)
  }

  private static func message(
    _ kind: Kind, serial: UInt32, _ fields: [(Field, String)], argument: String?
  ) -> [UInt8] {
    let body = argument.map(string) ?? []
    var header: [UInt8] = []
    for (field, value) in fields + (argument == nil ? [] : [(.signature, "s")]) {
      pad(&header)
      header += [field.rawValue] + signature(field.type)
      header += field == .signature ? signature(value) : string(value)
    }
    var message: [UInt8] = [UInt8(ascii: "l"), kind.rawValue, 0, 1]
    message += number(UInt32(body.count)) + number(serial) + number(UInt32(header.count)) + header
    pad(&message)
    return message + body
  }

  private static func pad(_ bytes: inout [UInt8]) {
    bytes += Array(repeating: 0, count: bytes.count.isMultiple(of: 8) ? 0 : 8 - bytes.count % 8)
  }

  private static func number(_ number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  private static func string(_ text: String) -> [UInt8] { number(UInt32(text.utf8.count)) + Array(text.utf8) + [0] }

  private static func signature(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + Array(text.utf8) + [0] }
}

extension Language {
  /// Returns the first exchange of a connection, which is empty in most languages.
  func greeting(of server: MeasuredServer) throws -> Exchange {
    guard self == .dbus else { return Exchange() }
    // Only "OK " is always the same. The ID of the bus follows.
    return Exchange(DBus.hello, try Question.answer(to: DBus.hello, from: server), same: 3)
  }
}
