import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Mosquitto

/// A trial of the configured brokers, one after the other, over connections that carry no messages.
///
/// The trial goes on only while the client asks.
struct BrokerTrial {
  private enum Outcome {
    case waiting
    case trying(BrokerConnection)
    /// The broker has let this device in.
    case taken
    /// The broker answers, and refuses the user or the password.
    case refused(String)
    case failed(String)
    /// The broker cannot be tried further before this device is in an account.
    case untried(String)

    /// The word in the answer, and the reason.
    var words: (outcome: String, reason: String?) {
      switch self {
      case .waiting, .trying: ("trying", nil)
      case .taken: ("taken", nil)
      case .refused(let reason): ("refused", reason)
      case .failed(let reason): ("failed", reason)
      case .untried(let reason): ("untried", reason)
      }
    }
  }

  private var outcomes: [(pattern: BrokerPattern, outcome: Outcome)]

  /// Starts a trial.
  init(_ patterns: [BrokerPattern]) { outcomes = patterns.map { ($0, .waiting) } }

  /// Goes on with the first broker whose outcome is open.
  ///
  /// - Parameters:
  ///   - isUserKnown: whether this device has the user that the configuration names; a user of an account needs one.
  ///   - connect: makes a connection; nil if the address depends on the account, and this device is in none.
  mutating func goOn(
    isUserKnown: Bool, _ connect: (BrokerPattern) throws(SystemError) -> BrokerConnection?
  ) {
    for index in outcomes.indices {
      switch outcomes[index].outcome {
      case .waiting: outcomes[index].outcome = Self.begin(outcomes[index].pattern, connect)
      case .trying(let connection): outcomes[index].outcome = Self.look(at: connection, isUserKnown)
      case .taken, .refused, .failed, .untried: continue
      }
      if case .trying = outcomes[index].outcome { return }
    }
  }

  private static func begin(
    _ pattern: BrokerPattern, _ connect: (BrokerPattern) throws(SystemError) -> BrokerConnection?
  ) -> Outcome {
    do throws(SystemError) {
      let connection = try connect(pattern)
      return connection.map { .trying($0) }
        ?? .untried("the address of the broker depends on the account, and this device is in none")
    } catch {
      return .failed("\(error)")
    }
  }

  private static func look(at connection: BrokerConnection, _ isUserKnown: Bool) -> Outcome {
    for report in connection.takeReports() {
      switch report {
      case .connected: return .taken
      case .refused(let reason):
        return isUserKnown
          ? .refused(reason)
          : .untried("the broker answers, and its user for the account exists only once this device is in the account")
      case .ended(let text): return .failed("\(BrokerTrouble(text: text, wasConnected: false))")
      case .subscribed, .denied, .received: continue
      }
    }
    return .trying(connection)
  }

  /// The outcomes, a row for each broker.
  var reply: Reply {
    Reply.rows(outcomes.map { (broker: "\($0.pattern)", words: $0.outcome.words) }) { entry, reply in
      reply.attribute("broker", .string(entry.broker))
      reply.attribute("outcome", .string(entry.words.outcome))
      reply.attribute("reason", entry.words.reason.map { .string($0) })
    }
  }
}
