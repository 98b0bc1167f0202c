// swift-tools-version: 6.2

import PackageDescription

/// The settings of every Swift target: Swift 6, warnings as errors, imports declared in the file that uses them.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// The targets that debug builds optimise, from IDENTITYD_OPTIMIZED.
///
/// None by default: the compiler takes up to six times as long for an optimised target, and a change to one file
/// recompiles all of it.
let optimizedTargets = Set((Context.environment["IDENTITYD_OPTIMIZED"] ?? "").split(separator: " ").map(String.init))

/// Without this, a call across a module boundary on the request path costs up to six times as
/// much (see Decisions/0004).
let fast: [SwiftSetting] = strict + [.unsafeFlags(["-cross-module-optimization"], .when(configuration: .release))]

/// The linker settings of the shipped programs (see Decisions/0036).
///
/// A start has fewer libraries to load, fewer and smaller relocations to resolve, and writes to fewer pages for them.
let lean: [LinkerSetting] = [
  .unsafeFlags(
    [
      "-use-ld=lld", "-L\(Context.packageDirectory)/packaging/tools/link", "-Xclang-linker", "-static-libgcc",
      "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs", "-Xlinker", "--no-export-dynamic",
      "-Xlinker", "--as-needed", "-Xlinker", "-z", "-Xlinker", "now",
    ], .when(configuration: .release))
]

/// The settings of C targets: glibc checks buffer sizes known to the compiler, which needs an optimised build.
///
/// Other compiler options for hardening would be unsafe flags here, so packaging/tools/prerequisites.sh passes them.
let hardened: [CSetting] = [.define("_FORTIFY_SOURCE", to: "3", .when(configuration: .release))]

/// Whether to build the fuzz target with libFuzzer's `main`, for packaging/tools/fuzz, or else as tests of
/// the saved corpora.
let isFuzzed = Context.environment["IDENTITYD_FUZZ"] == "1"
let fuzzDependencies: [Target.Dependency] = [
  "AppManifests", "ClientFormats", "ClientSecrets", "ConfigurationFiles", "FleetService", "FleetWire", "IdentityClient",
  "IdentityCore", "IdentityStore", "IdentityWire", "LinuxSystem", "Proofs", "TestSupport",
]
let fuzz: Target =
  isFuzzed
  ? .executableTarget(
    name: "IdentityFuzz", dependencies: fuzzDependencies, path: "Tests/IdentityFuzz",
    exclude: ["Corpora", "CorpusTests.swift", "words.dict"],
    swiftSettings: strict + [.unsafeFlags(["-parse-as-library"])])
  : .testTarget(
    name: "IdentityFuzzTests", dependencies: fuzzDependencies, path: "Tests/IdentityFuzz",
    exclude: ["Corpora", "Fuzzer.swift", "words.dict"], swiftSettings: strict)

/// The test targets to build, from IDENTITYD_TESTS. Nil for all of them.
let chosenTests = Context.environment["IDENTITYD_TESTS"].map { Set($0.split(separator: " ").map(String.init)) }

/// The programs to build, from IDENTITYD_PROGRAMS. Nil for those of the packages, and for the libraries and tests.
let chosenPrograms = Context.environment["IDENTITYD_PROGRAMS"].map { Set($0.split(separator: " ").map(String.init)) }

/// The benchmarks, which bench and fleet-bench in packaging/tools run. Only IDENTITYD_PROGRAMS can choose them. Foundation
/// is allowed here, as in the tests.
let benchmarks: [Target] = [
  // packaging/tools/bench compiles the files in C separately: a server for comparison must not contain the Swift
  // runtime, and SyncDelay.c becomes a library to preload. The Swift files that are links are those of FleetBench.
  .executableTarget(
    name: "IdentityBench",
    dependencies: ["CEpoll", "COpenSSL", "CSQLite", "FleetSeal", "FleetWire", "IdentityCore", "LinuxSystem"],
    path: "packaging/tools/benchmarks/IdentityBench", exclude: ["LimitServer.c", "SyncDelay.c"], swiftSettings: strict),
  .systemLibrary(name: "CEpoll", path: "packaging/tools/benchmarks/CEpoll"),
  .systemLibrary(name: "COpenSSL", path: "packaging/tools/benchmarks/COpenSSL"),
  .executableTarget(
    name: "FleetBench",
    dependencies: ["CEpoll", "COpenSSL", "FleetCore", "FleetSeal", "FleetWire", "IdentityCore", "LinuxSystem"],
    path: "packaging/tools/benchmarks/FleetBench", swiftSettings: strict),
]

