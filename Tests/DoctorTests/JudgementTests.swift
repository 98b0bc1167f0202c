import Glibc
import IdentityClient
import IdentityCore
import LinuxSystem
import Testing

@testable import Doctor

/// The findings of the checks for given facts.
struct JudgementTests {
  private static let system = "/run/identityd/identityd.sock"

  // MARK: socket

  @Test(
    arguments: [
      (.refused(ENOENT), nil, "is not there", "sudo systemctl restart identityd.socket"),
      (.refused(ENOTDIR), nil, "is not there", "sudo systemctl restart identityd.socket"),
      (.refused(ECONNREFUSED), .socket, "was left behind", "sudo systemctl restart identityd.socket"),
      (.refused(EACCES), .socket, "uid 1000 may not use", "sudo chmod 0666 \(system)"),
      (.busy("too many"), .socket, "is busy: too many", "sudo ss -x -p src \(system)"),
      (.silent, .socket, "nothing was answered", "sudo systemctl restart identityd.service"),
      (.broken("nonsense"), .socket, "nonsense", "sudo systemctl restart identityd.service"),
    ] as [(Examination.Contact, PathStatus.Kind?, String, String)])
  func `each failure of the socket has its own cause and remedy`(
    contact: Examination.Contact, kind: PathStatus.Kind?, cause: String, mend: String
  ) {
    let place = kind.map { PathStatus($0, owner: 0, group: 0, mode: 0o666) }
    let finding = SocketFacts(examination: examination(contact), place: place).finding
    #expect(finding.result == .failed)
    #expect(finding.faults.first?.cause.contains(cause) == true, "\(finding)")
    #expect(mends(finding) == [mend])
  }

  @Test(arguments: [
    (SocketFault.listener(user: 7), "runs as uid 7", "sudo systemctl restart identityd.socket", "ss -x -l -p src /own"),
    (
      .owner(path: "/a", user: 7), "/a belongs to uid 7", "sudo systemctl restart identityd.socket",
      "ss -x -l -p src /own"
    ),
    (.folderOwner(path: "/b", user: 7), "/b belongs to uid 7", "sudo chown root: /b", "ss -x -l -p src /own"),
    (.openFolder(path: "/c"), "/c is world-writable", "sudo chmod +t /c", "sudo chmod +t /c"),
  ])
  func `an untrusted socket is sent nothing and has its own remedy`(
    fault: SocketFault, cause: String, mend: String, ownMend: String
  ) {
    for (path, mend) in [(Self.system, mend), ("/own", ownMend)] {
      let finding = SocketFacts(examination: examination(.untrusted(fault), at: path), place: nil).finding
      #expect(finding.result == .failed)
      #expect(finding.faults.first?.cause.hasPrefix("nothing was sent to \(path): ") == true, "\(finding)")
      #expect(finding.faults.first?.cause.contains(cause) == true, "\(finding)")
      #expect(mends(finding) == [mend])
    }
  }

  @Test func `a file in the place of the socket is removed first`() {
    let place = PathStatus(.regular, owner: 0, group: 0, mode: 0o600)
    let finding = SocketFacts(examination: examination(.refused(ECONNREFUSED)), place: place).finding
    #expect(mends(finding) == ["sudo rm -r \(Self.system)", "sudo systemctl restart identityd.socket"])
  }

  @Test func `a folder without access is named instead of the socket`() {
    let folders: [SocketFacts.Folder] = [.init(path: "/run", mode: 0o755), .init(path: "/run/identityd", mode: 0o700)]
    let socket = PathStatus(.socket, owner: 0, group: 0, mode: 0o666)
    // Root is not denied, and is told all the same.
    for (contact, place, user) in [
      (Examination.Contact.refused(EACCES), nil, "uid 1000"), (.answered, socket, "users other than root"),
    ] {
      let finding = SocketFacts(examination: examination(contact), place: place, folders: folders).finding
      #expect(finding.faults.map(\.cause) == ["\(user) may not enter /run/identityd, which has mode 0700"])
      #expect(mends(finding) == ["sudo chmod a+x /run/identityd"])
    }
    // A daemon of a user may be in a folder of that user alone.
    let own = SocketFacts(examination: examination(.answered, at: "/own"), place: socket, folders: folders)
    #expect(own.finding.result == .ok)
  }

