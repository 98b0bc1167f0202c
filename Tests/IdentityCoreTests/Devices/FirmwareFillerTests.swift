import IdentityCore
import Testing

struct FirmwareFillerTests {
  @Test(
    arguments: [
      "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
      "fefefefe-fefe-fefe-fefe-fefefefefefe", "DEADBEEF-DEAD-BEEF-DEAD-BEEFDEADBEEF",
      "03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009",
      "03D40274-0435-05DC-8506-010700080009", "00010203-0405-0607-0809-0A0B0C0D0E0F",
      "12345678-1234-5678-90AB-CDDEEFAABBCC",
    ])
  func `a value that many machines have is no UUID of the hardware`(text: String) throws {
    #expect(try #require(UUID(Text(text))).isFirmwareFiller)
  }

  @Test(
    arguments: [
      "4C4C4544-0042-3510-8052-B3C04F4B4E32", "03D40274-0435-05BF-D906-D20700080009",
      "00000001-0000-4000-8000-000000000000", "03000200-0400-0500-0006-000700080008",
    ])
  func `a value with something of its own is`(text: String) throws {
    #expect(try !#require(UUID(Text(text))).isFirmwareFiller)
  }
}
