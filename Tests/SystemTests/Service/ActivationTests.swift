import Testing

/// Start and stop of the daemon, and its socket, which exists before it.
extension SystemTests {
  @Test(arguments: Container.suites)
  func `the first connection to the socket starts the daemon`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    try await system.shell("systemctl stop identityd.service")
    #expect(try await system.property("ActiveState") == "inactive")
    #expect(try await system.property("ActiveState", of: "identityd.socket") == "active")
    #expect(try await system.identifiers() == identifiers)
    #expect(try await system.property("ActiveState") == "active")
  }

  @Test(arguments: Container.suites)
  func `many clients at once start one daemon, and all are answered`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("systemctl stop identityd.service")
    let answers = try await system.shell(
      "for client in $(seq 50); do identityctl get device & done; wait")
    let devices = answers.split(separator: "\n")
    #expect(devices.count == 50)
    #expect(Set(devices).count == 1)
    #expect(try await system.property("NRestarts") == "0")
  }

  @Test(arguments: Container.suites)
  func `row 49: a start returns only when the daemon serves`(suite: String) async throws {
    let system = try await Container.ready(suite)
    for _ in 0..<10 {
      // One script: separate commands would give the daemon time to start before the question.
      let states = try await system.shell(
        """
        systemctl stop identityd.service
        systemctl start identityd.service
        systemctl show --property=ActiveState,StatusText identityd.service
        identityctl --quiet ping
        """)
      #expect(states.contains("ActiveState=active"))
      #expect(states.contains("StatusText=Serving; "))
    }
  }

  @Test(arguments: Container.suites)
  func `the status text describes the daemon's state`(suite: String) async throws {
    let system = try await Container.ready(suite)
    _ = try await system.identifiers()
    try await eventually("an app in the status text") {
      let text = try await system.property("StatusText")
      return text.wholeMatch(of: /Serving; apps: [1-9]\d*; device identifier: machine; store: ok\./) != nil
    }
  }

  @Test(arguments: Container.suites)
  func `row 43: a stop is clean and keeps the state and the socket`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    try await system.shell("systemctl stop identityd.service")
    #expect(try await system.property("ActiveState") == "inactive")
    #expect(try await system.property("Result") == "success")
    #expect(try await system.property("ExecMainStatus") == "0")
    try await system.shell("[ -S /run/identityd/identityd.sock ] && [ -s /var/lib/identityd/identityd.db ]")
    try await system.shell("systemctl start identityd.service")
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `a restart is a new process with the same identifiers`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let identifiers = try await system.identifiers()
    let daemon = try await system.property("MainPID")
    try await system.shell("systemctl restart identityd.service")
    #expect(try await system.property("MainPID") != daemon)
    #expect(try await system.identifiers() == identifiers)
  }

  @Test(arguments: Container.suites)
  func `with the socket stopped a client fails and names the socket`(suite: String) async throws {
    let system = try await Container.ready(suite)
    try await system.shell("systemctl stop identityd.socket")
    #expect(try await system.property("ActiveState") == "inactive")
    let client = try await system.attempt("identityctl get device")
    #expect(client.status == 3)
    #expect(client.errors.contains("/run/identityd/identityd.sock"))
    try await system.shell("[ ! -e /run/identityd/identityd.sock ]")
  }
}
