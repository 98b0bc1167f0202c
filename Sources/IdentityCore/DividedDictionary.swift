/// A dictionary in parts, each small: changing one of two copies costs the copy of a part and not of the whole.
///
/// The writer keeps what was committed while it decides the next batch, so every change to a plain dictionary of 100,000
/// items would copy them all.
struct DividedDictionary<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// A power of two of them, or none as long as nothing was put in.
  private var parts = DividedArray<[Key: Value]>()
  /// How many values there are.
  private(set) var count = 0

  /// How many values a part has on average before there are twice as many parts.
  private static var partSize: Int { 64 }

  /// An empty one.
  init() {}

  /// An empty one with room for that many values.
  init(minimumCapacity: Int) {
    if minimumCapacity == 0 { return }
    var places = 1
    while minimumCapacity > places * Self.partSize { places *= 2 }
    parts = DividedArray((0..<places).lazy.map { _ in Dictionary(minimumCapacity: minimumCapacity / places) })
  }

  /// The value of a key.
  subscript(key: Key) -> Value? {
    get { parts.isEmpty ? nil : parts[place(of: key)][key] }
    // In place: a value that is such a dictionary itself would be copied otherwise.
    _modify {
      if parts.isEmpty { parts.append([:]) }
      let place = place(of: key)
      let before = parts[place].count
      defer {
        count += parts[place].count - before
        if count > parts.count * Self.partSize { divide() }
      }
      yield &parts[place][key]
    }
  }

  /// Whether a key has a value, which is not looked at.
  func contains(_ key: Key) -> Bool { !parts.isEmpty && parts[place(of: key)].index(forKey: key) != nil }

  /// Looks a value up once, to see and to change it.
  mutating func update<Result>(_ key: Key, _ change: (inout Value?) -> Result) -> Result { change(&self[key]) }

  /// Puts a value in the place of the one that a key has, or takes that out.
  ///
  /// - Returns: what the key had.
  mutating func exchange(_ value: Value?, forKey key: Key) -> Value? {
    update(key) { place in
      defer { place = value }
      return place
    }
  }

  /// Takes a value out.
  mutating func removeValue(forKey key: Key) -> Value? { exchange(nil, forKey: key) }

  /// Every key, in no order.
  var keys: some Sequence<Key> { parts.lazy.flatMap(\.keys) }

  /// Every value, in no order.
  var values: some Sequence<Value> { parts.lazy.flatMap(\.values) }

  private func place(of key: Key) -> Int {
    // Most tables have few values, and to hash a key costs as much as to look for it.
    if parts.count == 1 { return 0 }
    // The lower bits choose the place within a part.
    return Int(truncatingIfNeeded: UInt(bitPattern: key.hashValue) >> 32) & (parts.count - 1)
  }

  private mutating func divide() {
    let all = parts
    parts = DividedArray(repeatElement([:], count: all.count * 2))
    for part in all { for (key, value) in part { parts[place(of: key)][key] = value } }
  }
}

extension DividedDictionary: Sequence {
  /// Every key with its value, in no order.
  func makeIterator() -> some IteratorProtocol<(key: Key, value: Value)> { parts.lazy.joined().makeIterator() }
}

extension DividedDictionary: Equatable where Value: Equatable {
  /// Whether both hold the same values.
  static func == (left: Self, right: Self) -> Bool {
    left.count == right.count && left.parts.allSatisfy { $0.allSatisfy { right[$0.key] == $0.value } }
  }
}