  @Test func `a socket that not every user may use is a failure for root too`() {
    let socket = PathStatus(.socket, owner: 0, group: 0, mode: 0o660)
    let finding = SocketFacts(examination: examination(), place: socket).finding
    #expect(finding.faults.map(\.cause) == ["not every user may use \(Self.system), which has mode 0660"])
    #expect(mends(finding) == ["sudo chmod 0666 \(Self.system)"])
  }

  @Test func `the remedy for a daemon outside of systemd starts it by hand`() {
    let finding = SocketFacts(examination: examination(.refused(ENOENT), at: "/home/me/a b"), place: nil).finding
    #expect(mends(finding) == ["identityd '--socket=/home/me/a b'"])
  }

  // MARK: manifests

  @Test func `faults that the daemon does not name are counted, and root is advised to check`() {
    func finding(_ faults: [String], _ count: String?) -> Finding {
      ManifestFacts(faults: faults, faultCount: count, isSystem: true).finding
    }
    #expect(finding([], nil).result == .ok)
    #expect(finding([], "1").faults.map(\.cause).first?.hasPrefix("1 fault is in the manifests; the text ") == true)
    #expect(finding([], "20").faults.map(\.cause).first?.hasPrefix("20 faults are in the manifests; ") == true)
    #expect(mends(finding([], "20")) == ["sudo identityctl check"])
    #expect(finding(["/etc/a.app: the manifest has no settings"], "1").faults.count == 1)
  }

  @Test(
    arguments: [
      ("/etc/a.app: the manifest has no settings", ["/etc/a.app"]), ("/etc/a b.app:7: unknown", ["/etc/a b.app"]),
      (
        "/x/a.app and /y/b.app both claim Unit=u.service: neither app is served until one manifest changes",
        ["/x/a.app", "/y/b.app"]
      ),
      ("/etc/apps.d: Permission denied: the installed apps stay as they are", []), ("nonsense", []),
    ] as [(String, [String])])
  func `the names of files are found in the fault texts`(fault: String, files: [String]) {
    #expect(ManifestFacts.files(in: fault) == files)
  }

  @Test func `each kind of fault text has its own remedy, and no text becomes a command`() {
    let folder = ManifestFacts.Place(path: "/etc/apps.d", status: nil)
    func finding(_ fault: String) -> Finding {
      ManifestFacts(faults: [fault], places: [folder], isSystem: true).finding
    }
    let expected: [(String, Finding.Result, [String])] = [
      ("/x/a.app:3: unknown setting [App] Usr=; it is ignored", .warning, ["sudo ${EDITOR:-vi} /x/a.app"]),
      ("/x/a.app:3: [App] User= cannot be 'a b'", .failed, ["sudo ${EDITOR:-vi} /x/a.app"]),
      ("/etc/subuid:2: the line is not OWNER:FIRST:COUNT; it is ignored", .warning, ["sudo ${EDITOR:-vi} /etc/subuid"]),
      (
        "/etc/apps.d: Permission denied: the installed apps stay as they are", .failed,
        ["sudo chmod u=rwx,go=rx /etc/apps.d"]
      ),
      ("/etc/apps.d: this is not a directory: the installed apps stay", .failed, ["sudo ls -ld /etc/apps.d"]),
      (
        "the manifests could not be applied: the store is damaged", .failed,
        ["sudo systemctl reload identityd.service"]
      ),
      ("/other; rm -rf /: Permission denied", .failed, ["sudo systemctl reload identityd.service"]),
    ]
    for (fault, result, mend) in expected {
      #expect(finding(fault).result == result, "\(fault)")
      #expect(mends(finding(fault)) == mend, "\(fault)")
    }
  }

