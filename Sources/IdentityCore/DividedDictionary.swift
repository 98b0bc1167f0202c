/// A dictionary in small partitions. A change of one of two copies duplicates only one partition instead of all.
///
/// The writer keeps the committed registry while it decides the next batch. Each change to a plain dictionary of
/// 100,000 items would therefore copy all of them.
struct DividedDictionary<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  /// The partitions: a power of two, or none before the first value.
  private var parts = DividedArray<[Key: Value]>()
  /// The number of values.
  private(set) var count = 0

  /// The average number of values per partition above which the number of partitions doubles.
  private static var partSize: Int { 64 }

  init() {}

  /// Creates an empty dictionary with room for a number of values.
  init(minimumCapacity: Int) {
    if minimumCapacity == 0 { return }
    var partCount = 1
    while minimumCapacity > partCount * Self.partSize { partCount *= 2 }
    parts = DividedArray((0..<partCount).lazy.map { _ in Dictionary(minimumCapacity: minimumCapacity / partCount) })
  }

  subscript(key: Key) -> Value? {
    get { parts.isEmpty ? nil : parts[index(of: key)][key] }
    // Modifies in place, because a value that is itself such a dictionary would be copied otherwise.
    _modify {
      if parts.isEmpty { parts.append([:]) }
      let index = index(of: key)
      let before = parts[index].count
      defer {
        count += parts[index].count - before
        if count > parts.count * Self.partSize { divide() }
      }
      yield &parts[index][key]
    }
  }

  /// Returns whether a key has a value, without reading the value.
  func contains(_ key: Key) -> Bool { !parts.isEmpty && parts[index(of: key)].index(forKey: key) != nil }

  /// Reads and changes the value of a key with a single look-up.
  mutating func update<Result>(_ key: Key, _ change: (inout Value?) -> Result) -> Result { change(&self[key]) }

  /// Sets or removes the value of a key.
  ///
  /// - Returns: the previous value.
  mutating func exchange(_ value: Value?, forKey key: Key) -> Value? {
    update(key) { slot in
      defer { slot = value }
      return slot
    }
  }

  /// Removes and returns the value of a key.
  mutating func removeValue(forKey key: Key) -> Value? { exchange(nil, forKey: key) }

  /// All keys, in no particular order.
  var keys: some Sequence<Key> { parts.lazy.flatMap(\.keys) }

  /// All values, in no particular order.
  var values: some Sequence<Value> { parts.lazy.flatMap(\.values) }

  private func index(of key: Key) -> Int {
    // Most tables are small, and hashing a key costs as much as the look-up.
    if parts.count == 1 { return 0 }
    // Uses the upper bits of the hash, because the dictionary in the partition uses the lower ones.
    return Int(truncatingIfNeeded: UInt(bitPattern: key.hashValue) >> 32) & (parts.count - 1)
  }

  private mutating func divide() {
    let all = parts
    parts = DividedArray(repeatElement([:], count: all.count * 2))
    for part in all { for (key, value) in part { parts[index(of: key)][key] = value } }
  }
}

extension DividedDictionary: Sequence {
  /// Iterates over the keys and values, in no particular order.
  func makeIterator() -> some IteratorProtocol<(key: Key, value: Value)> { parts.lazy.joined().makeIterator() }
}

extension DividedDictionary: Equatable where Value: Equatable {
  /// Returns whether both dictionaries have the same keys and values, in any partitions.
  static func == (left: Self, right: Self) -> Bool {
    left.count == right.count && left.parts.allSatisfy { $0.allSatisfy { right[$0.key] == $0.value } }
  }
}
