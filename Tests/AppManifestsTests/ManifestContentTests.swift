import AppManifests
import IdentityCore
import TestSupport
import Testing

/// The parsing of a single manifest, and its faults with their line numbers.
struct ManifestContentTests {
  private let temporary: TemporaryFolder
  init() throws { temporary = try TemporaryFolder() }

  /// Returns the content of a file as the manifest of `player`, and the faults without the folder's path.
  private func read(_ text: String) throws -> (manifest: Manifest?, faults: [String]) {
    try temporary.write("player.app", text)
    guard case .found(let entries, let faults) = ManifestReader.survey([temporary.path]) else {
      Issue.record("the folder is not read")
      return (nil, [])
    }
    let entry = try #require(entries["player"])
    #expect(entries.count == 1)
    #expect(entry.file == temporary["player.app"])
    #expect(entry.userIDs.isEmpty)
    return (entry.manifest, faults.map { $0.replacing("\(temporary.path)/", with: "") })
  }

  private static func manifest(_ change: (inout Manifest) -> Void = { _ in }) -> Manifest {
    var manifest = Manifest(vendor: "player")
    change(&manifest)
    return manifest
  }

  static let good: [(text: String, manifest: Manifest)] = [
    ("[App]\nVendor=org.example\n", manifest { $0.vendor = "org.example" }),
    ("[App]\nVendor=\n", manifest()),
    ("[App]\nVendor=9-_.A\n", manifest { $0.vendor = "9-_.A" }),
    ("[App]\nUnit=player.service\n", manifest { $0.unit = "player.service" }),
    ("[App]\nUnit=player@one.service\n", manifest { $0.unit = "player@one.service" }),
    ("[App]\nUnit=a@b@.service\n", manifest { $0.unit = "a@b@.service" }),
    ("[App]\nUnit=A:-_.\\x2d0.service\n", manifest { $0.unit = "A:-_.\\x2d0.service" }),
    ("[App]\nUser=player\n", manifest { $0.users = .named(["player"]) }),
    ("[App]\nUser=0x\n", manifest { $0.users = .named(["0x"]) }),
    ("[App]\nUser=EXAMPLE\\Jérôme.2$\n", manifest { $0.users = .named(["EXAMPLE\\Jérôme.2$"]) }),
    ("[App]\nAccessGroups=b  a\tb c\n", manifest { $0.accessGroups = ["b", "a", "c"] }),
    ("[App]\nDeviceIdentifier=shared\nVersionOrder=numeric\n", manifest()),
    ("[App]\nDeviceIdentifier=vendor\n", manifest { $0.deviceBinding = .vendor }),
    (
      "[App]\nDeviceIdentifier=app\nVersionOrder=linux\n",
      manifest { ($0.deviceBinding, $0.versionOrder) = (.app, .linux) }
    ),
    (
      "[App]\nVendor=org.example\nUnit=player.service\nUser=player\nAccessGroups=org.example.shared org.example.media\n",
      manifest {
        ($0.vendor, $0.unit, $0.users) = ("org.example", "player.service", .named(["player"]))
        $0.accessGroups = ["org.example.shared", "org.example.media"]
      }
    ),
    ("[App]\nContainer=box-1.a_B\n", manifest { $0.container = "box-1.a_B" }),
    ("[App]\nUser=a\nUser=b\nUser=a\n", manifest { $0.users = .named(["a", "b"]) }),
    ("[App]\nUser=a\nUser=\nUser=b\n", manifest { $0.users = .named(["b"]) }),
    ("[App]\nUnit=a.service\nUser=*\n", manifest { ($0.unit, $0.users) = ("a.service", .everyone) }),
    ("[App]\nUnit=a.service\nUser=a\nUser=*\nUser=b\n", manifest { ($0.unit, $0.users) = ("a.service", .everyone) }),
    ("[App]\nContainer=a\nContainer=\nUnit=a.service\n", manifest { $0.unit = "a.service" }),
    ("[App]\nRights=fleet\nRights= fleet  fleet\n", manifest { $0.rights = [.fleet] }),
    ("[App]\nRights=fleet\nRights=\n", manifest()),
    // The last of two values counts. An empty value restores the default.
    (
      "[App]\nVendor=a\nVendor=b\nUnit=a.service\nUnit=b.service\n",
      manifest { ($0.vendor, $0.unit) = ("b", "b.service") }
    ),
    ("[App]\nVendor=a\nUnit=a.service\nUser=a\nVendor=\nUnit=\nUser=\n", manifest()),
    ("[App]\nDeviceIdentifier=app\nVersionOrder=linux\nDeviceIdentifier=\nVersionOrder=\n", manifest()),
    // Repeated lists are joined. An empty value clears the list.
    ("[App]\nAccessGroups=a b\n[App]\nAccessGroups=c a\n", manifest { $0.accessGroups = ["a", "b", "c"] }),
    ("[App]\nAccessGroups=a b\nAccessGroups=\nAccessGroups=c\n", manifest { $0.accessGroups = ["c"] }),
    ("[App]\nAccessGroups=a b\nAccessGroups=\n", manifest()),
  ]

  @Test(arguments: good) func `a valid file is parsed to its manifest`(text: String, manifest: Manifest) throws {
    let found = try read(text)
    #expect(found.manifest == manifest)
    #expect(found.faults == [])
  }

  private static let names = "letters, digits, '.', '_' and '-', a letter or digit first, at most 255 bytes"
  private static let services =
    "the name of a service, such as player.service, or of an instance of a template, such as player@one.service"
  private static let users = "the name of a user, not a number, at most 64 of them; or *"

