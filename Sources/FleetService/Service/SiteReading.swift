import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Mosquitto

/// A reading of all reports for a site, whose admin has the key. The service cannot open them.
///
/// The reading has a connection of its own, so a broker that denies it leaves that of the account alone. It goes on only
/// while the client asks. Meanwhile TCP holds the broker back, so a site of any size takes little memory here.
final class SiteReading {
  /// A part of the reports.
  struct Page {
    /// The reports, sealed.
    let reports: [(tag: DeviceTag, bytes: [UInt8])]
    /// Whether these are the last ones.
    let isLast: Bool

    /// The reports in rows, each with the tag of its device.
    var reply: Reply {
      var reply = Reply()
      for (tag, bytes) in reports {
        var text: [UInt8] = []
        Base64Text.append(bytes.span, to: &text)
        reply.row()
        reply.word(.string("\(tag)"))
        reply.attribute("report", .text(Text(trusted: text)))
      }
      reply.ok()
      reply.attribute("last", .string(isLast ? "yes" : "no"))
      return reply
    }
  }

  /// The bytes from which on a page is full: much less than the buffer of a socket holds.
  private static let pageBytes = 49_152
  /// The silence after which the retained messages of a subscription, and of the last one, count as complete, in
  /// microseconds.
  private static let (quiet, lastQuiet): (UInt64, UInt64) = (300_000, 2_000_000)
  /// How long a subscription may stay unacknowledged, in microseconds.
  private static let patience: UInt64 = 10_000_000

  /// The number that tells readings apart.
  let number: UInt64
  private let site: ReaderID
  private let connection: BrokerConnection
  /// The topics by the first digits of the tags, which a large site is read by.
  private var buckets: [UInt8] = Array(0..<16)
  /// The time of the last news from the broker.
  private var heard = Clock.monotonicMicroseconds
  private var isConnected = false
  private var isAcknowledged = false
  private var waiting: [BrokerConnection.Report] = []

  /// Starts a reading.
  init(_ number: UInt64, of site: ReaderID, over connection: BrokerConnection) {
    self.number = number
    self.site = site
    self.connection = connection
  }

  /// Returns the reports that have arrived.
  func next() throws(Refusal) -> Page {
    if waiting.isEmpty { waiting = connection.takeReports() }
    let now = Clock.monotonicMicroseconds
    var reports: [(tag: DeviceTag, bytes: [UInt8])] = []
    var count = 0
    var taken = 0
    for report in waiting where count < Self.pageBytes {
      taken += 1
      heard = now
      switch report {
      case .connected:
        isConnected = true
        subscribe()
      case .subscribed: isAcknowledged = true
      case .received(let delivery):
        guard case .report(site, let tag)? = MessageTopic(parsing: delivery.topic), !delivery.payload.isEmpty else {
          continue
        }
        reports.append((tag, delivery.payload))
        count += 64 + delivery.payload.count
      case .denied(let topic):
        throw .unavailable("the broker denies the subscription to \(topic); \(Self.advice(site))")
      case .refused(let reason), .ended(let reason): throw .unavailable("the reports cannot be read: \(reason)")
      }
    }
    waiting.removeFirst(taken)
    guard waiting.isEmpty, isConnected else { return Page(reports: reports, isLast: false) }
    let silence = now - heard
    guard isAcknowledged else {
      guard silence < Self.patience else { throw .unavailable("the broker does not answer") }
      return Page(reports: reports, isLast: false)
    }
    guard silence >= (buckets.count > 1 ? Self.quiet : Self.lastQuiet) else {
      return Page(reports: reports, isLast: false)
    }
    buckets.removeFirst()
    guard !buckets.isEmpty else { return Page(reports: reports, isLast: true) }
    subscribe()
    heard = now
    return Page(reports: reports, isLast: false)
  }

  private func subscribe() {
    isAcknowledged = false
    if let bucket = buckets.first { connection.subscribe(to: TopicFilter.reports(site, bucket).text) }
  }

  /// Returns the permission that the operator of the broker has to give.
  static func advice(_ site: ReaderID) -> String {
    "the broker has to let the user of this device read identityd/v1/site/\(site)/+/+"
  }
}