  @Test func `a manifest that others can change is a failure`() {
    func finding(_ status: PathStatus) -> Finding {
      ManifestFacts(faults: [], places: [.init(path: "/d", status: status)], isSystem: true).finding
    }
    #expect(finding(PathStatus(.folder, owner: 0, group: 0, mode: 0o755)).result == .ok)
    #expect(finding(PathStatus(.folder, owner: 0, group: 0, mode: 0o775)).result == .ok)
    #expect(mends(finding(PathStatus(.folder, owner: 0, group: 0, mode: 0o777))) == ["sudo chmod go-w /d"])
    #expect(mends(finding(PathStatus(.regular, owner: 0, group: 50, mode: 0o664))) == ["sudo chmod go-w /d"])
    #expect(mends(finding(PathStatus(.regular, owner: 7, group: 0, mode: 0o644))) == ["sudo chown root: /d"])
    #expect(
      mends(finding(PathStatus(.regular, owner: 0, group: 0, mode: 0o600))) == [
        "sudo chmod o+r /d", "sudo systemctl reload identityd.service",
      ])
  }

  // MARK: key and store

  @Test func `the source of the key decides the result`() {
    func finding(_ status: [(String, String)], at path: String = Self.system) -> Finding {
      MasterKeyFacts(examination(.answered, at: path, status)).finding
    }
    #expect(finding([("master-key", "credential")]).result == .ok)
    #expect(finding([("master-key", "file")], at: "/home/me/socket").result == .ok)
    #expect(finding([("master-key", "file")]).result == .info)
    #expect(mends(finding([("master-key", "file")])) == ["sudo identityd-setup-key"])
    let lost = finding([
      ("master-key", "unavailable"), ("master-key-reason", "items: from the credential identityd.key"),
    ])
    #expect(lost.result == .failed)
    #expect(mends(lost) == ["sudo systemctl restart identityd-key.service identityd.service"])
    #expect(
      mends(finding([("master-key", "unavailable"), ("master-key-reason", "items: from master.key")])) == [
        "sudo cp -a COPY/master.key /var/lib/identityd/master.key && sudo systemctl restart identityd.service"
      ])
    #expect(MasterKeyFacts(examination(.silent)).finding.result == .skipped)
  }

  @Test func `items without a backup and without a recovery key are a warning`() {
    func finding(_ rows: [(String, String)], at path: String = Self.system) -> Finding {
      MasterKeyFacts(examination(.answered, at: path, [("master-key", "credential")] + rows)).finding
    }
    let items = ("items", "3")
    let bare = finding([items])
    #expect(bare.result == .warning)
    #expect(bare.faults[0].cause.contains("neither a backup nor a recovery key"))
    #expect(mends(bare) == ["sudo identityd-setup-key --new-recovery-key"])
    #expect(finding([items, ("recovery-key", "2026-01-01T00:00:00.000Z")]).result == .ok)
    #expect(finding([items, ("last-backup", "2026-01-01T00:00:00.000Z")]).result == .ok)
    #expect(finding([("items", "0")]).result == .ok)
    #expect(finding([]).result == .ok, "this user does not see the rows")
    #expect(finding([items], at: "/home/me/socket").result == .ok)
  }

  @Test func `an unavailable master key names the recovery key if there is one`() {
    let status = [("master-key", "unavailable"), ("master-key-reason", "items: from the credential identityd.key")]
    for (rows, isNamed) in [([], false), ([("recovery-key", "2026-01-01T00:00:00.000Z")], true)] {
      for isForeign in [false, true] {
        let units = UnitStates(units: [UnitStates.hostKey: ["ActiveState": isForeign ? "failed" : "inactive"]])
        let fault = MasterKeyFacts(examination(.answered, status + rows, units: units)).finding.faults[0]
        #expect(fault.cause.contains("identityd-setup-key --recover") == isNamed)
      }
    }
  }

  @Test func `a host key of another machine-id needs the former machine-id`() {
    let status = [("master-key", "unavailable"), ("master-key-reason", "items: from the credential identityd.key")]
    for (state, isForeign) in [("failed", true), ("inactive", false)] {
      let found = MasterKeyFacts(
        examination(.answered, status, units: UnitStates(units: [UnitStates.hostKey: ["ActiveState": state]]))
      ).finding
      #expect(found.result == .failed)
      #expect(found.faults[0].cause.contains("Restore the former machine-id") == isForeign)
      #expect(
        mends(found) == (isForeign ? ["sudo systemctl daemon-reexec"] : [])
          + ["sudo systemctl restart identityd-key.service identityd.service"])
    }
  }

  @Test func `each condition of the store has its own remedy`() {
    func finding(_ state: String, _ reason: String = "why", setAside: [String] = []) -> Finding {
      StoreFacts(examination: examination(.answered, [("store", state), ("store-reason", reason)]), setAside: setAside)
        .finding
    }
    #expect(finding("ok").result == .ok)
    #expect(mends(finding("no-space")) == ["df -h /var/lib/identityd"])
    #expect(mends(finding("read-only")) == ["sudo journalctl --dmesg --priority=warning"])
    #expect(
      mends(finding("read-error")) == [
        "sudo journalctl --dmesg --priority=warning", "sudo systemctl restart identityd.service",
      ])
    let (stop, start) = ("stop identityd.socket identityd.service", "start identityd.socket identityd.service")
    #expect(
      mends(finding("damaged")) == [
        "sudo rm -rf /var/lib/identityd.next && sudo cp -aT COPY /var/lib/identityd.next && sudo systemctl \(stop)"
          + " && sudo mv --backup=numbered -T /var/lib/identityd /var/lib/identityd.damaged"
          + " && sudo mv -T /var/lib/identityd.next /var/lib/identityd && sudo systemctl \(start)"
      ])
    #expect(
      mends(finding("damaged", "its key, store.key, is missing or damaged")) == [
        "sudo cp -a COPY/store.key /var/lib/identityd/store.key && sudo systemctl restart identityd.service"
      ])
    let left = finding("ok", setAside: ["witness.damaged-1"])
    #expect(left.result == .warning)
    #expect(mends(left) == ["sudo rm /var/lib/identityd/witness.damaged-1"])
    // Files that a damaged store may need must not be named for removal.
    #expect(!mends(finding("damaged", setAside: ["identityd.db.damaged-1"])).contains { $0.contains("damaged-1") })
  }

  @Test func `a sealed store is a warning`() {
    let facts = StoreFacts(examination: examination(.answered, [("store", "ok"), ("sealed", "yes")]))
    #expect(facts.finding.result == .warning)
  }

  // MARK: space and clock

  @Test func `little space is a warning, and very little a failure`() {
    func result(_ bytes: UInt64, _ files: UInt64?) -> Finding.Result {
      SpaceFacts(folder: "/s", space: FileSystemSpace(freeBytes: bytes, freeFiles: files)).finding.result
    }
    #expect(result(64 << 20, 1_024) == .ok)
    #expect(result(64 << 20, nil) == .ok)
    #expect(result(64 << 20 - 1, nil) == .warning)
    #expect(result(16 << 20 - 1, nil) == .failed)
    #expect(result(1 << 30, 1_023) == .warning)
    #expect(result(1 << 30, 31) == .failed)
    #expect(SpaceFacts(folder: nil).finding.result == .skipped)
  }

  @Test func `a file system or a mount that is read-only is a failure, and is mounted writable`() {
    func finding(_ own: String, _ fileSystem: String) -> Finding {
      let space = FileSystemSpace(freeBytes: 1 << 30, freeFiles: nil)
      return SpaceFacts(
        folder: "/var/lib/s", space: space, mount: mount(own, fileSystem), daemonMount: mount("ro", "ro"),
        resume: [ServiceManager.system.startUnits]
      ).finding
    }
    let start = "sudo systemctl start identityd.socket identityd.service"
    for (own, fileSystem, options) in [
      ("ro", "ro", "remount,rw"), ("rw", "ro", "remount,rw"), ("ro", "rw", "remount,bind,rw"),
    ] {
      let found = finding(own, fileSystem)
      #expect(found.faults.map(\.cause) == ["/var/lib/s is on a file system that is mounted read-only at /var"])
      #expect(mends(found) == ["sudo mount -o \(options) /var", start])
    }
    let copy = finding("rw", "rw")
    #expect(copy.faults.first?.cause.hasPrefix("/var/lib/s can be written, but not by the daemon: its copy of") == true)
    #expect(mends(copy) == [start])
  }

  @Test func `a daemon that writes its store, or whose mounts are unknown, is not restarted because of its mount`() {
    let space = FileSystemSpace(freeBytes: 1 << 30, freeFiles: nil)
    let start = [ServiceManager.system.startUnits]
    for (daemonMount, resume) in [(mount("ro", "rw"), []), (nil, start), (mount("rw", "rw"), start)]
      as [(Mount?, [Remedy])]
    {
      let facts = SpaceFacts(
        folder: "/var/lib/s", space: space, mount: mount("rw", "rw"), daemonMount: daemonMount, resume: resume)
      #expect(facts.finding.result == .ok)
    }
  }

  @Test func `a clock behind the last event fails, and one behind the release or unsynchronised warns`() throws {
    let released = try #require(Timestamp(parsing: Text("\(Version.released)T00:00:00.000Z"))).milliseconds
    func finding(_ now: Int64, _ isSynchronized: Bool?, last: Int64? = nil) -> Finding {
      ClockFacts(
        now: Timestamp(milliseconds: now), isSynchronized: isSynchronized,
        lastEvent: last.map { Timestamp(milliseconds: $0) }
      ).finding
    }
    #expect(finding(released, true, last: released).result == .ok)
    #expect(finding(released, nil).result == .ok)
    #expect(finding(released, true, last: released + 60_000).result == .ok)
    #expect(finding(released, true, last: released + 60_001).result == .failed)
    #expect(finding(released - 1, true).result == .warning)
    #expect(finding(released, false).result == .warning)
    #expect(mends(finding(released, false)) == ["sudo timedatectl set-ntp true"])
  }

  @Test(
    arguments: [
      (.installed, "the clock is not synchronized", ["sudo timedatectl set-ntp true"]),
      (
        .masked(unit: "ntp.service"), "the clock is not synchronized, and ntp.service is masked",
        ["sudo systemctl unmask ntp.service", "sudo timedatectl set-ntp true"]
      ),
      (
        .missing(install: ["apt-get", "install", "systemd-timesyncd"]),
        "the clock is not synchronized, and no time service is installed; install one, such as systemd-timesyncd or chrony",
        ["sudo apt-get install systemd-timesyncd"]
      ),
      (
        .missing(install: nil),
        "the clock is not synchronized, and no time service is installed; install one, such as systemd-timesyncd or chrony",
        []
      ),
    ] as [(TimeService, String, [String])])
  func `the remedy for an unsynchronised clock is one that this machine has`(
    service: TimeService, cause: String, mend: [String]
  ) throws {
    let now = try #require(Timestamp(parsing: Text("2126-01-01T00:00:00.000Z")))
    let finding = ClockFacts(now: now, isSynchronized: false, lastEvent: nil, service: service).finding
    #expect(finding.faults.map(\.cause) == [cause])
    #expect(mends(finding) == mend)
  }

  // MARK: permissions, peer and versions

  @Test func `each wrong owner and mode of the state is reported with its remedy`() {
    let state = PermissionFacts.Place(
      path: "/s", status: PathStatus(.folder, owner: 5, group: 5, mode: 0o750))
    let good = PermissionFacts.Place(path: "/s/a", status: PathStatus(.regular, owner: 9, group: 9, mode: 0o600))
    let link = PermissionFacts.Place(path: "/s/l", status: PathStatus(.link, owner: 9, group: 9, mode: 0o777))
    let facts = PermissionFacts(isSystem: true, state: state, files: [good, link], owner: 9)
    #expect(
      mends(facts.finding) == ["sudo chown identityd:identityd /s", "sudo chmod 0700 /s", "sudo rm -r /s/l"])
    let configuration = PermissionFacts.Place(
      path: "/etc/identityd", status: PathStatus(.folder, owner: 5, group: 0, mode: 0o757))
    #expect(
      mends(PermissionFacts(isSystem: true, configuration: [configuration]).finding) == [
        "sudo chown root: /etc/identityd", "sudo chmod go-w /etc/identityd",
      ])
    let blind = PermissionFacts(isSystem: true, state: good, files: nil, owner: 9)
    #expect(blind.finding.result == .failed)
    #expect(PermissionFacts(isSystem: true).finding.result == .skipped)
  }

  @Test func `another release is a warning, and another protocol a failure`() {
    func finding(_ hello: [String], _ lineProtocol: String) -> Finding {
      var answers = DaemonAnswers()
      (answers.hello, answers.lineProtocol) = (hello, lineProtocol)
      let examination = Examination(
        socketPath: Self.system, userID: 1_000, contact: .answered, answers: answers)
      return VersionFacts(examination).finding
    }
    #expect(finding(["identityd", Version.program], "1").result == .ok)
    #expect(finding(["identityd", "99.0"], "1").result == .warning)
    #expect(mends(finding(["identityd", "99.0"], "1")) == ["sudo systemctl restart identityd.service"])
    #expect(finding(["identityd", Version.program], "2").result == .failed)
    #expect(finding(["other", "1"], "1").result == .failed)
  }

  @Test func `a peer that is another user to the daemon is a warning`() {
    func finding(_ uid: String?) -> Finding {
      var answers = DaemonAnswers()
      answers.app = "user:1000"
      answers.peer["uid"] = uid
      return PeerFacts(
        Examination(socketPath: Self.system, userID: 1_000, contact: .answered, answers: answers)
      ).finding
    }
    #expect(finding("1000").result == .ok)
    #expect(finding("65534").result == .warning)
    #expect(finding(nil).result == .failed)
  }
}
