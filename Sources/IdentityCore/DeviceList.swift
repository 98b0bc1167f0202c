/// A listed device with its place in the list.
struct NumberedDevice: OrderedElement, Equatable {
  /// The number of the place, from 1.
  let key: Int64
  /// The device.
  let device: ListedDevice
}

/// The devices of the account in the order in which they were added, found by their identifiers.
package struct DeviceList: Equatable, Sendable, Sequence {
  /// The devices by number. A device keeps its number when it gets another identifier.
  private(set) var table = OrderedTable<NumberedDevice>()
  private var numbers = DividedDictionary<UUID, Int64>()
  private var last: Int64 = 0

  init() {}

  /// The number of devices.
  package var count: Int { table.count }

  /// The device with an identifier; nil if it is not listed.
  package subscript(value: UUID) -> ListedDevice? { numbers[value].flatMap { table[$0]?.device } }

  /// Returns the devices in order.
  package func makeIterator() -> some IteratorProtocol<ListedDevice> {
    table.lazy.map(\.device).makeIterator()
  }

  /// Adds a device, which must not be listed, at the end.
  mutating func append(_ device: ListedDevice) {
    last += 1
    table.store(NumberedDevice(key: last, device: device))
    numbers[device.value] = last
  }

  /// Replaces a listed device in its place.
  mutating func replace(_ value: UUID, with device: ListedDevice) {
    guard let number = numbers.removeValue(forKey: value) else { return }
    table.store(NumberedDevice(key: number, device: device))
    numbers[device.value] = number
  }

  /// Removes a listed device.
  mutating func remove(_ value: UUID) {
    if let number = numbers.removeValue(forKey: value) { table.remove(number) }
  }

  /// Two lists are equal if they have the same devices in the same order.
  package static func == (left: Self, right: Self) -> Bool { left.elementsEqual(right) }
}
