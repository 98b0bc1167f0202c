import Foundation
import IdentityCore
import IdentityStore
import IdentityWire
import LinuxSystem
import TestSupport

/// The content of a store that a start found after a power cut, as far as clients can observe it.
struct FoundStore: Equatable {
  /// The identity of the store. A second store would hand out other identifiers.
  let identity: String
  /// The number of transactions in the store.
  let revision: Int64
  let registry: Registry
  let events: [EventLine]
  /// The secrets as Base64 text, keyed by service and account.
  let secrets: [String: String]
  /// Whether this start created the store.
  let isNew: Bool

  /// Returns whether two stores have the same observable content, whichever start created them.
  func isSame(as other: FoundStore) -> Bool {
    identity == other.identity && revision == other.revision && registry == other.registry && events == other.events
      && secrets == other.secrets
  }

  /// Returns the events whose lines contain all these words.
  func events(saying words: [String]) -> [EventLine] {
    events.filter { event in
      let said = String(decoding: event.bytes.dropLast(), as: UTF8.self).split(separator: " ").map(String.init)
      return words.allSatisfy(said.contains)
    }
  }
}

/// A state directory in memory. It is filled with the files that a power cut left, and opened with the daemon's
/// own code.
final class CutDirectory {
  private let root: String
  /// The path of the state directory.
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

  /// Replaces the content of the directory with these files.
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

  /// Returns the files in the directory except the lock.
  func files() throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: path) where name != "lock" {
      files[name] = try Data(contentsOf: URL(filePath: "\(path)/\(name)"))
    }
    return files
  }

  /// Opens the store as a start does, and releases it as a kill does.
  ///
  /// - Throws: a ``Failure`` if the store is not intact.
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
    // Only a first start sets keys aside: those of an earlier first start that was interrupted.
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
      let outcome = reader.append(secretOf: item, as: .base64, to: &text, memory)
      guard outcome == .appended else { throw Failure("the secret of \(item.key.account) is \(outcome)") }
      secrets["\(item.key.service) \(item.key.account)"] = String(decoding: text, as: UTF8.self)
    }
    return secrets
  }

  /// Opens and locks the directory, and retries while another process holds the lock.
  ///
  /// A program that another test starts at this moment inherits the lock, and releases it at its exec.
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
