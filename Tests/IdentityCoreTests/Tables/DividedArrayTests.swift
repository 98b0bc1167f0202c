import TestSupport
import Testing

@testable import IdentityCore

struct DividedArrayTests {
  @Test(arguments: [0, 1, 127, 128, 129, 256, 1_000])
  func `appended elements are read back in order`(count: Int) {
    var divided: DividedArray<Int> = []
    for number in 0..<count { divided.append(number) }
    #expect(divided.count == count)
    #expect(Array(divided) == Array(0..<count))
    #expect(divided == DividedArray(0..<count))
    #expect(divided != DividedArray(0...count))
    #expect((0..<count).allSatisfy { divided[$0] == $0 })
  }

  @Test func `copies are independent`() {
    var first = DividedArray(0..<500)
    var second = first
    second[3] = -3
    second.append(-500)
    first[499] = -499
    #expect(Array(first) == Array(0..<499) + [-499])
    #expect(Array(second) == [0, 1, 2, -3] + Array(4..<500) + [-500])
    #expect(first != second)
  }

  @Test func `an element can be changed in place`() {
    var divided: DividedArray<[String]> = [["a"], []]
    divided[0].append("b")
    #expect(Array(divided) == [["a", "b"], []])
  }
}
