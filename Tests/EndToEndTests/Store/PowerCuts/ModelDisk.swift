import Foundation
import TestSupport

/// A model of the state directory, both on a disk that keeps only synced data and in the kernel, which has
/// every change.
///
/// The rules are the weakest guarantees of POSIX that every file system keeps. Synced data survives. Of unsynced data,
/// any sector of 512 bytes may or may not be written, in any order. The length of a file changes in order. Names change
/// in order, and independently of the content of their files.
struct ModelDisk {
  private enum Change {
    case write(at: Int, Data)
    case truncate(to: Int)
  }

  private struct File {
    var durable = Data()
    var pending: [Change] = []
    /// The writes whose sync failed, each with the content before it, or zeros. The disk may return that content for
    /// ever, whatever is synced later.
    var refused: [(place: Int, before: Data)] = []
  }

  private enum NameChange {
    case create(String, Int)
    case rename(String, String)
    case remove(String)
  }

  private var files: [Int: File] = [:]
  private var names: [String: Int] = [:]
  private var pending: [NameChange] = []
  private var hasFolder: Bool

  /// The unsynced changes that a power cut loses.
  enum Loss: CaseIterable {
    case everything, nothing, content, names, some
  }

  init(_ initial: [String: Data]) {
    for (number, name) in initial.keys.sorted().enumerated() {
      files[number] = File(durable: initial[name] ?? Data())
      names[name] = number
    }
    hasFolder = !initial.isEmpty
  }

  /// Applies a step.
  mutating func take(_ step: StorageRecording.Step) {
    switch step {
    case .makeFolder: hasFolder = false
    case .synchronizeParent: hasFolder = true
    case .synchronizeFolder:
      names = Self.names(names, after: pending[...])
      pending = []
    case .create(let name, let file):
      files[file] = File()
      pending.append(.create(name, file))
    case .rename(let name, let new): pending.append(.rename(name, new))
    case .remove(let name): pending.append(.remove(name))
    case .write(let file, let place, let bytes): files[file]?.pending.append(.write(at: place, bytes))
    case .truncate(let file, let size): files[file]?.pending.append(.truncate(to: size))
    case .synchronize(let file): settle(file)
    case .failToSynchronize(let file):
      let durable = files[file]?.durable ?? Data()
      let refused = (files[file]?.pending ?? []).compactMap { change -> (place: Int, before: Data)? in
        guard case .write(let place, let bytes) = change else { return nil }
        let known = durable[min(place, durable.count)..<min(place + bytes.count, durable.count)]
        return (place, known + Data(count: bytes.count - known.count))
      }
      settle(file)
      files[file]?.refused += refused
    }
  }

  private mutating func settle(_ file: Int) {
    for change in files[file]?.pending ?? [] {
      Self.apply(change, to: &files[file, default: File()].durable)
      // Writes beyond the new end go to other blocks.
      if case .truncate(let size) = change { files[file]?.refused.removeAll { $0.place >= size } }
    }
    files[file]?.pending = []
  }

  // MARK: Cut

  /// Returns the content of the directory after a power cut at this moment.
  func cut(losing loss: Loss, _ generator: inout SeededGenerator) -> [String: Data] {
    let kept =
      switch loss {
      case .everything, .names: 0
      case .nothing, .content: pending.count
      case .some: Int.random(in: 0...pending.count, using: &generator)
      }
    if !hasFolder, kept == 0, loss == .everything || loss == .names || generator.once(in: 2) { return [:] }
    var found: [String: Data] = [:]
    for (name, number) in Self.names(names, after: pending[..<kept]).sorted(by: { $0.key < $1.key }) {
      guard let file = files[number] else { continue }
      switch loss {
      case .everything, .content: found[name] = Self.withRefused(file.durable, file, lost: true)
      case .nothing, .names: found[name] = Self.withRefused(Self.whole(file), file, lost: false)
      case .some: found[name] = Self.torn(file, &generator)
      }
    }
    return found
  }

  private static func names(_ durable: [String: Int], after changes: ArraySlice<NameChange>) -> [String: Int] {
    var names = durable
    for change in changes {
      switch change {
      case .create(let name, let file): names[name] = file
      case .rename(let name, let new): names[new] = names.removeValue(forKey: name)
      case .remove(let name): names[name] = nil
      }
    }
    return names
  }

  private static func whole(_ file: File) -> Data {
    var content = file.durable
    for change in file.pending { apply(change, to: &content) }
    return content
  }

  /// Returns the content of a file with some of its unsynced writes, in sectors of 512 bytes.
  private static func torn(_ file: File, _ generator: inout SeededGenerator) -> Data {
    var content = file.durable
    // Truncations happen in order. If a truncation is lost, the writes after it are lost too.
    let cuts = file.pending.indices.filter { if case .truncate = file.pending[$0] { true } else { false } }
    let places = [file.pending.startIndex] + cuts
    let era = generator.once(in: 2) ? places.count - 1 : Int.random(in: places.indices, using: &generator)
    let end = era + 1 < places.count ? places[era + 1] : file.pending.endIndex
    // The share of the pieces that are kept, in eighths. A piece is a whole write, or a sector of it.
    let share = Int.random(in: 0...8, using: &generator)
    let isTorn = !generator.once(in: 4)
    var length = 0
    for (place, change) in file.pending[..<end].enumerated() {
      guard case .write(let start, let bytes) = change else {
        apply(change, to: &content)
        length = 0
        continue
      }
      guard place >= places[era] else { continue }
      length = max(length, start + bytes.count)
      var piece = 0
      while piece < bytes.count {
        let next = isTorn ? min(((start + piece) / 512 + 1) * 512 - start, bytes.count) : bytes.count
        if Int.random(in: 0..<8, using: &generator) < share {
          apply(.write(at: start + piece, bytes[piece..<next]), to: &content)
        }
        piece = next
      }
    }
    // The new length may be durable without the content.
    if content.count < length, generator.once(in: 2) {
      let rest = length - content.count
      let isGarbage = generator.once(in: 4)
      content.append(Data(repeating: isGarbage ? UInt8.random(in: 1...255, using: &generator) : 0, count: rest))
    }
    return withRefused(content, file, lost: generator.once(in: 2))
  }

  private static func withRefused(_ content: Data, _ file: File, lost: Bool) -> Data {
    guard lost else { return content }
    var content = content
    for (place, before) in file.refused where place < content.count {
      apply(.write(at: place, before.prefix(content.count - place)), to: &content)
    }
    return content
  }

  private static func apply(_ change: Change, to content: inout Data) {
    switch change {
    case .truncate(let size) where size < content.count: content.removeLast(content.count - size)
    case .truncate(let size): content.append(Data(count: size - content.count))
    case .write(let place, let bytes):
      let end = place + bytes.count
      if content.count < end { content.append(Data(count: end - content.count)) }
      content.replaceSubrange(place..<end, with: bytes)
    }
  }
}
