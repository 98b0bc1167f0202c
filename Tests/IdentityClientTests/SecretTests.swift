import IdentityClient
import Testing

struct SecretTests {
  /// Neither private nor local: the printed name of such a type contains an address, whose digits are arbitrary.
  struct Account { let name: String, password: Secret }

  private let secret = Secret("hunter2")

  @Test func `no printed form of a value shows a secret`() {
    let account = Account(name: "alice", password: secret)
    var dumped = ""
    dump(account, to: &dumped)
    dump(secret, to: &dumped)
    let optional: Secret? = secret
    for text in [
      "\(secret)", secret.debugDescription, String(describing: secret), String(reflecting: secret), "\(account)",
      String(reflecting: account), String(describing: optional), "\([secret])", dumped,
    ] {
      #expect(!text.contains("hunter2"), "\(text)")
      // The bytes must not be printed as numbers either. The first ones are 104 117 110.
      #expect(!text.contains("104"), "\(text)")
      #expect(text.contains("Secret"), "\(text)")
    }
    #expect(Mirror(reflecting: secret).children.isEmpty)
  }

  @Test func `a secret is a copy of the given bytes`() {
    var bytes: [UInt8] = [1, 2, 3]
    let secret = Secret(bytes.span)
    bytes[0] = 9
    #expect(secret.count == 3)
    #expect(secret.withBytes { [$0[0], $0[1], $0[2]] } == [1, 2, 3])
  }

  @Test func `an error of the closure is rethrown`() {
    struct Refused: Error {}
    #expect(throws: Refused.self) {
      try secret.withBytes { (_) throws(Refused) in throw Refused() }
    }
  }
}
