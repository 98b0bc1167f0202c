import Foundation
import TestSupport

/// A real service with a manifest that asks for all identifiers on demand, always in the same session.
struct Probe {
  static let levels = ["uuid", "key", "session", "boot", "installation", "vendor", "device", ownDevice]
  /// The table's name for the device identifier of an app with `DeviceIdentifier=app` in its manifest.
  private static let ownDevice = "device, an app's own"

  let system: Container
  private let name = "probe"
  private static let alone = "org.example.alone"
  private var manifest: String { "\(Container.manifests)/org.example.probe.app" }

  /// Writes the service and its manifest, and launches the service.
  init(on system: Container) async throws {
    self.system = system
    try await system.write(
      """
      #!/bin/sh
      while :; do
        if [ -e /run/probe/ask ]; then
          rm /run/probe/ask
          for level in uuid 'key name' session boot installation vendor device; do
            echo "$(echo $level | cut -d ' ' -f 1) $(identityctl get $level 2>&1)"
          done >/run/probe/new
          mv /run/probe/new /run/probe/answer
        fi
        sleep 0.02
      done
      """, to: "/usr/local/bin/probe")
    try await system.write(
      """
      [Service]
      ExecStart=/bin/sh /usr/local/bin/probe
      RuntimeDirectory=probe
      User=daemon
      """, to: "/etc/systemd/system/probe.service")
    try await system.write(
      "[App]\nUnit=alone.service\nDeviceIdentifier=app", to: "\(Container.manifests)/\(Self.alone).app")
    try await install()
    try await launch()
  }

  /// Installs the app: creates its manifest.
  func install() async throws {
    try await system.write("[App]\nVendor=org.example\nUnit=probe.service", to: manifest)
    try await isListed(true)
  }

  /// Upgrades the app: replaces the manifest by another file.
  func upgrade() async throws {
    try await system.shell("cp \(manifest) /root/new && echo '# newer' >>/root/new && mv /root/new \(manifest)")
  }

  /// Uninstalls the app as a package does.
  func uninstall() async throws {
    try await system.shell(
      "systemctl stop probe.service; rm \(manifest); identityctl --yes app forget org.example.probe")
    try await isListed(false)
  }

  private func isListed(_ wanted: Bool) async throws {
    try await eventually("the app is \(wanted ? "installed" : "uninstalled")") {
      try await system.shell("identityctl app list").contains("org.example.probe") == wanted
    }
  }

  /// Launches the app: starts a new invocation of its service.
  func launch() async throws { try await system.shell("systemctl daemon-reload; systemctl restart probe.service") }

  /// Returns the app's current identifiers by level.
  func identifiers() async throws -> [String: String] {
    let answer = try await system.shell(
      """
      rm -f /run/probe/answer; : >/run/probe/ask
      for turn in $(seq 500); do [ -e /run/probe/answer ] && break; sleep 0.02; done
      cat /run/probe/answer
      # Waits until the daemon has read the manifest.
      for turn in $(seq 500); do identityctl get device app=\(Self.alone) >/dev/null 2>&1 && break; sleep 0.02; done
      echo "own $(identityctl get device app=\(Self.alone) 2>&1)"
      """)
    var found: [String: String] = [:]
    for line in answer.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      guard words.count == 2, UUID(uuidString: words[1]) != nil else { throw Failure("the probe was told: \(answer)") }
      found[words[0] == "own" ? Self.ownDevice : words[0]] = words[1]
    }
    guard found.count == Self.levels.count else { throw Failure("the probe was told: \(answer)") }
    return found
  }

  /// Removes the service and the manifests.
  func remove() async throws {
    try await system.shell(
      """
      systemctl stop probe.service
      rm -f \(manifest) \(Container.manifests)/\(Self.alone).app /etc/systemd/system/probe.service
      for app in org.example.probe \(Self.alone); do identityctl --yes app forget $app || true; done
      systemctl daemon-reload
      """)
  }
}
