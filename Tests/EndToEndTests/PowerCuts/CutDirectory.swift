import Foundation
import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import TestSupport

/// What a start found in a state directory that a cut left, as far as anybody could tell.
struct FoundStore: Equatable {
  /// Of the store: a second one would hand out other identifiers.
  let identity: String
  /// How many transactions are in it.
  let revision: Int64
  let registry: Registry
  let events: [Event]
  /// The secrets as Base64 text, by service and account.
  let secrets: [String: String]
  /// There was no store, and this start made one.
  let isNew: Bool

  /// What is the same for everybody who asks, whether this start made the store or the one before.
  func isSame(as other: FoundStore) -> Bool {
    identity == other.identity && revision == other.revision && registry == other.registry && events == other.events
      && secrets == other.secrets
  }

  /// The lines of the events with all these words.
  func events(saying words: [String]) -> [Event] {
    events.filter { event in
      var line: [UInt8] = []
      event.append(to: &line)
      let said = String(decoding: line.dropLast(), as: UTF8.self).split(separator: " ").map(String.init)
      return words.allSatisfy(said.contains)
    }
  }
}

/// A state directory in memory that is filled with what a cut left and opened with the daemon's own code.
final class CutDirectory {
  private let root: String
  /// The state directory.
  let path: String

  init() throws {
    let shared = "/dev/shm"
    let base =
      FileManager.default.isWritableFile(atPath: shared) ? shared : FileManager.default.temporaryDirectory.path
    root = "\(base)/identityd-cut-\(Foundation.UUID().uuidString)"
    path = "\(root)/state"
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(atPath: root) }

  /// Puts these files into the directory, in the place of all that was there.
  func fill(_ files: [String: Data]) throws {
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for (name, content) in files {
      guard
        FileManager.default.createFile(
          atPath: "\(path)/\(name)", contents: content, attributes: [.posixPermissions: 0o600])
      else { throw Failure("cannot write \(path)/\(name)") }
    }
  }

  /// What is in it, without the lock.
  func files() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: path) where name != "lock" {
      files[name] = try Data(contentsOf: URL(filePath: "\(path)/\(name)"))
    }
    return files
  }

  /// Opens it as a start does, and lets go of it as a kill does.
  ///
  /// - Throws: a ``Failure`` where the store is not in order.
  func open() throws -> FoundStore {
    let now = Timestamp(milliseconds: 1_800_000_000_000)
    let directory = try hold()
    var store = try Store.open(
      directory, options: .init(), now: now, identity: .init(high: 0x0123_4567_89ab_4cde, low: 0x8123_4567_89ab_cdef),
      machine: MachineMarks(machineID: Array("a machine-id".utf8), hardware: Array("a hardware UUID".utf8)))
    let content = store.takeContent()
    guard content.condition == .writable else { throw Failure("the store is \(content.condition)") }
    if let fault = content.registry.itemFault { throw Failure(fault) }
    let isNew = content.notices.contains { if case .created = $0 { true } else { false } }
    // Keys of a first start that was cut are set aside by the next, and by nobody else.
    for case .setAside(let path) in content.notices where !isNew { throw Failure("\(path) was set aside") }
    let witness = String(decoding: try Data(contentsOf: URL(filePath: "\(path)/witness")), as: UTF8.self)
    let words = witness.split(separator: " ")
    guard words.count == 5, let revision = Int64(words[3]) else { throw Failure("the witness says '\(witness)'") }
    return FoundStore(
      identity: String(words[2]), revision: revision, registry: content.registry, events: content.events,
      secrets: try secrets(of: content.registry, in: store), isNew: isNew)
  }

  private func secrets(of registry: Registry, in store: borrowing Store) throws -> [String: String] {
    var secrets: [String: String] = [:]
    guard registry.items.total.items > 0 else { return secrets }
    let memory = try store.makeSecretMemory()
    guard let reader = store.makeItemReader() else { throw Failure("no secret can be read") }
    for item in registry.items.all {
      var text: [UInt8] = []
      let outcome = reader.appendSecret(of: item, to: &text, memory)
      guard outcome == .appended else { throw Failure("the secret of \(item.key.account) is \(outcome)") }
      secrets["\(item.key.service) \(item.key.account)"] = String(decoding: text, as: UTF8.self)
    }
    return secrets
  }

  /// The directory that nobody should hold.
  ///
  /// A program that another test starts at this moment inherits the lock, and lets go of it a moment later at its exec.
  private func hold() throws(StateDirectoryFailure) -> StateDirectory {
    var left = 10_000
    while true {
      do {
        return try StateDirectory.open(path: path)
      } catch .held where left > 0 {
        left -= 1
        sched_yield()
      }
    }
  }
}
