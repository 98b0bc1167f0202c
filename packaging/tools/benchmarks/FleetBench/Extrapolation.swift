/// The needs of many more devices, computed from those of the measured ones. A device publishes its record twice a day:
/// once as a sign of life, and once because it was restarted.
struct Extrapolation {
  /// The memory of one node for a connected device and its record, in kilobytes.
  let memory: Double
  /// The CPU time of all nodes for a device that connects, reads and publishes, in milliseconds.
  let processorTime: Double
  /// The number of nodes, which share the connections.
  let nodes: Int

  private static let recordsPerDay = 2.0
  /// The devices of one cluster, since more of them would come back too slowly after the loss of a node.
  private static let perCluster = 1e6

  /// Adds rows for a number of devices.
  func add(for devices: Double, _ manner: String, to table: inout Table) {
    let clusters = (devices / Self.perCluster).rounded(.up)
    let each = devices / clusters
    let name = devices >= 1e6 ? "\(Int(devices / 1e6)) million devices" : "\(Int(devices)) devices"
    table.add("\(name): clusters", clusters, "", note: "computed, as all of these, \(manner)")
    table.add("\(name): memory of a node", each * memory / 1_048_576, "GB")
    table.add("\(name): records published in a cluster", each * Self.recordsPerDay / 86_400, "a second")
    let lost = nodes > 1 ? each / Double(nodes) : each
    table.add(
      "\(name): CPU time until the devices of a lost node are back", lost * processorTime / 1e3, "s",
      note: "\(Int(lost)) devices; Spread= has to be as long on one core")
  }
}
