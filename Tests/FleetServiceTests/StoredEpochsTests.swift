import FleetCore
import FleetSeal
import FleetService
import Testing

/// The stored keys of epochs.
struct StoredEpochsTests {
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
    #expect(read.learned == [0x1_0003])
    #expect(read.entering(Epoch(number: 0x1_0003, former: 0x1_0007), two).learned == [])
    #expect(read.keys.map { $0.key.copy() } == [one.copy(), two.copy()])
  }

  @Test func `other bytes are refused`() throws {
    let epochs = StoredEpochs.first.entering(Epoch(number: 0x1_0007, former: 1), try key())
    let bytes = epochs.copy()
    for count in 0..<bytes.count {
      var part = Array(bytes[..<count])
      #expect(StoredEpochs(consuming: &part) == nil, "\(count) bytes")
    }
    var flagged = bytes
    flagged[flagged.count - SecretKey.length - 1] = 2
    #expect(StoredEpochs(consuming: &flagged) == nil)
    // The number of the key is that of another epoch.
    var other = bytes
    other[other.count - SecretKey.length - 2] ^= 1
    #expect(StoredEpochs(consuming: &other) == nil)
  }

  @Test func `the oldest keys have to go, but never the present one`() throws {
    let present = Epoch(number: 0x1_0000, former: 1)
    var epochs = StoredEpochs.first.entering(present, try key())
    let most = UInt32(StoredEpochs.mostKeys)
    for number in 2...20 { epochs = epochs.learning(UInt32(number), try key()) }
    #expect(epochs.keys.map(\.number) == [0x1_0000] + Array(13...20))
    #expect(epochs.learned == Set(13...20))
    for number in 1...(most - 1) { epochs = epochs.entering(Epoch(number: 0x1_0000 + number, former: 1), try key()) }
    #expect(epochs.keys.map(\.number) == [20] + Array(0x1_0001...0x1_0000 + most - 1))
    #expect(epochs.learned == [20])
    epochs = epochs.learning(7, try key())
    #expect(epochs.keys.map(\.number) == Array(0x1_0001...0x1_0000 + most - 1) + [7])
    #expect(readBack(epochs)?.present.number == 0x1_0000 + most - 1)
  }
}
