import Testing

/// An app is a unit with a user: a service that runs jobs for several users keeps these apart.
extension SystemTests {
  /// Creates two users and returns their IDs.
  private func people(_ system: Container) async throws -> (ann: String, ben: String) {
    let numbers = try await system.shell(
      """
      for name in ann ben; do
        getent passwd "$name" >/dev/null || useradd --create-home "$name"
        id --user "$name"
      done
      """)
    let lines = numbers.split(separator: "\n").map(String.init)
    return (try #require(lines.first), try #require(lines.last))
  }

  /// A job that records its app, and whether it can read, store and delete items.
  private static let job = """
    #!/bin/sh
    exec >"/tmp/job.$(id --user --name)" 2>&1
    identityctl whoami | cut --delimiter=' ' --fields=1
    identityctl item read service=job account=first
    identityctl item put service=job account=first "data=$(id --user --name | base64)"
    # Finds no item of another job.
    identityctl item delete service=job account=other || true
    identityctl prove vault >"/tmp/proof.$(id --user --name)"
    """

  /// Returns the apps of the jobs of a unit, by user. Checks that each job found no item of another, and its proof.
  private func jobs(_ system: Container, of unit: String, _ users: [String]) async throws -> [String: String] {
    var apps: [String: String] = [:]
    for user in users {
      let text = try await system.shell(
        """
        tries=0
        until [ -s /tmp/proof.\(user) ]; do
          tries=$((tries + 1))
          [ $tries -lt 300 ] || break
          sleep 0.1
        done
        cat /tmp/job.\(user)
        """)
      let lines = text.split(separator: "\n").map(String.init)
      apps[user] = lines.first
      #expect(lines.count == 4 && lines[1].contains("not-found"), "\(user): \(text)")
      try await expect(
        ["app": lines.first ?? "", "user": try await system.shell("id --user \(user)"), "unit": unit],
        inProof: try await system.shell("cat /tmp/proof.\(user)"), of: "\(user) in \(unit)", system)
    }
    return apps
  }

  private func prepareJobs(_ system: Container) async throws {
    try await system.write(Self.job, to: "/usr/local/bin/job")
    try await system.shell("chmod 755 /usr/local/bin/job; rm -f /tmp/job.* /tmp/proof.*")
  }

  @Test(arguments: Container.oldest)
  func `row 36d: cron jobs are identified by their users and cannot access each other's items`(suite: String)
    async throws
  {
    let system = try await Container.ready(suite)
    let (ann, ben) = try await people(system)
    try await prepareJobs(system)
    try await system.shell(
      """
      for user in ann ben; do echo '@reboot /usr/local/bin/job' | crontab -u "$user" -; done
      echo '@reboot root /usr/local/bin/job' >/etc/cron.d/job
      # cron runs @reboot jobs only at its first start after a boot, which this file marks.
      rm -f /run/crond.reboot
      systemctl restart cron.service
      """)
    let apps = try await jobs(system, of: "cron.service", ["ann", "ben", "root"])
    #expect(
      apps == ["ann": "unit:cron.service:\(ann)", "ben": "unit:cron.service:\(ben)", "root": "unit:cron.service"])
    try await system.shell("rm /etc/cron.d/job; for user in ann ben; do crontab -u $user -r; done")
  }

