import LinuxSystem
import Testing

struct WipeTests {
  @Test func `wiped bytes are zeros, and their number stays`() {
    var bytes: [UInt8] = [1, 2, 3]
    bytes.wipe()
    #expect(bytes == [0, 0, 0])
    var nothing: [UInt8] = []
    nothing.wipe()
    #expect(nothing.isEmpty)
  }
}
