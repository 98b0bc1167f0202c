import FleetCore
import FleetSeal
import FleetWire
import LinuxSystem
import Mosquitto
import Systemd

/// The connection to one of the brokers.
final class Broker {
  private let loop: EventLoop
  private let credentials: Credentials
  private var configuration: FleetConfiguration
  private let hear: () -> Void
  /// The place of the next broker to try in the configuration.
  private var next: Int
  private var connection: BrokerConnection?
  /// The watch on the connection, or the timer of a pause.
  private var source: EventSource?
  /// The reports that were taken from the connection, the next one last.
  private var reports: [BrokerConnection.Report] = []
  private var inflow = Inflow()
  /// The subscriptions that are not acknowledged, by their texts.
  private var filters: [String: TopicFilter] = [:]
  /// The will of the next connection.
  private var will: Publication?
  private var passwords = PasswordAttempts()
  /// The broker in use, or the last one that was tried; nil before the first attempt.
  private(set) var pattern: BrokerPattern?

  /// The reason why there is no connection without `Broker=`.
  static let unconfigured = "no broker is configured; run 'identityctl fleet setup mqtts://USER@HOST'"

  /// Creates the place for a connection.
  ///
  /// - Parameter hear: called when reports have arrived; takes them with ``nextReport()``.
  init(_ loop: EventLoop, _ configuration: FleetConfiguration, _ credentials: Credentials, hear: @escaping () -> Void) {
    self.loop = loop
    self.configuration = configuration
    self.credentials = credentials
    self.hear = hear
    // From a random one, so that the devices of a site divide themselves among the brokers.
    next = configuration.brokers.indices.randomElement() ?? 0
  }

  /// Ends the connection, and uses another configuration for the next one.
  func use(_ configuration: FleetConfiguration) {
    disconnect()
    self.configuration = configuration
    // The broker in use so far must not see what the new configuration shows.
    pattern = nil
    next = configuration.brokers.indices.randomElement() ?? 0
  }

  /// Starts to connect to the next broker, as a newcomer without an account. Returns the reason if that is impossible.
  func connect(as account: Account?) -> String? {
    guard !configuration.brokers.isEmpty else { return Self.unconfigured }
    let pattern = configuration.brokers[next % configuration.brokers.count]
    self.pattern = pattern
    next = (next + 1) % configuration.brokers.count
    guard account != nil || configuration.user != .account && !pattern.dependsOnAccount else {
      return "this broker lets no newcomers in, as its user or its address depends on the account; join with a file"
    }
    passwords.begin(configuration.user == .account ? account?.passwordEpochs ?? [] : [])
    return connect(to: pattern, as: account)
  }

  /// The outcome of a refused password.
  enum Refused {
    /// The broker is asked with another password.
    case connecting
    /// The attempt with another password is impossible, with the reason.
    case failed(String)
    /// All passwords of the attempt were tried.
    case refused
  }

  /// Connects with the password of another epoch, which the broker may still have.
  func connectWithAnotherPassword(as account: Account?) -> Refused {
    guard let pattern, passwords.hasNext else { return .refused }
    close()
    return connect(to: pattern, as: account).map { .failed($0) } ?? .connecting
  }

  /// Notes that the broker has let this device in.
  func noteConnected() { passwords.noteAccepted() }

  private func connect(to pattern: BrokerPattern, as account: Account?) -> String? {
    do {
      var access = access(to: pattern, as: account, passwords.next())
      access.will = will
      connection = try BrokerConnection(to: access)
      try listen()
      return nil
    } catch {
      disconnect()
      return "\(error)"
    }
  }

