// swift-tools-version: 6.2

import PackageDescription

/// The settings of every Swift target, as in the package of identityd.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

/// The settings of the fleet's rules and messages, which are built as in the package of identityd.
let fast = strict + [.unsafeFlags(["-cross-module-optimization"], .when(configuration: .release))]

// The benchmarks that packaging/bench and packaging/fleet-bench run. They are a package of their own, so that the package
// of identityd contains only products. All but CBench, CEpoll, IdentityBench and FleetBench are links to the targets of
// identityd.
let package = Package(
  name: "identityd-benchmarks",
  targets: [
    .target(name: "CLinux"),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .target(name: "LinuxSystem", dependencies: ["CLinux"], swiftSettings: strict),
    // packaging/bench compiles LimitServer.c and BusService.c separately: a program for comparison must not contain the
    // Swift runtime. SyncDelay.c becomes a library to preload.
    .target(
      name: "CBench", dependencies: ["CSQLite"], exclude: ["BusService.c", "LimitServer.c", "SyncDelay.c"],
      cSettings: [.unsafeFlags(["-Wall", "-Wextra", "-Werror"])]),
    // Foundation is allowed here, as in the tests.
    .executableTarget(name: "IdentityBench", dependencies: ["CBench", "LinuxSystem"], swiftSettings: strict),

    .systemLibrary(name: "CEpoll"),
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    .target(name: "IdentityCore", swiftSettings: fast),
    .target(name: "FleetWire", dependencies: ["IdentityCore"], swiftSettings: fast),
    .target(name: "FleetCore", dependencies: ["FleetWire", "IdentityCore"], swiftSettings: fast),
    .target(name: "FleetSeal", dependencies: ["FleetWire", "IdentityCore", "CSodium"], swiftSettings: fast),
    .executableTarget(
      name: "FleetBench",
      dependencies: ["CEpoll", "FleetCore", "FleetSeal", "FleetWire", "IdentityCore", "LinuxSystem"],
      swiftSettings: strict),
  ]
)