let package = Package(
  name: "identityd",
  products: [
    .executable(name: "identityd", targets: ["identityd"]),
    .executable(name: "identityctl", targets: ["identityctl"]),
    .executable(name: "identity-fleet", targets: ["identity-fleet"]),
    .executable(name: "identity-portal", targets: ["identity-portal"]),
    // The client library for Swift programs: the only public API of the package.
    .library(name: "IdentityClient", targets: ["IdentityClient"]),
  ],
  targets: [
    // C: module maps, and declarations that the Glibc module hides.
    .target(name: "CLinux", cSettings: hardened),
    .target(name: "CCrypto", cSettings: hardened),
    .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .target(name: "CStoreFiles", dependencies: ["CSQLite"], cSettings: hardened),
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    .systemLibrary(name: "CInih", pkgConfig: "inih", providers: [.apt(["libinih-dev"])]),
    .systemLibrary(name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),

    // PURE: rules and bytes. No I/O, no clock, no randomness, no unsafe code.
    .target(name: "IdentityCore", swiftSettings: fast),
    .target(name: "IdentityWire", dependencies: ["IdentityCore"], swiftSettings: fast),
    .target(name: "FleetWire", dependencies: ["IdentityCore"], swiftSettings: fast),
    .target(name: "FleetCore", dependencies: ["FleetWire", "IdentityCore"], swiftSettings: fast),

    // EDGE: the kernel, systemd, files, SQLite. They may import LinuxSystem and, in AppManifests, ConfigurationFiles.
    .target(name: "LinuxSystem", dependencies: ["CLinux"], swiftSettings: fast),
    .target(name: "Systemd", dependencies: ["CSystemd"], swiftSettings: fast),
    .target(name: "ConfigurationFiles", dependencies: ["CInih", "LinuxSystem"], swiftSettings: strict),
    .target(
      name: "AppManifests", dependencies: ["IdentityCore", "ConfigurationFiles", "LinuxSystem"], swiftSettings: strict),
    .target(
      name: "IdentityStore",
      dependencies: [
        "ClientSecrets", "IdentityCore", "IdentityWire", "LinuxSystem", "CSQLite", "CStoreFiles", "CSodium",
      ],
      swiftSettings: fast),

    // The identity of peers, for each socket of this project.
    .target(name: "Attestation", dependencies: ["IdentityCore", "LinuxSystem", "Systemd"], swiftSettings: fast),

    // The state machine of a client's connection, for each socket of this project.
    .target(name: "Sessions", dependencies: ["IdentityCore", "LinuxSystem"], swiftSettings: fast),

    // The fleet's connections.
    .target(name: "Mosquitto", dependencies: ["CMosquitto", "LinuxSystem"], swiftSettings: strict),

    // The fleet's keys and seals.
    .target(name: "FleetSeal", dependencies: ["FleetWire", "IdentityCore", "CSodium"], swiftSettings: fast),

    // Proofs: their keys, and the form in which they are signed and verified.
    .target(
      name: "Proofs", dependencies: ["IdentityCore", "IdentityWire", "LinuxSystem", "CCrypto", "CSodium"],
      swiftSettings: fast),

    // Passphrases and what they open: in identityctl, and in a backup that a machine is given at its first start. Not part
    // of the library, so that other programs need not link libsodium.
    .target(name: "ClientSecrets", dependencies: ["LinuxSystem", "CSodium"], swiftSettings: strict),

    // COMPOSE: the daemon's loop, and the client's side of the socket.
    .target(
      name: "IdentityServer",
      dependencies: [
        "Attestation", "IdentityCore", "IdentityWire", "IdentityStore", "LinuxSystem", "Proofs", "Sessions", "Systemd",
      ],
      swiftSettings: fast),
    .target(
      name: "IdentityClient", dependencies: ["IdentityCore", "IdentityWire", "LinuxSystem"], swiftSettings: strict),

    // The fleet's service: identityd, the rules and the broker.
    .target(
      name: "FleetService",
      dependencies: [
        "Attestation", "ConfigurationFiles", "FleetCore", "FleetSeal", "FleetWire", "IdentityClient", "IdentityCore",
        "IdentityWire", "LinuxSystem", "Mosquitto", "Proofs", "Sessions", "Systemd",
      ], swiftSettings: strict),

    // Formats that identityctl writes and reads. Not part of the library: programs have formats of their own.
    .target(
      name: "ClientFormats", dependencies: ["IdentityClient", "IdentityCore", "IdentityWire", "LinuxSystem"],
      swiftSettings: strict),
    // The checks of `identityctl check`: the facts they collect and the findings they draw from them.
    .target(
      name: "Doctor", dependencies: ["IdentityCore", "IdentityWire", "IdentityClient", "LinuxSystem"],
      swiftSettings: strict),

    // PROGRAM: options, configuration, wiring.
    .executableTarget(
      name: "identityd",
      dependencies: [
        "AppManifests", "IdentityCore", "IdentityStore", "IdentityServer", "ConfigurationFiles", "LinuxSystem",
        "Systemd",
      ],
      swiftSettings: fast, linkerSettings: lean),
    .executableTarget(
      name: "identityctl",
      dependencies: [
        "ClientFormats", "ClientSecrets", "Doctor", "FleetSeal", "FleetWire", "IdentityCore", "IdentityWire",
        "IdentityClient", "LinuxSystem", "Proofs",
      ],
      swiftSettings: strict, linkerSettings: lean),

    .executableTarget(
      name: "identity-fleet",
      dependencies: [
        "ConfigurationFiles", "FleetService", "FleetWire", "IdentityClient", "IdentityCore", "LinuxSystem", "Mosquitto",
        "Systemd",
      ],
      swiftSettings: strict, linkerSettings: lean),

    .executableTarget(
      name: "identity-portal", dependencies: ["IdentityClient", "IdentityCore", "LinuxSystem", "Systemd"],
      swiftSettings: strict, linkerSettings: lean),

    // Shared by several test targets. Placed below Tests because it is not shipped.
    .target(
      name: "TestSupport", dependencies: ["IdentityCore", "LinuxSystem"], path: "Tests/TestSupport",
      swiftSettings: strict),
    .target(
      name: "ReferenceModel", dependencies: ["TestSupport"], path: "Tests/ReferenceModel", swiftSettings: strict),

    // One test target per library target, then the targets that test across several of them.
    .testTarget(
      name: "IdentityCoreTests", dependencies: ["IdentityCore", "IdentityWire", "ReferenceModel", "TestSupport"],
      exclude: ["Fixtures"], swiftSettings: strict),
    .testTarget(name: "IdentityWireTests", dependencies: ["IdentityWire", "IdentityCore"], swiftSettings: strict),
    .testTarget(name: "FleetWireTests", dependencies: ["FleetWire", "IdentityCore"], swiftSettings: strict),
    .testTarget(
      name: "FleetSealTests",
      dependencies: [
        "ClientSecrets", "FleetCore", "FleetSeal", "FleetWire", "IdentityClient", "IdentityCore", "LinuxSystem",
        "TestSupport",
      ],
      exclude: ["fleet_twin.py"], swiftSettings: strict),
    .testTarget(
      name: "FleetCoreTests", dependencies: ["FleetCore", "FleetSeal", "FleetWire", "IdentityCore", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "FleetServiceTests",
      dependencies: [
        "ConfigurationFiles", "FleetCore", "FleetSeal", "FleetService", "FleetWire", "IdentityCore", "TestSupport",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ProofsTests", dependencies: ["IdentityWire", "Proofs", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "SessionsTests", dependencies: ["IdentityCore", "LinuxSystem", "Sessions"], swiftSettings: strict),
    .testTarget(name: "LinuxSystemTests", dependencies: ["LinuxSystem", "TestSupport"], swiftSettings: strict),
    .testTarget(name: "ClientSecretsTests", dependencies: ["ClientSecrets", "LinuxSystem"], swiftSettings: strict),
    .testTarget(
      name: "MosquittoTests", dependencies: ["LinuxSystem", "Mosquitto", "TestSupport"], swiftSettings: strict),
    .testTarget(name: "SystemdTests", dependencies: ["Systemd", "LinuxSystem", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "ConfigurationFilesTests", dependencies: ["ConfigurationFiles", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "AppManifestsTests",
      dependencies: ["AppManifests", "IdentityCore", "ConfigurationFiles", "LinuxSystem", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "IdentityStoreTests",
      dependencies: ["IdentityStore", "IdentityCore", "IdentityWire", "LinuxSystem", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "IdentityServerTests",
      dependencies: [
        "Attestation", "IdentityServer", "IdentityCore", "IdentityStore", "IdentityWire", "LinuxSystem", "Sessions",
        "Systemd", "TestSupport",
      ], swiftSettings: strict),
    .testTarget(
      name: "IdentityClientTests",
      dependencies: ["IdentityClient", "IdentityCore", "IdentityWire", "LinuxSystem", "TestSupport"],
      swiftSettings: strict),
    .testTarget(
      name: "ClientFormatsTests", dependencies: ["ClientFormats", "IdentityClient", "IdentityCore", "IdentityWire"],
      swiftSettings: strict),
    .testTarget(
      name: "DoctorTests",
      dependencies: ["Doctor", "IdentityClient", "IdentityCore", "IdentityWire", "LinuxSystem", "Proofs"],
      swiftSettings: strict),
    .testTarget(
      name: "LibraryTests", dependencies: ["IdentityClient", "LinuxSystem", "TestSupport"], swiftSettings: strict),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "Doctor", "FleetSeal", "FleetWire", "IdentityClient", "IdentityWire", "IdentityCore", "IdentityStore",
        "LinuxSystem", "ReferenceModel", "TestSupport",
      ],
      exclude: ["Fixtures"],
      swiftSettings: strict),
    .testTarget(
      name: "SystemTests", dependencies: ["TestSupport"], exclude: ["restart-client.pl"], swiftSettings: strict),
    .testTarget(
      name: "LayoutTests",
      dependencies: [
        "ClientFormats", "Doctor", "IdentityClient", "IdentityCore", "IdentityWire", "LinuxSystem", "identityctl",
      ],
      swiftSettings: strict),
    fuzz,
  ]
)

for target in package.targets where optimizedTargets.contains(target.name) {
  target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-O"], .when(configuration: .debug))]
}

if let chosenTests {
  package.targets.removeAll { target in
    let isOptional = target.type == .test || target.name == "ReferenceModel"
    return isOptional && !chosenTests.contains(target.name)
  }
}

if let chosenPrograms {
  package.targets += benchmarks
  func isLeftOut(_ target: Target) -> Bool { target.type == .executable && !chosenPrograms.contains(target.name) }
  let leftOut = package.targets.filter(isLeftOut).map(\.name)
  package.products.removeAll { leftOut.contains($0.name) }
  package.targets.removeAll(where: isLeftOut)
  // Library targets that nothing else needs.
  var needed = package.targets.filter { $0.type == .test }.map(\.name) + chosenPrograms + ["IdentityClient"]
  var isNeeded: Set<String> = []
  while let name = needed.popLast() {
    guard isNeeded.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else {
      continue
    }
    for case .byNameItem(let dependency, _) in target.dependencies { needed.append(dependency) }
  }
  package.targets.removeAll { !isNeeded.contains($0.name) }
}
