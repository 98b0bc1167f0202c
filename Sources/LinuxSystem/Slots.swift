/// A growing table of values by index, in memory of its own, which avoids Swift's exclusivity checks.
///
/// Swift checks each access to an array that an object holds for exclusivity. The table needs no such check, because an
/// access reads or replaces a whole value.
@safe @usableFromInline
package struct Slots<Value>: ~Copyable {
  @unsafe @usableFromInline struct Memory {
    @usableFromInline var start: UnsafeMutablePointer<Value>
    @usableFromInline var count: Int
  }

  @usableFromInline let memory: UnsafeMutablePointer<Memory>

  /// Creates slots with the same value in each.
  package init(repeating value: Value, count: Int) {
    precondition(count > 0)
    let start = UnsafeMutablePointer<Value>.allocate(capacity: count)
    unsafe start.initialize(repeating: value, count: count)
    unsafe memory = .allocate(capacity: 1)
    unsafe memory.initialize(to: Memory(start: start, count: count))
  }

  deinit {
    unsafe memory.pointee.start.deinitialize(count: memory.pointee.count)
    unsafe memory.pointee.start.deallocate()
    unsafe memory.deallocate()
  }

  /// The number of slots.
  @inlinable @inline(__always) package var count: Int { unsafe memory.pointee.count }

  /// The value in a slot.
  @inlinable package subscript(_ index: Int) -> Value {
    @inline(__always) get {
      precondition(index >= 0 && index < count)
      return unsafe memory.pointee.start[index]
    }
    @inline(__always) nonmutating set {
      precondition(index >= 0 && index < count)
      // Releasing the old value may run code that uses the table, so the new value must be stored first.
      let old = unsafe memory.pointee.start[index]
      unsafe memory.pointee.start[index] = newValue
      withExtendedLifetime(old) {}
    }
  }

  /// Doubles the number of slots. The new slots get the given value.
  package func grow(repeating value: Value) {
    let (old, count) = unsafe (memory.pointee.start, memory.pointee.count)
    let start = UnsafeMutablePointer<Value>.allocate(capacity: 2 * count)
    unsafe start.moveInitialize(from: old, count: count)
    unsafe (start + count).initialize(repeating: value, count: count)
    unsafe old.deallocate()
    unsafe memory.pointee = Memory(start: start, count: 2 * count)
  }
}
