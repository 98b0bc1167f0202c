/// Values by their place, in memory of their own.
///
/// An array that an object holds is looked at with each use, whether somebody else changes it just then. Here a value is
/// taken out or put in as a whole, so there is no need for it.
@safe @usableFromInline
package struct Slots<Value>: ~Copyable {
  @unsafe @usableFromInline struct Memory {
    @usableFromInline var start: UnsafeMutablePointer<Value>
    @usableFromInline var count: Int
  }

  @usableFromInline let memory: UnsafeMutablePointer<Memory>

  /// Makes some, all with the same value.
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

  /// How many places there are.
  @inlinable @inline(__always) package var count: Int { unsafe memory.pointee.count }

  /// The value at a place.
  @inlinable package subscript(_ place: Int) -> Value {
    @inline(__always) get {
      precondition(place >= 0 && place < count)
      return unsafe memory.pointee.start[place]
    }
    @inline(__always) nonmutating set {
      precondition(place >= 0 && place < count)
      // What goes may call others when it ends, who find everything in order.
      let old = unsafe memory.pointee.start[place]
      unsafe memory.pointee.start[place] = newValue
      withExtendedLifetime(old) {}
    }
  }

  /// Makes twice as many places; the new ones have this value.
  package func grow(repeating value: Value) {
    let (old, count) = unsafe (memory.pointee.start, memory.pointee.count)
    let start = UnsafeMutablePointer<Value>.allocate(capacity: 2 * count)
    unsafe start.moveInitialize(from: old, count: count)
    unsafe (start + count).initialize(repeating: value, count: count)
    unsafe old.deallocate()
    unsafe memory.pointee = Memory(start: start, count: 2 * count)
  }
}
