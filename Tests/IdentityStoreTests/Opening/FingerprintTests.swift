import IdentityCore
import IdentityStore
import Testing

struct FingerprintTests {
  @Test(arguments: [
    "x", "bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvD", "é \"quoted\" %s\\n", String(repeating: "a", count: 4_096),
  ])
  func `a fingerprint is the beginning of the token's SHA-256 digest`(token: String) throws {
    let workspace = try Workspace()
    let said = try workspace.run("/bin/sh", "-c", "printf %s \"$0\" | sha256sum | cut -c1-16", token)
    #expect(said.output == "\(Token.fingerprint(of: Text(token)))\n")
    #expect(Token.fingerprint(of: Text(token)).bytes.count == 16)
  }
}
