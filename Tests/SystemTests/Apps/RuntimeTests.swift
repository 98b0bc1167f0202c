import Foundation
import TestSupport
import Testing

/// Containers of podman and docker, with an image made from the system that they run on.
extension SystemTests {
  /// The release with the container runtimes. See `packaging/tools/container`.
  static let runtimeSuites = Container.suites.filter { $0 == "trixie" }
  private static let person = "carl"

  /// A command that starts a container, and the user of the container's process outside of it.
  struct ContainerStart: CustomTestStringConvertible, Sendable {
    let command: String
    /// Whether an unprivileged user starts the container, and not root.
    var isRootless = false
    /// The user. Nil for the user who starts the container.
    var user: String?

    var testDescription: String { (isRootless ? "rootless " : "") + command }
  }

  /// The commands to test. Each container gets the socket's folder. Its resources are not limited, since the cgroups of
  /// the tests have no controllers.
  private static let starts: [ContainerStart] = [
    .init(command: "podman run"),
    .init(command: "podman run --runtime=runc"),
    .init(command: "podman run --user=33", user: "33"),
    .init(command: "podman run --uidmap=0:300000:1000", user: "300000"),
    .init(command: "podman run --cgroup-manager=cgroupfs"),
    // This container has the namespaces of the host and all rights. Only its cgroup identifies it.
    .init(command: "podman run --privileged --pid=host --cgroupns=host --userns=host"),
    .init(command: "podman run", isRootless: true),
    .init(command: "podman run --userns=keep-id", isRootless: true),
    .init(command: "docker run"),
    .init(command: "docker run --user=33", user: "33"),
    .init(command: "docker run --privileged --pid=host --cgroupns=host"),
  ]

  /// Creates an image of `identityctl` and a shell for each runtime, and a user who may run containers.
  ///
  /// - Returns: the ID of this user.
  @discardableResult
  func prepareImage(_ system: Container) async throws -> String {
    // No cgroup has a controller here, and overlayfs cannot be mounted on top of another.
    try await system.write("[containers]\npids_limit=0\nnetns=\"none\"", to: "/etc/containers/containers.conf")
    try await system.write(
      """
      [storage]
      driver="vfs"
      graphroot="/var/lib/containers/storage"
      runroot="/run/containers/storage"
      """, to: "/etc/containers/storage.conf")
    try await system.write(
      #"{ "bridge": "none", "iptables": false, "ip6tables": false, "storage-driver": "vfs" }"#,
      to: "/etc/docker/daemon.json")
    return try await system.shell(
      """
      # After a reboot, these are gone. The kernel permits a new /proc in a user namespace only if a complete /proc is
      # visible.
      mountpoint --quiet /run/whole-proc || { mkdir /run/whole-proc; mount -t proc proc /run/whole-proc; }
      systemctl start docker.service
      if ! [ -e /image.tar ]; then
        cd "$(mktemp --directory)"
        chmod 755 .
        mkdir -p etc proc sys dev tmp run usr/bin usr/lib usr/lib64
        ln -s usr/bin usr/lib usr/lib64 .
        for program in /usr/bin/dash /usr/bin/cat /usr/bin/sleep /usr/bin/identityctl; do
          for file in $program $(ldd $program | grep --only-matching '/[^ ]*'); do
            mkdir -p ".$(dirname "$file")"
            cp --dereference --no-clobber --update=none "$file" ".$file"
          done
        done
        mv usr/bin/dash usr/bin/sh
        tar --create --file=/image.tar .
        podman import --quiet /image.tar local/probe
        docker import /image.tar local/probe
        useradd --create-home --shell=/bin/sh \(Self.person)
        loginctl enable-linger \(Self.person)
        systemd-run --user --machine=\(Self.person)@ --quiet --wait --pipe podman import --quiet /image.tar local/probe
      fi >&2
      id --user \(Self.person)
      """)
  }

  @Test(arguments: runtimeSuites)
  func `row 36e: podman and docker containers are contained peers, whoever starts them`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let person = try await prepareImage(system)
    for start in Self.starts {
      let wrapper = start.isRootless ? "systemd-run --user --machine=\(Self.person)@ --quiet --wait --pipe" : ""
      let answers = try await system.shell(
        """
        \(wrapper) \(start.command) --rm --network=none --volume=/run/identityd:/run/identityd local/probe /bin/sh -c '
          identityctl --json whoami
          identityctl item put service=s account=a data=eA==
          identityctl --json item find group=user:0 service=s || true
          identityctl --json --yes renew device || true
          identityctl prove vault'
        """
      ).split(separator: "\n").map(String.init)
      try #require(answers.count == 5, "\(start): \(answers)")
      let peer = try system.peer(answers[0])
      let name = try #require(peer.container, "\(start): \(answers)")
      let words = name.split(separator: "@", omittingEmptySubsequences: false).map(String.init)
      #expect(words[0].count == 64 && words[0].allSatisfy(\.isHexDigit), "\(start): \(answers)")
      #expect(words.dropFirst() == (start.isRootless ? [person] : []), "\(start): \(answers)")
      #expect(peer.app == "container:\(name)", "\(start)")
      #expect(!peer.admin, "\(start)")
      #expect(String(peer.uid) == start.user ?? (start.isRootless ? person : "0"), "\(start)")
      #expect(answers[1] == "created", "\(start)")
      try await expect(
        ["app": peer.app, "user": "\(peer.uid)", "container": name, "contained": "true"], inProof: answers[4],
        of: "\(start)", system)
      for refused in answers[2...3] { #expect(refused.contains(#""code":"denied""#), "\(start): \(refused)") }
    }
  }

