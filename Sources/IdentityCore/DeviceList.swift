/// The devices of the account in the order in which they were added, found by their identifiers.
package struct DeviceList: Equatable, Sendable, Sequence {
  /// The devices by number. A device keeps its number when it gets another identifier.
  private var devices = DividedDictionary<Int64, ListedDevice>()
  private var numbers = DividedDictionary<UUID, Int64>()
  private var last: Int64 = 0

  init() {}

  /// The number of devices.
  package var count: Int { devices.count }

  /// The device with an identifier; nil if it is not listed.
  package subscript(value: UUID) -> ListedDevice? { numbers[value].flatMap { devices[$0] } }

  /// Returns the devices in order.
  package func makeIterator() -> some IteratorProtocol<ListedDevice> {
    devices.sorted { $0.key < $1.key }.lazy.map(\.value).makeIterator()
  }

  /// Adds a device, which must not be listed, at the end.
  mutating func append(_ device: ListedDevice) {
    last += 1
    devices[last] = device
    numbers[device.value] = last
  }

  /// Replaces a listed device in its place.
  mutating func replace(_ value: UUID, with device: ListedDevice) {
    guard let number = numbers.removeValue(forKey: value) else { return }
    devices[number] = device
    numbers[device.value] = number
  }

  /// Removes a listed device.
  mutating func remove(_ value: UUID) {
    if let number = numbers.removeValue(forKey: value) { devices[number] = nil }
  }

  /// Two lists are equal if they have the same devices in the same order.
  package static func == (left: Self, right: Self) -> Bool { left.elementsEqual(right) }
}
