import Foundation
import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// Returns an item with a label and attributes, which differ between editions.
func sampleItem(_ number: Int64, edition: UInt64 = 0, owner: Text = "user:7", length: Int = 20) -> Item {
  Item(
    key: ItemKey(group: "com.example.shared", service: "mail", account: Text("user-\(number)")), number: number,
    edition: uuid(10_000 + UInt64(number) * 100 + edition), owner: owner, label: Text("label \(number).\(edition)"),
    attributes: [
      .init(name: "note", value: Text("é \"quoted\" \(edition)\n")), .init(name: "url", value: Text("item \(number)")),
    ],
    isThisDeviceOnly: number % 2 == 0, endsWithInstallation: number % 3 == 0, secretLength: length,
    created: later(number), modified: later(number + Int64(edition)))
}

/// Returns a secret that no other edition has.
func sampleSecret(_ number: Int64, edition: UInt64 = 0, length: Int = 20) -> [UInt8] {
  var random = SeededGenerator(UInt64(number) << 32 | edition << 16 | UInt64(length))
  return (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
}

/// An item and its secret in plain text.
struct Known: Equatable {
  var item: Item
  var secret: [UInt8]

  init(_ item: Item, _ secret: [UInt8]) {
    self.item = item
    self.secret = secret
  }

  init(_ number: Int64, edition: UInt64 = 0, owner: Text = "user:7", length: Int = 20) {
    item = sampleItem(number, edition: edition, owner: owner, length: length)
    secret = sampleSecret(number, edition: edition, length: length)
  }

  /// The secret in Base64, as an authorized peer receives it.
  var base64: [UInt8] { Array(Data(secret).base64EncodedString().utf8) }
}

extension Item {
  /// The item without its label and attributes, which only the data key decrypts.
  var undescribed: Item {
    var item = self
    item.label = nil
    item.attributes = []
    return item
  }
}

extension Registry {
  /// Returns the registry as it is served without the master key of the items.
  func locked(_ fault: String?) -> Registry {
    var registry = self
    registry.restore(items.all.map { HeldItem($0.undescribed) })
    registry.itemFault = fault
    return registry
  }
}

extension SecretMemory {
  /// Encrypts Base64 text, as a request contains it.
  func encrypt(text: [UInt8]) throws(SecretFault) -> SealedSecret {
    try encrypt { span in
      for index in 0..<min(text.count, span.count) { span[index] = text[index] }
      return text.count
    }
  }

  /// Encrypts a secret.
  func encrypt(_ secret: [UInt8]) throws(SecretFault) -> SealedSecret {
    try encrypt(text: Array(Data(secret).base64EncodedString().utf8))
  }

  /// Decrypts a secret.
  func decrypt(_ secret: SealedSecret) throws -> [UInt8] {
    var text: [UInt8] = []
    guard append(secret, as: .base64, to: &text), let data = Data(base64Encoded: Data(text)) else {
      throw Failure("the secret does not open")
    }
    return Array(data)
  }
}

extension Store {
  /// Returns the change that stores an item with its secret.
  func storing(_ known: Known, _ change: ItemChange = .added) throws -> Change {
    .itemStored(known.item, try makeSecretMemory().encrypt(known.secret), change)
  }

  /// Commits items, each in its own transaction.
  mutating func put(_ items: [Known], _ change: ItemChange = .added) throws {
    for known in items { try mustCommit([storing(known, change)]) }
  }

  /// Returns the committed secret of an item in plain text.
  func open(_ item: Item) throws -> [UInt8] { try makeSecretMemory().decrypt(secret(of: item)) }

  /// Returns a new reader, which must exist.
  func reader() throws -> ItemReader {
    guard let reader = makeItemReader() else { throw Failure("no reader") }
    return reader
  }

  /// Returns the answer of a new reader about an item.
  func readOnce(_ item: Item) throws -> ReaderAnswer { try ReaderAnswer(reader(), item, makeSecretMemory()) }
}

extension Store {
  /// Expects that the secrets of these items open, for the writer and for a new reader.
  func expectOpen(_ items: [Known], _ what: String = "", at place: SourceLocation = #_sourceLocation) throws {
    for known in items {
      let name = "\(known.item.key.account) \(what)"
      let secret = try open(known.item)
      let answer = try readOnce(known.item)
      #expect(secret == known.secret, "\(name)", sourceLocation: place)
      #expect(answer == .appended(known), "\(name)", sourceLocation: place)
    }
  }

  /// Expects that the secret of an item is reported as damaged, and that a new reader does not append it.
  func expectDamaged(
    _ item: Item, _ expected: ReaderAnswer, _ what: String = "", at place: SourceLocation = #_sourceLocation
  ) throws {
    let answer = try readOnce(item)
    let found = refusal { _ = try secret(of: item) }
    #expect(found == .damagedSecret(item), "\(what)", sourceLocation: place)
    #expect(answer == expected, "\(what)", sourceLocation: place)
  }
}

/// The outcome of a read, and the output after it.
struct ReaderAnswer: Equatable {
  let outcome: ItemReader.Outcome
  let text: [UInt8]

  init(_ reader: ItemReader, _ item: Item, _ memory: SecretMemory) {
    var text = Array("before".utf8)
    outcome = reader.append(secretOf: item, as: .base64, to: &text, memory)
    self.text = text
  }

  private init(_ outcome: ItemReader.Outcome, _ text: [UInt8]) {
    self.outcome = outcome
    self.text = Array("before".utf8) + text
  }

  static func appended(_ known: Known) -> ReaderAnswer { ReaderAnswer(.appended, known.base64) }
  static let changed = ReaderAnswer(.changed, [])
  static let damaged = ReaderAnswer(.damaged, [])
}

extension Workspace {
  /// Opens the store, commits apps and items, and closes it.
  @discardableResult
  func fill(_ items: [Known], behind batches: [[Change]] = sample(apps: 2)) throws -> Registry {
    try withStore { store, content in
      var registry = content.registry
      for batch in batches { try store.mustCommit(registry.recorded(batch)) }
      for known in items { try store.mustCommit(registry.recorded([store.storing(known)])) }
      try store.mustClose()
      return registry
    }
  }
}

/// Returns the refusal that a closure throws. Nil if there is none.
func refusal(_ body: () throws -> Void) -> Refusal? {
  do {
    try body()
    return nil
  } catch {
    return error as? Refusal
  }
}
