import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Mosquitto
import Systemd

/// The connections with brokers that admins ask for, beside that of the account: a reading of reports, and a trial of the
/// configured brokers. There is one of each at most, and each ends once its client is silent.
final class SideConnections {
  /// The silence of a client after which a reading or a trial ends, in microseconds.
  private static let patience: UInt64 = 30_000_000

  private let loop: EventLoop
  private var reading: SiteReading?
  /// The number of the last reading.
  private var lastReading: UInt64 = 0
  private var readingEnd: EventSource?
  private var trial: BrokerTrial?
  private var trialEnd: EventSource?

  init(_ loop: EventLoop) { self.loop = loop }

  /// Ends the reading and the trial.
  func end() {
    endReading()
    endTrial()
  }

  /// Carries out a request that needs such a connection.
  func answer(
    _ request: ControlRequest, of configuration: FleetConfiguration, _ broker: Broker?, as account: Account?
  ) throws(Refusal) -> Reply {
    switch request {
    case .readReports(let site): return try readReports(for: site, broker, as: account)
    case .reports(let number): return try reports(of: number)
    case .tryBrokers:
      guard !configuration.brokers.isEmpty else { throw .unavailable(Broker.unconfigured) }
      trial = BrokerTrial(configuration.brokers)
    default: break
    }
    return triedBrokers(of: configuration, broker, as: account)
  }

  // MARK: Brokers

  /// Goes on with the trial. Returns the outcomes so far.
  private func triedBrokers(of configuration: FleetConfiguration, _ broker: Broker?, as account: Account?) -> Reply {
    guard let broker else { return BrokerTrial([]).reply }
    trial?.goOn(isUserKnown: account != nil || configuration.user != .account) {
      (pattern) throws(SystemError) in
      guard account != nil || !pattern.dependsOnAccount else { return nil }
      return try broker.another(to: pattern, as: account)
    }
    let reply = trial?.reply ?? BrokerTrial([]).reply
    trialEnd = try? loop.timer(after: Self.patience, accuracy: 1_000_000) { [unowned self] in endTrial() }
    // Without a timer, an abandoned trial would last.
    if trialEnd == nil { trial = nil }
    return reply
  }

  /// Ends the trial.
  func endTrial() { (trial, trialEnd) = (nil, nil) }

  // MARK: Reports

  /// Starts to read the reports for a site, which ends an earlier reading.
  private func readReports(for site: ReaderID, _ broker: Broker?, as account: Account?) throws(Refusal) -> Reply {
    let made: BrokerConnection?
    do throws(SystemError) {
      made = try broker?.another(as: account)
    } catch {
      throw .unavailable("\(error)")
    }
    guard let connection = made else { throw .unavailable(Broker.unconfigured) }
    lastReading += 1
    reading = SiteReading(lastReading, of: site, over: connection)
    awaitNextPage()
    var reply = Reply()
    reply.ok()
    reply.attribute("reading", .number(Int64(lastReading)))
    return reply
  }

  /// Returns the next reports of a reading, each with the tag of its device.
  private func reports(of number: UInt64) throws(Refusal) -> Reply {
    guard let reading, reading.number == number else {
      throw .notFound("the reading has ended; another one may have begun")
    }
    let page: SiteReading.Page
    do throws(Refusal) {
      page = try reading.next()
    } catch {
      endReading()
      throw error
    }
    if page.isLast { endReading() } else { awaitNextPage() }
    return page.reply
  }

  private func awaitNextPage() {
    readingEnd = try? loop.timer(after: Self.patience, accuracy: 1_000_000) { [unowned self] in endReading() }
    // Without a timer, an abandoned reading would last.
    if readingEnd == nil { reading = nil }
  }

  private func endReading() { (reading, readingEnd) = (nil, nil) }
}
