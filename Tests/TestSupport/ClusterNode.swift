/// The configuration of one node of a cluster of nats-servers with JetStream and MQTT. The benchmarks have a link to this
/// file.
struct ClusterNode {
  /// The number, which tells nodes apart.
  let number: Int
  /// The addresses at which the node listens to NATS clients, to MQTT clients and to other nodes.
  let addresses: (clients: String, devices: String, nodes: String)
  /// The addresses of the nodes.
  let nodes: [String]
  /// The folder of the messages, whose name with `.log` is that of the log.
  let store: String
  /// The users, in the words of the configuration. The user of a device that names none is `site`.
  let users: [String]
  /// The paths of the certificate that MQTT clients see, and of its key; nil without TLS.
  var certificate: (certificate: String, key: String)?

  private var tls: String {
    certificate.map { ", tls: { cert_file: \"\($0.certificate)\", key_file: \"\($0.key)\" }" } ?? ""
  }

  /// The text of the configuration.
  var text: String {
    """
    server_name: node\(number)
    listen: "\(addresses.clients)"
    log_file: "\(store).log"
    max_payload: 64KB
    max_connections: 100000
    jetstream { store_dir: "\(store)", sync_interval: 2m }
    mqtt { listen: "\(addresses.devices)", stream_replicas: 3, consumer_replicas: 3, no_auth_user: site\(tls) }
    cluster {
      name: fleet, listen: "\(addresses.nodes)",
      routes: [\(nodes.map { "\"nats://\($0)\"" }.joined(separator: ", "))]
    }
    accounts { fleet { jetstream: enabled, users: [
      \(users.joined(separator: "\n  "))
    ] } }

    """
  }
}