  @Test(arguments: Container.suites)
  func `at jobs are identified by their users`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let (ann, ben) = try await people(system)
    try await prepareJobs(system)
    try await system.shell(
      """
      systemctl start atd.service
      for user in ann ben; do setpriv --reuid=$user --regid=$user --init-groups sh -c 'cd /; echo job | at now' 2>&1; done
      echo job | at now 2>&1
      """)
    let apps = try await jobs(system, of: "atd.service", ["ann", "ben", "root"])
    #expect(apps == ["ann": "unit:atd.service:\(ann)", "ben": "unit:atd.service:\(ben)", "root": "unit:atd.service"])
  }

  @Test(arguments: Container.suites)
  func `row 36d: a unit that runs as different users is a different app for each`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let (ann, ben) = try await people(system)
    try await prepareJobs(system)
    for user in ["ann", "ben", "root"] {
      try await system.shell("systemd-run --quiet --wait --collect --unit=job --uid=\(user) /usr/local/bin/job")
    }
    let apps = try await jobs(system, of: "job.service", ["ann", "ben", "root"])
    #expect(apps == ["ann": "unit:job.service:\(ann)", "ben": "unit:job.service:\(ben)", "root": "unit:job.service"])
  }

  @Test(arguments: Container.suites)
  func `sudo in a user's service is identified as outside of it`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let (ann, ben) = try await people(system)
    let told = try await system.shell(
      """
      echo 'ann ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ann
      loginctl enable-linger ann
      systemctl start user@\(ann).service
      systemd-run --quiet --wait --pipe --collect --uid=ann --setenv=XDG_RUNTIME_DIR=/run/user/\(ann) \\
        systemd-run --user --quiet --wait --pipe --collect --unit=web sh -euc '
          identityctl whoami
          sudo identityctl item put service=s account=root data=eA== >&2
          sudo identityctl whoami
          sudo -u ben identityctl whoami
          for user in ann root ben; do sudo -u $user identityctl prove vault; done
          identityctl item read service=s account=root 2>&1 || true'
      rm /etc/sudoers.d/ann
      """)
    let lines = told.split(separator: "\n").map(String.init)
    try #require(lines.count == 7, "\(told)")
    for (place, facts) in [
      // sudo begins no session here, so the process stays in the service's control group.
      (3, ["app": "unit:web.service@\(ann)", "user": ann, "user_unit": "web.service"]),
      (4, ["app": "user:0", "user": "0"]), (5, ["app": "user:\(ben)", "user": ben]),
    ] {
      try await expect(facts, inProof: lines[place], of: "sudo", system)
    }
    #expect(
      lines.prefix(3).map { $0.prefix { $0 != " " } } == ["unit:web.service@\(ann)", "user:0", "user:\(ben)"], "\(told)"
    )
    #expect(lines.last?.contains("not-found") == true)
  }

  @Test(arguments: Container.suites)
  func `a dynamic user is identified by its unit, even with another number`(suite: String) async throws {
    let system = try await Container.ready(suite)
    var users: Set<String> = []
    var installations: Set<String> = []
    for name in ["first", "second", "third"] {
      let told = try await system.shell(
        """
        systemd-run --quiet --wait --pipe --collect --unit=dynamic --property=DynamicUser=yes --property=User=\(name) \\
          sh -euc 'id --user; identityctl whoami; identityctl get installation'
        """)
      let lines = told.split(separator: "\n").map(String.init)
      #expect(lines.count == 3 && lines[1] == "unit:dynamic.service", "\(told)")
      users.insert(lines[0])
      installations.insert(lines[2])
    }
    #expect(users.count == 3 && installations.count == 1)
  }

  @Test(arguments: Container.suites)
  func `a pool that runs as several users is several apps, which manifests can name`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let (ann, ben) = try await people(system)
    let ask = """
      systemd-run --quiet --wait --pipe --collect --unit=pool sh -euc '
        for user in root www-data ann ben; do
          setpriv --reuid=$user --regid=$user --init-groups identityctl whoami | cut --delimiter=" " --fields=1
        done'
      """
    #expect(
      try await system.shell(ask).split(separator: "\n")
        == ["unit:pool.service", "unit:pool.service:33", "unit:pool.service:\(ann)", "unit:pool.service:\(ben)"])
    try await system.write("[App]\nUnit=pool.service", to: "\(Container.manifests)/org.pool.app")
    try await system.write("[App]\nUnit=pool.service\nUser=ann", to: "\(Container.manifests)/org.pool.ann.app")
    try await system.shell(
      """
      tries=0
      until [ "$(identityctl app list | grep --count org.pool)" = 2 ]; do
        tries=$((tries + 1))
        [ $tries -lt 300 ]
        sleep 0.1
      done
      """)
    #expect(
      try await system.shell(ask).split(separator: "\n")
        == ["org.pool", "org.pool", "org.pool.ann", "unit:pool.service:\(ben)"])
    // Outside of the unit, a manifest with Unit= has no effect.
    let outside = "systemd-run --quiet --scope --uid=ann identityctl whoami | cut --delimiter=' ' --fields=1"
    #expect(try await system.shell(outside) == "user:\(ann)")
  }
}
