import IdentityCore
import IdentityStore
import IdentityWire

/// Damaged files of a store. The store must serve the data as it was stored, or report the damage.
///
/// The first byte of the input chooses the closed or the killed store. Edits of six bytes each follow,
/// as in ``FileEdit``.
final class StoreTarget: FuzzTarget {
  private let scratch: Scratch
  /// The files of the closed store, and of the killed one.
  private let stores: [[String: [UInt8]]]
  private let sample: SampleLife
  private let names = ["identityd.db", "identityd.db-wal", "witness.latest", "witness", "store.key", "master.key"]

  init() throws {
    scratch = try Scratch()
    var sample = SampleLife()
    let killed = try scratch.withStore { [scratch] store, content in
      try sample.live(in: &store, from: content.registry)
      return try scratch.files()
    }
    try scratch.restore(killed)
    try scratch.withStore { store, _ in
      if let complaint = store.close() { throw Finding(complaint) }
    }
    stores = [try scratch.files(), killed]
    self.sample = sample
  }

  func run(_ input: [UInt8]) throws {
    guard let first = input.first else { return }
    var files = stores[Int(first & 1)]
    var touched: Set<String> = []
    for edit in FileEdit.all(input.dropFirst()).prefix(16) {
      let name = names[Int(edit.file) % names.count]
      guard let before = files[name], !before.isEmpty else { continue }
      files[name] = edit.applied(to: before)
      touched.insert(name)
    }
    try scratch.restore(files)
    do {
      try live(isWitnessed: !touched.contains("witness.latest"))
    } catch is StoreFailure {
      return
    }
  }

  /// Runs a start, a change and another start.
  private func live(isWitnessed: Bool) throws {
    let after = try scratch.withStore { store, content -> Registry? in
      try sample.requireKnown(content.registry)
      try sample.requireSecrets(store, content.registry)
      guard content.condition == .writable else {
        guard case .damaged = content.condition else { throw Finding("it opens as \(content.condition)") }
        try require(
          store.commit([SampleLife.extra(after: content.registry)], events: []) == content.condition.refusal,
          "damage takes a change")
        return nil
      }
      // Without its latest witness, the store may have an earlier state, as after a power cut, but never a state that
      // never existed.
      try require(
        content.registry.isSame(as: sample.registry)
          || !isWitnessed && sample.states.contains { $0.isSame(as: content.registry) },
        "another store is served, and nothing is said")
      var registry = content.registry
      let change = SampleLife.extra(after: registry)
      if store.commit([change], events: [change].events) == nil { registry.apply(change) }
      _ = store.close()
      return registry
    }
    try scratch.withStore { _, content in
      guard let after else {
        try sample.requireKnown(content.registry)
        guard case .damaged = content.condition else {
          throw Finding("damage is \(content.condition) at the next start")
        }
        return
      }
      // A change may find damage that reading did not. The store reports such damage.
      guard content.condition == .writable else { return }
      try require(content.registry.isSame(as: after), "another store is served at the next start")
    }
  }
}

/// One edit of a file: the file, the action, the position in three bytes, and one more byte.
struct FileEdit {
  let file: UInt8
  private let action: UInt8
  private let place: Int
  private let value: UInt8

  /// Parses edits of six bytes each.
  static func all(_ bytes: ArraySlice<UInt8>) -> [FileEdit] {
    var edits: [FileEdit] = []
    var rest = bytes
    while rest.count >= 6 {
      let edit = Array(rest.prefix(6))
      rest = rest.dropFirst(6)
      let place = Int(edit[2]) | Int(edit[3]) << 8 | Int(edit[4]) << 16
      edits.append(FileEdit(file: edit[0], action: edit[1], place: place, value: edit[5]))
    }
    return edits
  }

  func applied(to file: [UInt8]) -> [UInt8] {
    var file = file
    let place = place % file.count
    let sector = (place / 512 * 512)..<min(place / 512 * 512 + 512, file.count)
    switch action % 5 {
    case 0: file[place] = value
    case 1: file[place] ^= 1 << (value & 7)
    case 2: return Array(file.prefix(place))
    case 3: for index in sector { file[index] = 0 }
    default:
      // Copies a sector or a page from another position.
      let length = value & 1 == 0 ? 512 : 4_096
      let source = Int(value >> 1) * length % file.count
      let target = place / length * length
      for offset in 0..<length where source + offset < file.count && target + offset < file.count {
        file[target + offset] = file[source + offset]
      }
    }
    return file
  }
}
