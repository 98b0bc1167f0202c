import IdentityCore
import Testing

@testable import ClientFormats

struct QRPictureTests {
  @Test func `a character shows two modules, with a margin of four`() throws {
    let picture = try #require(QRPicture("110/100/001"))
    let margin = String(repeating: "█", count: 11)
    let lines = [margin, margin, "████ ▄█████", "██████▄████", margin, margin]
    // Six lines are twelve rows, one more than the picture has.
    #expect(picture.text(isColoured: false) == lines.map { "\($0)\n" }.joined())
    #expect(picture.text(isColoured: true) == lines.map { "\u{1b}[40;37;1m\($0)\u{1b}[0m\n" }.joined())
  }

  @Test(arguments: ["", "1/1", "10/1", "12/00", "10/01/", "1\n", "11 11"])
  func `anything else is no picture`(text: String) {
    #expect(QRPicture(Text(text)) == nil)
  }

  @Test func `a picture of more than 177 rows is refused`() {
    func square(_ size: Int) -> Text {
      Text(Array(repeating: String(repeating: "1", count: size), count: size).joined(separator: "/"))
    }
    #expect(QRPicture(square(177)) != nil)
    #expect(QRPicture(square(178)) == nil)
  }
}
