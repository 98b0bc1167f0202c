/// The control groups of the system, as this process sees them (cgroups(7)).
package enum ControlGroups {
  /// The folder on which the hierarchies are mounted.
  package static let folder = "/sys/fs/cgroup"

  /// Whether a hierarchy is mounted in which libsystemd looks up processes: the unified one alone, or beside others, or
  /// that of systemd beside others.
  package static var areMounted: Bool {
    // Every cgroup has this file, also the root of a hierarchy.
    ["", "/unified", "/systemd"].contains { ((try? PathStatus.of("\(folder)\($0)/cgroup.procs")) ?? nil) != nil }
  }
}
