import Glibc
import IdentityClient
import LinuxSystem
import Testing

@testable import Doctor

/// The order of faults in a report: causes first, each with its symptoms.
struct CauseTests {
  private func ordered(_ findings: (String, Finding)...) -> [String] {
    ReportedFault.ordered(findings.map { (name: $0.0, finding: $0.1) }).map { fault in
      "\(fault.check): \(fault.fault.cause)" + (fault.symptomOf.map { " < \($0)" } ?? "")
    }
  }

  @Test func `failures precede warnings, in the order of the table`() {
    #expect(
      ordered(
        ("a", Finding([.warning("1"), .failure("2")])), ("b", Finding()),
        ("c", Finding([.failure("3"), .warning("4")]))
      ) == ["a: 2", "c: 3", "a: 1", "c: 4"])
  }

  @Test func `a symptom follows its cause, wherever their checks are, and has no remedy`() {
    let findings = [
      (name: "a", finding: Finding([.failure("out", .root("x")).being(.unreachable), .failure("own", .root("y"))])),
      (name: "b", finding: Finding([.failure("why", .root("z")).causing(.unreachable)])),
    ]
    let faults = ReportedFault.ordered(findings)
    #expect(faults.map(\.fault.cause) == ["own", "why", "out"])
    #expect(faults.map(\.symptomOf) == [nil, nil, "b"])
    #expect(faults.map { $0.mend.map { $0.text(for: 0) } } == [["y"], ["z"], []])
  }

  @Test func `a fault is a symptom only of a fault with this effect`() {
    let other = Finding.Fault.failure("cause").causing(.storeFails)
    #expect(
      ordered(("a", Finding([.failure("out").being(.unreachable)])), ("b", Finding([other]))) == ["a: out", "b: cause"])
  }

  @Test func `the symptoms of a symptom belong to the cause`() {
    let unit = Finding.Fault.failure("loop").being(.serviceFails).causing(.unreachable)
    let user = Finding.Fault.failure("user").causing(.serviceFails)
    #expect(
      ordered(
        ("socket", Finding([.failure("out").being(.unreachable)])), ("unit", Finding([unit])),
        ("user", Finding([user]))
      ) == ["user: user", "socket: out < user", "unit: loop < user"])
  }

  @Test func `two faults that could explain each other are both told`() {
    let one = Finding.Fault.failure("one").being(.serviceFails).causing(.unreachable)
    let two = Finding.Fault.failure("two").being(.unreachable).causing(.serviceFails)
    #expect(ordered(("a", Finding([one])), ("b", Finding([two]))) == ["a: one", "b: two < a"])
    let own = Finding.Fault.failure("own").being(.unreachable).causing(.unreachable)
    #expect(ordered(("a", Finding([own]))) == ["a: own"])
  }

  // MARK: The checks

  private static let path = "/run/identityd/identityd.sock"

  /// Returns the faults of checks that the damage of a store affects.
  private func faults(_ status: [(String, String)]) -> [String] {
    var answers = DaemonAnswers(status: status)
    answers.refusal = "the store is damaged (internal)"
    let examination = Examination(socketPath: Self.path, userID: 0, contact: .answered, answers: answers)
    return ReportedFault.ordered([
      ("peer", PeerFacts(examination).finding),
      (
        "manifests",
        ManifestFacts(faults: answers.all("manifest-fault"), faultCount: answers["manifest-faults"], isSystem: true)
          .finding
      ), ("master-key", MasterKeyFacts(examination).finding), ("store", StoreFacts(examination: examination).finding),
    ]).map { fault in "\(fault.check)\(fault.symptomOf.map { " < \($0)" } ?? "")" }
  }

  @Test func `a damaged store explains the peer, the key and the manifests`() {
    let applied = "the manifests could not be applied: the store is damaged"
    #expect(
      faults([
        ("store", "damaged"), ("store-reason", "why"), ("master-key", "unavailable"), ("manifest-fault", applied),
        ("manifest-fault", "/a/b.app:1: wrong"), ("manifest-faults", "2"),
      ]) == ["manifests", "store", "peer < store", "manifests < store", "master-key < store"])
  }

  @Test func `a missing key and a refused peer are causes as long as the store is in order`() {
    #expect(faults([("store", "ok"), ("master-key", "unavailable")]) == ["peer", "master-key"])
    #expect(faults([("store", "no-space"), ("master-key", "unavailable")]) == ["peer", "master-key", "store"])
  }

  @Test func `a full or read-only file system explains the store`() {
    let examination = Examination(
      socketPath: Self.path, userID: 0, contact: .answered,
      answers: DaemonAnswers(status: [("store", "read-only"), ("store-reason", "why")]))
    let store = StoreFacts(examination: examination).finding
    let full = SpaceFacts(folder: "/s", space: FileSystemSpace(freeBytes: 0, freeFiles: nil))
    let room = FileSystemSpace(freeBytes: 1 << 30, freeFiles: nil)
    let mounted = SpaceFacts(folder: "/var/lib/s", space: room, mount: mount("ro", "rw"))
    let copied = SpaceFacts(
      folder: "/var/lib/s", space: room, mount: mount("rw", "rw"), daemonMount: mount("ro", "rw"),
      resume: [ServiceManager.system.restartUnits])
    for space in [full, mounted, copied] {
      let faults = ReportedFault.ordered([("store", store), ("space", space.finding)])
      #expect(faults.map(\.check) == ["space", "store"])
      #expect(faults.map(\.symptomOf) == [nil, "space"])
    }
  }

  @Test func `a refused configuration explains a failed unit, and that explains a missing socket`() {
    let states = UnitStates(
      units: [
        UnitStates.socket: ["LoadState": "loaded", "ActiveState": "failed", "UnitFileState": "enabled"],
        UnitStates.service: ["LoadState": "loaded", "ActiveState": "failed", "UnitFileState": "enabled"],
      ])
    let socket = SocketFacts(
      examination: Examination(socketPath: Self.path, userID: 0, contact: .refused(ENOENT), answers: nil))
    var configuration = ConfigurationFacts()
    func told() -> [String] {
      ReportedFault.ordered([
        ("socket", socket.finding), ("unit", UnitFacts(states: states).finding),
        ("configuration", configuration.finding),
      ]).map { fault in "\(fault.check)\(fault.symptomOf.map { " < \($0)" } ?? "")" }
    }
    #expect(told() == ["unit", "socket < unit"])
    configuration.refusal = "/a.conf:1: no"
    #expect(told() == ["configuration", "socket < configuration", "unit < configuration"])
  }
}
