import Foundation
import TestSupport
import Testing

// The trial of brokers before a device is in an account, by which `fleet setup` decides.
extension FleetServiceTests {
  /// Returns the rows of a trial once no outcome is open any more.
  private func trial(of device: FleetUnderTest) throws -> [String] {
    var rows = try device.ask("fleet try")
    try device.wait("the trial ends") {
      rows = try device.ask("fleet tried")
      return !rows.contains { $0.contains("outcome=trying") }
    }
    #expect(rows.last == "OK \(rows.count - 1)", "\(rows)")
    return Array(rows.dropLast())
  }

  @Test func `a trial of brokers tells which one lets this device in, and why the others do not`() throws {
    let open = try BrokerUnderTest()
    let accounts = try BrokerOfAccounts()
    try accounts.admit("site", "right")
    let closed = try BrokerUnderTest.listener()
    close(closed.descriptor)
    let lines = [open.port, accounts.broker.port, closed.port].map { "Broker=mqtt://127.0.0.1:\($0)" }
    let encrypted = "Broker=mqtts://127.0.0.1:\(closed.port)"
    let device = try FleetUnderTest((lines + [encrypted, "Username=site"]).joined(separator: "\n"))
    let rows = try trial(of: device)
    #expect(rows.count == 4, "\(rows)")
    // With TLS, libmosquitto calls that an error of TLS.
    let lost = /outcome=failed reason="(Connection refused|nobody listens at the port in Broker=, )/
    #expect(rows[3].hasPrefix("* broker=mqtts://127.0.0.1:\(closed.port) ") && rows[3].contains(lost), "\(rows)")
    #expect(rows[0] == "* broker=mqtt://127.0.0.1:\(open.port) outcome=taken")
    #expect(rows[1].contains(" outcome=refused reason="), "\(rows)")
    #expect(rows[2].contains(" outcome=failed reason=\"Connection refused\""), "\(rows)")
    // With the password.
    device.end(with: SIGTERM)
    try device.give("right\n", as: "fleet.password")
    try device.start()
    #expect(try trial(of: device)[1] == "* broker=mqtt://127.0.0.1:\(accounts.broker.port) outcome=taken")
    // A trial ends with the configuration that it is about, and carries no message.
    try device.reload("\(open.configuration)\nUsername=site")
    try device.wait("the trial has ended") { try device.ask("fleet tried") == ["OK 0"] }
    #expect(try trial(of: device) == ["* broker=mqtt://127.0.0.1:\(open.port) outcome=taken"])
    #expect(try open.retained("identityd/#").isEmpty && device.ask("fleet status").contains("* state=no-account"))
  }

  @Test func `a broker that depends on the account is tried as far as possible, and whole in the account`() throws {
    let accounts = try BrokerOfAccounts()
    let device = try FleetUnderTest("\(accounts.broker.configuration)\n\(BrokerOfAccounts.settings)\nSpread=0")
    let rows = try trial(of: device)
    #expect(rows.count == 1 && rows[0].contains(" outcome=untried reason=\"the broker answers, "), "\(rows)")
    #expect(try device.ask("account create alice") == ["OK"])
    #expect(try trial(of: device)[0].contains(" outcome=refused "))
    try accounts.admit(device.ask("fleet credentials")[0])
    #expect(try trial(of: device) == ["* broker=\(try self.url(of: accounts)) outcome=taken"])
    try device.reload("Broker=mqtts://%a2.invalid")
    try device.wait("the account's address is tried") {
      try trial(of: device)[0].contains("outcome=failed reason=\"the host name in Broker= is not known")
    }
  }

  @Test func `without an account, an address that depends on the account is not tried`() throws {
    let device = try FleetUnderTest("Broker=mqtts://%a2.invalid")
    let rows = try trial(of: device)
    #expect(
      rows == [
        "* broker=mqtts://%a2.invalid outcome=untried reason=\"the address of the broker depends on the account, and this "
          + "device is in none\""
      ])
    try device.reload("")
    try device.wait("a trial needs a broker") {
      try device.ask("fleet try") == [
        "ERR unavailable no broker is configured; run 'identityctl fleet setup mqtts://USER@HOST'"
      ]
    }
  }

  private func url(of accounts: BrokerOfAccounts) throws -> String {
    String(accounts.broker.configuration.dropFirst("Broker=".count))
  }

  @Test func `setup refuses what would change nothing, or would tell a secret`() throws {
    let client = DaemonUnderTest.binaries.appending(path: "identityctl").path
    func setUp(_ words: [String], as user: String? = nil) throws -> (status: Int32, errors: String) {
      let prefix = user.map { ["setpriv", "--reuid=\($0)", "--regid=\($0)", "--clear-groups"] } ?? []
      let outcome = try run(prefix + ["setsid", "--wait", client, "fleet", "setup"] + words)
      return (outcome.status, outcome.errors)
    }
    for (words, reason) in [
      (["host"], "'host' is no address of a broker, such as mqtts://USER@HOST"),
      (["mqtts://site:secret@host"], "every user can read a password on the command line"),
      (["mqtts://@host"], "'' cannot be the name of a user in BROKER"),
      (["mqtts://site@host"], "there is no terminal to ask for the password at; '--password-file=PATH'"),
      (["mqtts://host", "--password-file=/dev/null"], "'--password-file' needs a user in BROKER"),
      (["mqtts://site@host", "--password-file=/dev/null"], "/dev/null is empty"),
      (["mqtts://host", "--create=a", "--join=b"], "'--create' cannot be combined with '--join'"),
      (["mqtts://site@host", "--join=-", "--password-file=-"], "the code and the password cannot both be on standard"),
      (["mqtts://host", "--socket=/run/x"], "'--socket' cannot be combined with 'fleet setup'"),
    ] {
      let outcome = try setUp(words)
      #expect(outcome.status != 0 && outcome.errors.contains(reason), "\(words): \(outcome)")
    }
    try #require(isRoot)
    let other = try setUp(["mqtts://host"], as: "65534")
    #expect(other.status != 0 && other.errors.contains("run it as root, or with --user"), "\(other)")
    #expect(!FileManager.default.fileExists(atPath: "/etc/identityd/identity-fleet.conf.d/50-setup.conf"))
  }
}
