import Foundation
import TestSupport
import Testing

/// `identityctl fleet setup`, and the section "SETTING UP" of identity-fleet(8), typed from the page on two machines.
extension SystemTests {
  private static let password = "correct-horse"
  private static let host = "desk.example.org"
  private static let setup = "/etc/identityd/identity-fleet.conf.d/50-setup.conf"
  private static let authorities = "/etc/identityd/identity-fleet-ca.pem"
  private static let secret = "/etc/credstore/fleet.password"

  @Test(arguments: Container.newest)
  func `the commands of the manual lead from two machines to two devices that list each other`(
    suite: String
  ) async throws {
    try await withMachines(suite) { desk, laptop in
      let commands = try ["broker", "first device", "further device"].map(commands(of:))
      #expect(commands.map(\.count) == [5, 2, 3], "\(commands)")
      try await type(commands[0], on: desk)
      let code = try #require(
        try await type(commands[1], on: desk).firstMatch(of: /([0-9A-Z]{4}-){3}[0-9A-Z]{4}/)?.0)
      try await copy("/var/lib/mosquitto/fleet.crt", from: desk, to: laptop)
      let further = commands[2].filter { !$0.hasPrefix("scp ") }
      try await type(further.map { $0.replacing("7KQ2-M4XD-9TRW-A3Z9", with: code) }, on: laptop)
      try await expectBothListed(desk, laptop)
      for machine in [desk, laptop] {
        #expect(try await machine.property("UnitFileState", of: "identity-fleet.service") == "enabled")
        let modes = try await machine.shell("stat --format='%a %U' \(Self.setup) \(Self.authorities) \(Self.secret)")
        #expect(modes == "644 root\n644 root\n600 root")
        let journal = "journalctl --boot --output=cat --unit=identity-fleet.service --unit=identityd.service"
        #expect(try await !machine.shell(journal).contains(Self.password))
      }
      try await expectPutBack(on: desk)
    }
  }

  @Test(arguments: Container.oldest)
  func `with a user for the account, the commands of the manual do so, too`(suite: String) async throws {
    try await withMachines(suite) { desk, laptop in
      try await type(commands(of: "broker"), on: desk)
      let shown = try await type(commands(of: "first device with a user for the account"), on: desk)
      let credentials = try #require(shown.firstMatch(of: /User: (\S+)\s+Password: (\S+)/))
      try await type(
        commands(of: "user for the account").map { $0.replacing("USER", with: credentials.1) }, on: desk,
        password: String(credentials.2))
      try await type(commands(of: "connection with the user"), on: desk)
      for file in ["/var/lib/mosquitto/fleet.crt", "/root/invitation"] { try await copy(file, from: desk, to: laptop) }
      try await laptop.shell("dpkg --install \(Container.others)/identity-fleet_*.deb")
      try await type(commands(of: "further device with a user for the account"), on: laptop)
      try await expectBothListed(desk, laptop)
      // The broker keeps the account to itself.
      let other = try await desk.attempt(
        "mosquitto_sub -h \(Self.host) -p 8883 --cafile /root/fleet.crt -u site -P wrong -t 'identityd/#' -W 2")
      #expect(other.status != 0)
      try await setUpOfUser(on: desk)
    }
  }

  // MARK: The machines

  /// Boots a second machine, and makes it forget its identity. Both reach each other by the host's name.
  private func withMachines(_ suite: String, _ body: (Container, Container) async throws -> Void) async throws {
    let desk = try await Container.ready(suite)
    let prepare = "echo '127.0.0.1 \(Self.host)' >>/etc/hosts"
    try await desk.withCopy(machineID: "0123456789abcdef0123456789abcdef") { laptop in
      try await laptop.shell(
        "\(prepare); systemctl stop identityd.socket identityd.service; rm -rf /var/lib/identityd/*; "
          + "systemctl start identityd.socket")
      try await desk.shell("\(prepare); systemctl unmask mosquitto.service; mkdir --parents /etc/mosquitto")
      do {
        try await body(desk, laptop)
      } catch {
        try await tidy(desk)
        throw error
      }
      try await tidy(desk)
    }
  }

  private func tidy(_ system: Container) async throws {
    try await system.shell(
      """
      identityctl account leave --yes || true
      for try in $(seq 900); do [ "$(identityctl account)" ] || break; sleep 0.1; done
      systemctl stop mosquitto.service || true
      systemctl mask mosquitto.service
      rm -f /etc/mosquitto/conf.d/identity-fleet.conf /etc/mosquitto/identity-fleet.acl /var/lib/mosquitto/* /root/*
      sed -i '/\(Self.host)/d' /etc/hosts
      dpkg --purge identity-fleet
      """)
    // A purge leaves nothing of it, and no password.
    for path in [Self.setup, Self.authorities, Self.secret, "/usr/share/identity-fleet"] {
      #expect(try await system.attempt("[ ! -e \(path) ]").status == 0, "\(path)")
    }
  }

  /// Copies a file into the home of root on another machine.
  private func copy(_ path: String, from one: Container, to other: Container) async throws {
    let name = URL(filePath: path).lastPathComponent
    let text = try await one.shell("base64 \(path)")
    try await other.write(text, to: "/root/\(name).base64")
    try await other.shell("base64 --decode /root/\(name).base64 >/root/\(name)")
  }

  // MARK: The page

  /// Returns the commands of a block of the page, each in one line.
  private func commands(of name: String) throws -> [String] {
    let page = try String(
      contentsOf: Document.root.appending(path: "packaging/man/identity-fleet.8"), encoding: .utf8)
    let pattern = try Regex(
      "tested as \(name)\\n\\.Bd .*\\n((?:[^.].*\\n)+)\\.Ed", as: (Substring, Substring).self)
    let block = try #require(page.firstMatch(of: pattern)).output
    let text = block.1.replacing("\\-", with: "-").replacing(/\s*\\e\n\s*/, with: " ")
    return text.split(separator: "\n").compactMap { $0.hasPrefix("# ") ? String($0.dropFirst(2)) : nil }
  }

  /// Types commands at a terminal, with the answers to their questions. Returns all that the terminal shows.
  @discardableResult
  private func type(
    _ commands: [String], on system: Container, password: String = SystemTests.password
  ) async throws -> String {
    var shown = ""
    for command in commands {
      // The system has no network; its packages and the archive are on its disk.
      let local = command.replacing(/^apt install (.*)identity-fleet$/) { match in
        "apt-get --quiet --quiet update && apt-get install --yes --no-install-recommends \(match.1)"
          + "\(Container.others)/identity-fleet_*.deb"
      }
      try await system.write("cd /root; \(local)", to: "/run/typed/command")
      shown += try await system.shell(
        """
        cd /run/typed; rm -f input output; mkfifo input
        script --quiet --flush --return --command 'sh -eu /run/typed/command' output <input >/dev/null &
        typist=$!
        exec 3>input
        answered=0
        while kill -0 $typist 2>/dev/null; do
          asked=$(grep --only-matching --text --ignore-case --extended-regexp '(word|phrase|once more)[^:]*: *' output |
            wc -l)
          if [ "$asked" -gt "$answered" ]; then
            answered=$((answered + 1))
            # The command may have ended, with such a word in its last line.
            printf '%s\\n' '\(password)' >&3 || true
          fi
          sleep 0.1
        done
        wait $typist || { status=$?; cat output; exit $status; } >&2
        cat output
        """)
      shown += "\n"
    }
    return shown
  }

  private func expectBothListed(_ desk: Container, _ laptop: Container) async throws {
    for machine in [desk, laptop] {
      try await eventually("both devices are listed") {
        try await machine.shell("identityctl devices --json").matches(of: /"uuid":/).count == 2
      }
      #expect(try await machine.shell("identityctl account") == "alice")
    }
  }

  // MARK: Failures

  /// Checks that a broker that does not let the device in changes nothing.
  private func expectPutBack(on system: Container) async throws {
    let files = "sha256sum \(Self.setup) \(Self.secret) \(Self.authorities)"
    let former = try await system.shell(files)
    try await system.shell(
      """
      runuser -u mosquitto -- openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -subj /CN=other \
        -keyout /tmp/other.key -out /tmp/other.crt
      cat /tmp/other.crt /tmp/other.key >/tmp/both
      """)
    for (words, reason) in [
      ("mqtts://site@\(Self.host)", "the broker refuses"),
      ("mqtts://site@\(Self.host) --ca-file=/tmp/other.crt", "the broker's certificate is not accepted"),
      ("mqtts://site@\(Self.host):1", "nobody listens at the port"),
      ("mqtt://site@\(Self.host)", "is neither encrypted nor on this machine"),
      ("mqtts://site@host:99999", "Broker"),
      ("mqtts://site@\(Self.host) --ca-file=/tmp/both", "has a private key"),
      ("mqtts://site@\(Self.host) --ca-file=/etc/passwd", "has no certificate in PEM"),
    ] {
      let options = words.contains("--ca-file") ? words : "\(words) --ca-file=/var/lib/mosquitto/fleet.crt"
      let outcome = try await system.attempt("echo wrong | identityctl fleet setup \(options) --password-file=-")
      // Some releases of libmosquitto leave the kernel's word.
      let errors = outcome.errors.replacing("Connection refused", with: "nobody listens at the port")
      #expect(outcome.status != 0 && errors.contains(reason), "\(words): \(outcome)")
      #expect(try await system.shell(files) == former, "\(words)")
    }
    try await expectPutBackAfterSignals(on: system, files)
    try await eventuallyLive(system)
    // Without a terminal and a question: nothing but JSON.
    let again = try await system.shell(
      "echo \(Self.password) | identityctl fleet setup mqtts://site@\(Self.host) --password-file=- --json "
        + "--ca-file=\(Self.authorities)")
    #expect(again == "{\"outcome\":\"taken\",\"configuration\":\"\(Self.setup)\"}")
  }

  /// Checks that a person who gives up during the trial, which a silent broker makes long, keeps the former configuration.
  private func expectPutBackAfterSignals(on system: Container, _ files: String) async throws {
    let former = try await system.shell(files)
    try await system.shell("systemctl kill --signal=STOP mosquitto.service")
    for (signal, status, unit) in [("INT", 130, "start"), ("TERM", 143, "start"), ("HUP", 129, "stop")] {
      // The signal comes when the new files are in force.
      let outcome = try await system.attempt(
        """
        echo wrong >/tmp/wrong
        systemctl \(unit) identity-fleet.service
        [ \(unit) = stop ] || systemctl restart --no-block identity-fleet.service
        env --default-signal=INT identityctl fleet setup mqtts://site@\(Self.host):8883 \
          --ca-file=/var/lib/mosquitto/fleet.crt --password-file=/tmp/wrong &
        for try in $(seq 300); do
          if grep --quiet :8883 \(Self.setup) && systemctl is-active --quiet identity-fleet.service; then break; fi
          sleep 0.1
        done
        kill -\(signal) $!
        wait $!
        """)
      #expect(outcome.status == Int32(status), "\(signal): \(outcome)")
      #expect(outcome.errors.contains("interrupted; the former configuration is in force again"), "\(outcome)")
      #expect(try await system.shell(files) == former, "\(signal)")
      try await eventually("the unit is as it was before \(signal)") {
        let state = try await system.attempt("systemctl is-active identity-fleet.service").output
        return state == (unit == "start" ? "active\n" : "inactive\n")
      }
    }
    try await system.shell("systemctl kill --signal=CONT mosquitto.service; systemctl start identity-fleet.service")
  }

  /// Sets the service of a user up, whose configuration is in the user's home.
  private func setUpOfUser(on system: Container) async throws {
    try await system.shell(
      """
      id --user owner >/dev/null 2>&1 || useradd --create-home owner
      loginctl enable-linger owner
      systemctl start "user@$(id --user owner).service"
      cp /var/lib/mosquitto/fleet.crt /home/owner
      """)
    func owner(_ script: String) async throws -> Outcome {
      try await system.attempt(
        "cd /home/owner; setpriv --reuid=owner --regid=owner --init-groups env HOME=/home/owner "
          + "XDG_RUNTIME_DIR=/run/user/$(id --user owner) sh -euc '\(script)'")
    }
    let named = try await owner("identityctl --user fleet setup mqtts://site@\(Self.host)")
    #expect(named.errors.contains("the service of a user has no password at a broker"), "\(named)")
    let command = "identityctl --user fleet setup mqtts://account@\(Self.host) --ca-file=fleet.crt"
    let outcome = try await owner("\(command) --json")
    let file = "/home/owner/.config/identityd/identity-fleet.conf"
    #expect(outcome.output.contains("\"outcome\":\"untried\",\"configuration\":\"\(file)\""), "\(outcome)")
    #expect(try await owner("systemctl --user is-enabled identity-fleet.service").output == "enabled\n")
    // A file of this user is not lost without a question.
    _ = try await owner("echo \"[Fleet]\" >.config/identityd/identity-fleet.conf")
    let kept = try await owner(command)
    #expect(kept.status == 2 && kept.errors.contains("is not a file of 'fleet setup'; to replace"), "\(kept)")
    #expect(try await owner("\(command) --yes").status == 0)
    _ = try await owner("systemctl --user disable --now identity-fleet.service identityd.socket identityd.service")
    try await system.shell("rm -rf /home/owner/.config /home/owner/.local")
  }
}
