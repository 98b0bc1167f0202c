import Foundation
import LinuxSystem

/// The servers, and the requests that several benchmarks send.
extension MeasuredServer {
  /// Returns the identityd in the folder of this program.
  ///
  /// - Parameters:
  ///   - settings: the configuration, except for the folder of manifests, which does not exist.
  ///   - wrapper: a command that runs the program with its arguments.
  static func identityd(
    _ name: String = "identityd", settings: String = "", guardian: Guardian, wrapper: [String] = []
  ) throws -> MeasuredServer {
    let program = try besideThis("identityd")
    return try MeasuredServer(
      name, guardian: guardian, greeting: Question("ping\n", reply: Array("OK\n".utf8)),
      // The folder does not exist, so that no manifest of this machine has an effect.
      configuration: { "[Apps]\nDirectories=\($0.appending(path: "apps.d").path)\n[Log]\nLevel=err\n\(settings)" }
    ) { folder in
      wrapper + [
        program, "--state-directory", folder.appending(path: "state").path, "--socket", socket(in: folder),
        "--config", configurationFile(in: folder).path,
      ]
    }
  }

  /// Returns the limit: a server that answers one request with given bytes and does nothing else.
  static func limit(_ read: Question, guardian: Guardian) throws -> MeasuredServer {
    let program = try besideThis("LimitServer")
    return try MeasuredServer("the limit", guardian: guardian, greeting: read) { folder in
      let words = [read.request, read.reply].map { String(decoding: $0.dropLast(), as: UTF8.self) }
      return [program, socket(in: folder)] + words
    }
  }

  /// Returns the path of a program in the folder of this one.
  static func besideThis(_ name: String) throws -> String {
    let program = own.deletingLastPathComponent().appending(path: name).path
    guard FileManager.default.fileExists(atPath: program) else {
      throw BenchError("there is no \(program): run packaging/tools/bench, which builds it")
    }
    return program
  }

  /// The path of this program.
  static var own: URL { URL(filePath: "/proc/self/exe").resolvingSymlinksInPath() }

  /// Starts this program anew with the library that waits instead of syncing, unless that was done.
  static func delaySyncs(microseconds: Int) throws {
    // SyncDelay.c finds the time there.
    let variable = "IDENTITYBENCH_SYNC_DELAY"
    guard Environment[variable] == nil else { return }
    let library = try besideThis("SyncDelay.so")
    guard unsafe setenv(variable, "\(microseconds)", 1) == 0, unsafe setenv("LD_PRELOAD", library, 1) == 0 else {
      throw BenchError.system("setenv")
    }
    unsafe execv("/proc/self/exe", Swift.CommandLine.unsafeArgv)
    throw BenchError.system("exec")
  }

  /// Installs apps: each of as many users asks for an installation identifier. Needs root.
  func install(apps count: Int) throws {
    let users = SampleItem.firstUser..<SampleItem.firstUser + UInt32(count)
    for first in stride(from: users.lowerBound, to: users.upperBound, by: 256) {
      let connections = try (first..<min(first + 256, users.upperBound)).map { user in
        // The kernel notes the effective user when the connection is made.
        guard seteuid(user) == 0 else { throw BenchError.system("seteuid") }
        let connection = Swift.Result { try connect() }
        guard seteuid(0) == 0 else { throw BenchError.system("seteuid") }
        return try connection.get()
      }
      for connection in connections { try connection.send(Array("get installation\n".utf8)) }
      for connection in connections {
        try connection.receive()
        try connection.check(["OK "])
      }
    }
    let apps = try ask("status").split(separator: "\n").first { $0.hasPrefix("* apps=") }
    guard let apps, let stored = Int(apps.dropFirst("* apps=".count)), stored >= count else {
      throw BenchError("users are not apps here: is this run in a service?")
    }
  }
}

extension Question {
  /// Returns the change that replaces a push token of 32 bytes by another one each time. Each connection has a provider
  /// of its own, with a first token, because the answer to the first one differs.
  static func token(_ connections: Int, of server: MeasuredServer) throws -> Question {
    try server.connect().fill(connections) {
      "token put bench\(String(format: "%03d", $0)) token-of-the-bench--first-token-\n"
    }
    let text = "token put bench%%% token-of-the-bench--############\n"
    let question = try Question(text, asking: server, same: "OK replaced device=".utf8.count)
    guard question.reply.starts(with: "OK replaced device=".utf8) else { throw BenchError("no token is replaced") }
    return question
  }

  /// Returns the change that replaces a secret of 24 bytes by another one each time. Each connection has an item of its
  /// own.
  static func item(_ connections: Int, of server: MeasuredServer) throws -> Question {
    let secret = "secret+of+the+bench+"
    try server.connect().fill(connections) {
      "item put service=bench account=\(String(format: "%03d", $0)) data=\(secret)000000000000\n"
    }
    return Question(
      "item put service=bench account=%%% data=\(secret)############\n", reply: Array("OK replaced\n".utf8))
  }
}

/// A sample item, derived from its number. Its requests and their answers are as long as those of any other one.
struct SampleItem {
  /// The first user with an app.
  static let firstUser: UInt32 = 1_000_000

  /// The number, or `#` in place of its last digits for another item each time.
  private let digits: String

  init(_ number: Int) { digits = String(format: "%06d", number) }

  /// Creates another item each time, of a number of items that is a power of ten.
  init(anyOf count: Int) {
    let places = String(count).utf8.count - 1
    digits = String(repeating: "0", count: 6 - places) + String(repeating: "#", count: places)
  }

  /// The service and the account. No two items have the same service.
  private var name: String { "service=service-\(digits) account=user@example.org" }

  /// The request that adds the item, or replaces it with the same content. The secret has 64 bytes.
  var put: String {
    let number = Int(digits) ?? 0
    let secret = Data((0..<64).map { UInt8(truncatingIfNeeded: ((number + 1) * 2_654_435_761 + $0 * 40_503) >> 13) })
    return
      "item put \(name) data=\(secret.base64EncodedString()) label=\"Sample \(digits)\" attr.marker=marker-\(digits)"
      + " attr.kind=kind-\(digits.suffix(1))\n"
  }

  /// The request that reads the item.
  var read: String { "item read \(name)\n" }
}
