import FleetCore
import FleetSeal
import FleetService
import Testing

/// The stored keys of epochs.
@Suite struct StoredEpochsTests {
  private func key() throws -> SecretKey { try #require(SecretKey.random()) }

  private func readBack(_ epochs: StoredEpochs) -> StoredEpochs? {
    var bytes = epochs.copy()
    let read = StoredEpochs(consuming: &bytes)
    #expect(bytes.allSatisfy { $0 == 0 }, "the bytes are wiped")
    return read
  }

  @Test func `an epoch and its keys are read back`() throws {
    #expect(readBack(.first)?.present == .first)
    let (one, two) = (try key(), try key())
    let epoch = Epoch(number: 0x1_0007, former: 1, made: 0x1_0007)
    let epochs = StoredEpochs.first.entering(epoch, one).learning(0x1_0003, two)
    let read = try #require(readBack(epochs))
    #expect(read.present == epoch)
    #expect(read.keys.map(\.number) == [0x1_0007, 0x1_0003])
    #expect(read.keys.map { $0.key.copy() } == [one.copy(), two.copy()])
  }

  @Test func `other bytes are refused`() throws {
    let epochs = StoredEpochs.first.entering(Epoch(number: 0x1_0007, former: 1), try key())
    let bytes = epochs.copy()
    for count in 0..<bytes.count {
      var part = Array(bytes[..<count])
      #expect(StoredEpochs(consuming: &part) == nil, "\(count) bytes")
    }
    // The number of the key is that of another epoch.
    var other = bytes
    other[other.count - SecretKey.length - 1] ^= 1
    #expect(StoredEpochs(consuming: &other) == nil)
  }

  @Test func `the oldest keys have to go, but never the present one`() throws {
    let present = Epoch(number: 0x1_0000, former: 1)
    var epochs = StoredEpochs.first.entering(present, try key())
    let most = UInt32(StoredEpochs.mostKeys)
    for number in 2...(most + 4) { epochs = epochs.learning(number, try key()) }
    #expect(epochs.keys.count == StoredEpochs.mostKeys)
    #expect(epochs.keys.map(\.number) == [0x1_0000] + Array(6...(most + 4)))
    #expect(readBack(epochs)?.present == present)
  }
}
