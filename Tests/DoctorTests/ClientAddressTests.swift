import Testing

@testable import Doctor

/// The commands of the client in the remedies.
struct ClientAddressTests {
  @Test func `commands of the client reach the daemon that was examined`() {
    for (isAdmin, root) in [(true, ""), (false, "sudo ")] {
      let address = ClientAddress(path: "/tmp/a socket", isAdmin: isAdmin)
      #expect(address.remedy("check").text(for: 1_000) == "\(root)identityctl '--socket=/tmp/a socket' check")
      // The socket of the fleet's service is another one.
      #expect(
        address.fleetRemedy("credentials").text(for: 1_000) == "\(root)identityctl '--socket=/tmp/a socket' status")
    }
    #expect(ClientAddress.system.fleetRemedy("status").text(for: 1_000) == "sudo identityctl fleet status")
    #expect(ClientAddress.system.named("renew", "device") == "'identityctl renew device'")
  }
}
