import Foundation
import Testing

/// Tests of the architecture: permitted imports, and constructs that no file may contain.
struct ArchitectureTests {
  /// The layers: each target with the modules it may import. Imports point down only.
  static let allowed: [String: Set<String>] = [
    "IdentityCore": [],
    "IdentityWire": ["IdentityCore"],
    "FleetWire": ["IdentityCore"],
    "FleetCore": ["FleetWire", "IdentityCore"],
    "LinuxSystem": ["CLinux", "Glibc"],
    "Systemd": ["CSystemd", "Glibc"],
    "ConfigurationFiles": ["CInih", "Glibc", "LinuxSystem"],
    "AppManifests": ["ConfigurationFiles", "IdentityCore", "LinuxSystem", "Glibc"],
    "IdentityStore": [
      "ClientSecrets", "IdentityCore", "IdentityWire", "LinuxSystem", "CSQLite", "CStoreFiles", "CSodium", "Glibc",
      "Synchronization",
    ],
    "Attestation": ["Glibc", "IdentityCore", "LinuxSystem", "Systemd"],
    "Sessions": ["IdentityCore", "LinuxSystem"],
    "Mosquitto": ["CMosquitto", "Glibc", "LinuxSystem"],
    "FleetSeal": ["FleetWire", "IdentityCore", "CSodium"],
    "IdentityServer": [
      "Attestation", "IdentityCore", "IdentityWire", "IdentityStore", "LinuxSystem", "Proofs", "Sessions", "Systemd",
      "Glibc", "Synchronization",
    ],
    "FleetService": [
      "Attestation", "ConfigurationFiles", "FleetCore", "FleetSeal", "FleetWire", "IdentityClient", "IdentityCore",
      "IdentityWire", "LinuxSystem", "Mosquitto", "Proofs", "Sessions", "Systemd",
    ],
    "identity-fleet": [
      "ConfigurationFiles", "FleetService", "FleetWire", "IdentityClient", "IdentityCore", "LinuxSystem", "Mosquitto",
      "Systemd", "Glibc",
    ],
    "identity-portal": ["IdentityClient", "IdentityCore", "LinuxSystem", "Systemd", "Glibc"],
    "Proofs": ["CCrypto", "CSodium", "IdentityCore", "IdentityWire", "LinuxSystem"],
    "ClientSecrets": ["CSodium", "LinuxSystem"],
    "IdentityClient": ["IdentityCore", "IdentityWire", "LinuxSystem"],
    "Doctor": ["IdentityCore", "IdentityWire", "IdentityClient", "LinuxSystem", "Glibc"],
    "identityd": [
      "AppManifests", "IdentityCore", "IdentityStore", "IdentityServer", "ConfigurationFiles", "LinuxSystem", "Systemd",
      "Glibc",
    ],
    "ClientFormats": ["IdentityClient", "IdentityCore", "IdentityWire", "LinuxSystem"],
    "identityctl": [
      "ClientFormats", "ClientSecrets", "Doctor", "FleetSeal", "FleetWire", "IdentityCore", "IdentityWire",
      "IdentityClient",
      "LinuxSystem", "Proofs", "Glibc",
    ],
  ]

  @Test(arguments: allowed.keys.sorted())
  func `a target imports only modules below it`(target: String) throws {
    let files = try Tree.files(below: "Sources/\(target)", "swift")
    #expect(!files.isEmpty)
    // Skips the code in DocC catalogs, which shows programs that use the target.
    for file in files where !file.contains(".docc/") {
      for line in try Tree.lines(file) {
        let words = line.split(separator: " ").map(String.init)
        guard let place = words.firstIndex(of: "import"), place <= 1, words.count > place + 1 else { continue }
        #expect(Self.allowed[target]?.contains(words[place + 1]) == true, "\(file): \(line)")
      }
    }
  }

