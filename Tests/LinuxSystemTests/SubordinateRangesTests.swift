import LinuxSystem
import Testing

@Suite struct SubordinateRangesTests {
  @Test(arguments: [
    ("", false), ("passwd: files sss\n", false), ("subid: files\n", false), ("subid:\n", false),
    ("passwd: files\nsubid:\tsss\n", true), ("subid:  sss files # both", true), ("# subid: sss\n", false),
    ("subid: files sss\n", false),
  ])
  func `another source than the file counts where it is named first`(configuration: String, isOther: Bool) {
    #expect(SubordinateRanges.hasOtherSource(configuration) == isOther)
  }
}