  private func access(to pattern: BrokerPattern, as account: Account?, _ epoch: EpochKey?) -> BrokerAccess {
    let keys = account?.seal.account
    let (host, port) = pattern.address(for: keys?.id)
    var access = BrokerAccess(host: host, port: port, protection: .none, keepAlive: configuration.keepAlive)
    if pattern.isEncrypted {
      let file = configuration.certificate ?? credentials.path(of: "fleet.crt")
      let key = configuration.certificateKey ?? credentials.path(of: "fleet.key")
      let certificate = file.flatMap { file in key.map { BrokerAccess.Certificate(file: file, key: $0) } }
      access.protection = .tls(authorities: configuration.authorities, certificate)
    }
    switch configuration.user {
    case nil: break
    case .account:
      access.user = keys.map { keys in
        BrokerAccess.User(name: "\(keys.id)", password: epoch.map(keys.brokerPassword))
      }
    case .named(let name): access.user = BrokerAccess.User(name: name, password: credentials.password)
    }
    return access
  }

  /// Makes another connection to the broker in use, or else to the first one; nil if none is configured.
  func another(as account: Account?) throws(SystemError) -> BrokerConnection? {
    try (pattern ?? configuration.brokers.first).map { (pattern) throws(SystemError) in
      try another(to: pattern, as: account)
    }
  }

  /// Makes another connection to a broker.
  func another(to pattern: BrokerPattern, as account: Account?) throws(SystemError) -> BrokerConnection {
    let epoch = passwords.accepted(among: account?.passwordEpochs ?? [])
    return try BrokerConnection(to: access(to: pattern, as: account, epoch))
  }

  /// Whether the password in use is not that of the present epoch.
  func usesFormerPassword(of account: Account?) -> Bool {
    account.map { passwords.isOther(than: $0.presentKey) } ?? false
  }

  /// Ends the connection.
  func disconnect() {
    close()
    will = nil
    passwords.end()
  }

  private func close() {
    // The source first: its descriptor belongs to the connection.
    source = nil
    connection = nil
    (filters, reports, inflow) = ([:], [], Inflow())
  }

  /// Subscribes to topics.
  func subscribe(to filter: TopicFilter) {
    filters[filter.text] = filter
    connection?.subscribe(to: filter.text)
  }

  /// Publishes a message, which the broker keeps.
  func publish(_ message: SignedMessage, on topic: MessageTopic) {
    connection?.publish(Publication(topic: topic.text, payload: message.bytes, isRetained: true))
  }

  /// Removes the message that the broker keeps.
  func clear(_ topic: MessageTopic) {
    connection?.publish(Publication(topic: topic.text, payload: [], isRetained: true))
  }

  /// Publishes a message, which the broker does not keep.
  func announce(_ message: SignedMessage, on topic: MessageTopic) {
    connection?.publish(Publication(topic: topic.text, payload: message.bytes, isRetained: false))
  }

  /// Gives the next connection a will, which the broker does not keep.
  func leave(will message: SignedMessage, on topic: MessageTopic) {
    will = Publication(topic: topic.text, payload: message.bytes, isRetained: false)
  }

  private func listen() throws(SystemdError) {
    guard let connection else { return }
    source = try loop.watch(readable: connection.descriptor) { [unowned self] in
      reports = connection.takeReports().reversed()
      hear()
    }
  }

  /// Removes and returns the next report; nil if there is none, or if it has to wait, because the broker sends messages
  /// faster than this device opens them.
  func nextReport() -> BrokerConnection.Report? {
    if case .received? = reports.last {
      switch inflow.next(at: Clock.monotonicMicroseconds) {
      case .open: break
      case .wait(let duration): return pause(for: duration)
      case .flood: return .ended("the broker sends more messages than this device opens")
      }
    }
    return reports.popLast()
  }

  /// Takes no report for some microseconds. Returns the end of the connection if that is impossible.
  private func pause(for duration: UInt64) -> BrokerConnection.Report? {
    do {
      source = try loop.timer(after: duration, accuracy: 1_000) { [unowned self] in
        do {
          try listen()
        } catch {
          reports.append(.ended("\(error)"))
        }
        hear()
      }
      return nil
    } catch {
      return .ended("\(error)")
    }
  }

  /// Returns the subscription with this text, and forgets it.
  func takeFilter(_ text: String) -> TopicFilter? { filters.removeValue(forKey: text) }

  /// Whether there is a connection, or an attempt to make one.
  var isInUse: Bool { connection != nil }
}