  @Test(arguments: runtimeSuites)
  func `row 36e: a quadlet is identified as its service and is no admin`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let person = try await prepareImage(system)
    let quadlet = """
      [Container]
      Image=localhost/local/probe
      Volume=/run/identityd:/run/identityd
      Exec=/bin/sh -c "identityctl --json whoami; identityctl prove vault"
      [Service]
      Type=oneshot
      """
    try await system.write(quadlet, to: "/etc/containers/systemd/probe.container")
    try await system.write(quadlet, to: "/etc/containers/systemd/users/\(person)/probe.container")
    try await system.write(
      "[App]\nUnit=probe.service\nUser=root", to: "\(Container.manifests)/org.example.probe.app")
    let services = [
      (options: "", unit: "_SYSTEMD_UNIT", app: "org.example.probe", uid: "0"),
      (
        options: "--user --machine=\(Self.person)@", unit: "_SYSTEMD_USER_UNIT", app: "unit:probe.service@\(person)",
        uid: person
      ),
    ]
    for (options, unit, app, uid) in services {
      let text = try await system.shell(
        """
        systemctl \(options) daemon-reload
        systemctl \(options) start probe.service
        journalctl --sync
        # The log driver of podman writes the line a second time.
        journalctl --quiet --output=cat \(unit)=probe.service | grep '^{' | uniq
        journalctl --quiet --output=cat \(unit)=probe.service | grep '^ey' | uniq
        """)
      let lines = text.split(separator: "\n").map(String.init)
      try #require(lines.count == 2, "\(text)")
      let peer = try system.peer(lines[0])
      let unitFact = options.isEmpty ? "unit" : "user_unit"
      try await expect(
        ["app": app, "user": uid, unitFact: "probe.service", "contained": "true"], inProof: lines[1], of: "\(options)",
        system)
      #expect(peer.app == app, "\(text)")
      #expect(String(peer.uid) == uid && !peer.admin, "\(text)")
    }
    try await system.shell("rm --recursive /etc/containers/systemd; systemctl daemon-reload")
  }

  /// The source of a subordinate ID module as a directory service brings one (libsubid(3), `subid:` of
  /// nsswitch.conf(5)). Like the module of SSSD, it knows the ranges of an owner, but not the owner of an ID.
  private static let rangeSource = """
    #include <stdbool.h>
    #include <stdlib.h>
    #include <string.h>
    enum status { success, unknown_user, error_connection, error };
    struct range { unsigned long start, count; };
    enum { first = 3000000, count = 65536 };
    static bool is_known(const char *owner) { return strcmp(owner, "\(person)") == 0; }
    enum status shadow_subid_has_any_range(const char *owner, int type, bool *result) {
      *result = is_known(owner);
      return success;
    }
    enum status shadow_subid_has_range(const char *owner, unsigned long start, unsigned long length, int type,
                                       bool *result) {
      *result = is_known(owner) && start >= first && start + length <= first + count;
      return success;
    }
    enum status shadow_subid_list_owner_ranges(const char *owner, int type, struct range **ranges, int *length) {
      if (!is_known(owner)) return unknown_user;
      *ranges = malloc(sizeof(struct range));
      **ranges = (struct range){ first, count };
      *length = 1;
      return success;
    }
    enum status shadow_subid_find_subid_owners(unsigned long id, int type, unsigned **owners, int *length) {
      return error;
    }
    void shadow_subid_free(void *result) { free(result); }
    """

  @Test(arguments: runtimeSuites)
  func `row 30b: subordinate users from a directory service count as their owner`(suite: String) async throws {
    let system = try await Container.ready(suite)
    let person = try await prepareImage(system)
    let folder = try TemporaryFolder()
    try folder.write("source.c", Self.rangeSource)
    let compiled = try await run(
      URL(filePath: "/usr/bin/cc"), ["-shared", "-fPIC", "-o", folder["source.so"], folder["source.c"]])
    try #require(compiled.status == 0, "\(compiled.errors)")
    try await system.copy(URL(filePath: folder["source.so"]), to: "/usr/lib/libsubid_directory.so")
    let user = "systemd-run --user --machine=\(Self.person)@ --quiet --wait --pipe"
    try await system.shell(
      """
      for file in subuid subgid nsswitch.conf; do cp /etc/$file /root/$file; done
      sed -i '/^\(Self.person):/d' /etc/subuid /etc/subgid
      echo 'subid: directory' >>/etc/nsswitch.conf
      systemctl restart identityd.service
      \(user) podman system migrate
      """)
    try await eventually("the owner is known") {
      let text = try await system.shell(
        """
        \(user) podman run --rm --user=33 --volume=/run/identityd:/run/identityd local/probe identityctl --json whoami
        """)
      let peer = try system.peer(text)
      #expect(peer.uid == 3_000_032, "\(text)")
      return peer.container?.hasSuffix("@\(person)") == true
    }
    try await system.shell(
      """
      for file in subuid subgid nsswitch.conf; do mv /root/$file /etc/$file; done
      systemctl restart identityd.service
      \(user) podman system migrate
      """)
  }
}