  @Test func `every target has a layer`() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Tree.root.appending(path: "Sources").path)
    let c: Set = ["CLinux", "CCrypto", "CSystemd", "CSQLite", "CStoreFiles", "CSodium", "CInih", "CMosquitto"]
    #expect(Set(folders).subtracting(c) == Set(Self.allowed.keys))
  }

  @Test(arguments: [
    "IdentityCore", "IdentityWire", "Attestation", "Sessions", "FleetWire", "FleetCore", "FleetService",
    "IdentityServer", "IdentityClient", "ClientFormats", "Doctor", "identityd", "identityctl", "identity-fleet",
    "identity-portal",
  ])
  func `unsafe code is only in the edge targets`(target: String) throws {
    for file in try Tree.files(below: "Sources/\(target)", "swift") {
      for line in try Tree.lines(file) where !line.trimmingPrefix(while: \.isWhitespace).hasPrefix("//") {
        #expect(!line.contains("unsafe "), "\(file): \(line)")
      }
    }
  }

  @Test func `only the client library has public declarations`() throws {
    for target in Self.allowed.keys {
      let lines = try Tree.files(below: "Sources/\(target)", "swift").flatMap { try Tree.lines($0) }
      #expect(lines.contains { $0.contains(/^ *public (?!import)/) } == (target == "IdentityClient"), "\(target)")
    }
  }

  @Test func `the client library has no public imports`() throws {
    for file in try Tree.files(below: "Sources/IdentityClient", "swift") {
      #expect(try !Tree.lines(file).contains { $0.hasPrefix("public import") }, "\(file)")
    }
  }

  /// The client has a type of the name of its module, so a program that uses both cannot qualify their names.
  @Test func `no public type of the client library has the name of a type of the rules`() throws {
    func types(in target: String, _ declaration: Regex<(Substring, Substring)>) throws -> Set<Substring> {
      Set(
        try Tree.files(below: "Sources/\(target)", "swift").flatMap { file in
          try Tree.lines(file).compactMap { $0.firstMatch(of: declaration)?.1 }
        })
    }
    let client = try types(
      in: "IdentityClient", /^ *public (?:indirect |final )?(?:struct|enum|class|protocol) ([A-Za-z]+)/)
    let rules = try types(in: "IdentityCore", /^ *[a-z ]*\b(?:struct|enum|class|protocol) ([A-Za-z]+)/)
    #expect(client.count > 30 && rules.count > 60)
    #expect(client.intersection(rules).isEmpty, "\(client.intersection(rules))")
  }

  @Test func `the rules import no modules`() throws {
    for file in try Tree.files(below: "Sources/IdentityCore", "swift") {
      #expect(try !Tree.lines(file).contains { $0.hasPrefix("import") || $0.hasPrefix("package import") }, "\(file)")
    }
  }

  @Test func `no file is longer than 400 lines`() throws {
    for folder in ["Sources", "Tests", "packaging", "systemd"] {
      for file in try Tree.files(below: folder, "swift", "c", "h", "sh", "js", "mjs", "py") {
        #expect(try Tree.lines(file).count <= 401, "\(file)")
      }
    }
  }

  @Test func `the sources do not trap or print instead of throwing errors`() throws {
    let forbidden = ["try!", "fatalError(", "preconditionFailure(", "as!", " print(", "debugPrint(", "-Ounchecked"]
    for file in try Tree.files(below: "Sources", "swift") {
      for line in try Tree.lines(file) {
        for word in forbidden { #expect(!line.contains(word), "\(file): \(line)") }
      }
    }
  }

  @Test func `an exemption from concurrency checks states its reason`() throws {
    for file in try Tree.files(below: "Sources", "swift") {
      let lines = try Tree.lines(file)
      for (index, line) in lines.enumerated()
      where line.contains("@unchecked Sendable") || line.contains("nonisolated(unsafe)") {
        let around = lines[max(0, index - 2)...min(lines.count - 1, index + 2)]
        #expect(around.contains { $0.contains("// Sendable:") }, "\(file): \(line)")
      }
    }
  }

  @Test func `the top level has only the expected files and folders`() throws {
    let tracked = Process()
    tracked.executableURL = URL(filePath: "/usr/bin/env")
    tracked.arguments = ["git", "-C", Tree.root.path, "ls-files"]
    let output = Pipe()
    tracked.standardOutput = output
    tracked.standardError = FileHandle.nullDevice
    try tracked.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    tracked.waitUntilExit()
    let files = text.split(separator: "\n").map(String.init)
    let names = Set(files.map { $0.split(separator: "/")[0] }.filter { !$0.hasPrefix(".") }.map(String.init))
    #expect(!names.isEmpty)
    let house: Set = ["Package.swift", "Sources", "Tests", "packaging", "systemd", "README.md", "LICENSE"]
    #expect(names.subtracting(house).isEmpty, "\(names)")
  }
}