  static let bad: [(line: String, allowed: String)] =
    ["a:b", ".a", "-a", "_a", "a b", "a/b", "é", "a@b", "\u{212A}", "a\u{301}"].map { ("Vendor=\($0)", names) }
    + [
      "player", ".service", "@.service", "@a.service", "a@.service", "a/b.service", "a b.service", "player.socket",
      "player.Service", "player.service.", "é.service", "%i.service", "a,b.service",
    ].map { ("Unit=\($0)", services) }
    + ["0", "1000", "a:b", "a/b", "a b", "a\tb", "-a", "-1", ".", "..", "a,b", "a\u{7f}"].map { ("User=\($0)", users) }
    + ["Shared", "shared app", "device", "none"].map { ("DeviceIdentifier=\($0)", "shared, vendor, app") }
    + ["Fleet", "fleet admin", "fleet,fleet"].map { ("Rights=\($0)", "fleet, prove") }
    + ["Numeric", "rpm"].map { ("VersionOrder=\($0)", "numeric, semver, debian, linux, auto") }
    + ["a:b", "a b:c", "a .b", "a, b", "é"].map {
      ("AccessGroups=\($0)", "up to 64 names, separated by spaces, each \(names)")
    }

  @Test(arguments: bad) func `an invalid value is reported with its line, and the whole file is refused`(
    line: String, allowed: String
  ) throws {
    let found = try read("[App]\n\n# comment\n\(line)\nVendor=org.example\n")
    let parts = line.split(separator: "=", maxSplits: 1)
    #expect(found.manifest == nil)
    #expect(found.faults == ["player.app:4: [App] \(parts[0])= cannot be '\(parts[1])'; allowed: \(allowed)"])
  }

  @Test(arguments: [
    ("Container=a\nRights=fleet", "Container= cannot be combined with Rights=: no process in a container has rights"),
    ("Rights=fleet\nContainer=a", "Container= cannot be combined with Rights=: no process in a container has rights"),
    ("DeviceIdentifier=app\nRights=fleet", "Rights=fleet requires DeviceIdentifier=shared: "),
    ("Rights=fleet\nDeviceIdentifier=vendor", "Rights=fleet requires DeviceIdentifier=shared: "),
  ]) func `a right excludes other settings`(lines: String, fault: String) throws {
    let found = try read("[App]\n\(lines)\n")
    #expect(found.manifest == nil)
    #expect(found.faults.count == 1)
    #expect(found.faults.first?.hasPrefix("player.app:3: [App] \(fault)") == true, "\(found.faults)")
  }

  @Test func `a later valid value does not make up for an invalid one`() throws {
    let found = try read("[App]\nVersionOrder=none\nVersionOrder=linux\n")
    #expect(found.manifest == nil)
    #expect(
      found.faults == [
        "player.app:2: [App] VersionOrder= cannot be 'none'; allowed: numeric, semver, debian, linux, auto"
      ])
  }

  @Test func `there are at most 64 access groups, and the line of the next one is reported`() throws {
    let lines = (0..<8).map { line in "AccessGroups=" + (0..<8).map { "group-\(line)-\($0)" }.joined(separator: " ") }
    let full = "[App]\n" + lines.joined(separator: "\n") + "\n"
    #expect(try read(full).manifest?.accessGroups.count == 64)
    #expect(try read(full + "AccessGroups=group-0-0\n").manifest?.accessGroups.count == 64)
    let found = try read(full + "AccessGroups=another\n")
    #expect(found.manifest == nil)
    #expect(found.faults.count == 1)
    #expect(found.faults.first?.hasPrefix("player.app:10: [App] AccessGroups= cannot be 'another'; ") == true)
    #expect(try read(full + "AccessGroups=\nAccessGroups=another\n").manifest?.accessGroups == ["another"])
  }

  @Test func `unknown settings are reported and ignored`() throws {
    let found = try read("Unit=a.service\n[App]\nColour=red\nVendor=org.example\nvendor=x\n[Other]\nUser=root\n")
    #expect(found.manifest == Self.manifest { $0.vendor = "org.example" })
    #expect(
      found.faults == [
        "player.app:1: unknown setting [] Unit=; it is ignored",
        "player.app:3: unknown setting [App] Colour=; it is ignored",
        "player.app:5: unknown setting [App] vendor=; it is ignored",
        "player.app:7: unknown setting [Other] User=; it is ignored",
      ])
  }

  @Test func `unknown settings are reported in a faulty file too`() throws {
    let found = try read("[App]\nColour=red\nUser=1\n")
    #expect(found.manifest == nil)
    #expect(
      found.faults == [
        "player.app:2: unknown setting [App] Colour=; it is ignored",
        "player.app:3: [App] User= cannot be '1'; allowed: the name of a user, not a number, at most 64 of them; or *",
      ])
  }

  static let broken: [(text: String, fault: String)] = [
    ("[App]\nVendor=org.example\nnonsense\n", "player.app:3: the line is neither [Section] nor Name=value"),
    ("[App\nVendor=org.example\n", "player.app:1: the line is neither [Section] nor Name=value"),
    ("[App]\nVendor=\(String(repeating: "v", count: 200))\n", "player.app:2: the line is longer than 198 bytes"),
    ("[App]\nVendor=a\0b\n", "player.app: the file is not UTF-8 text"),
  ]

  @Test(arguments: broken) func `a file that is no manifest is reported`(text: String, fault: String) throws {
    let found = try read(text)
    #expect(found.manifest == nil)
    #expect(found.faults == [fault])
  }

  @Test func `a file that is too long is reported`() throws {
    let found = try read(String(repeating: "# long\n", count: Bound.fileLength / 7 + 1))
    #expect(found.manifest == nil)
    #expect(found.faults == ["player.app: the manifest is longer than 1048576 bytes"])
  }
}
