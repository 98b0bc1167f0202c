import LinuxSystem
import Testing

struct SubordinateRangesTests {
  @Test(arguments: [
    ("", false), ("passwd: files sss\n", false), ("subid: files\n", false), ("subid:\n", false),
    ("passwd: files\nsubid:\tsss\n", true), ("subid:  sss files # both", true), ("# subid: sss\n", false),
    ("subid: files sss\n", false),
  ])
  func `only a source named before the files counts as another source`(configuration: String, isOther: Bool) {
    #expect(SubordinateRanges.hasOtherSource(configuration) == isOther)
  }
}
