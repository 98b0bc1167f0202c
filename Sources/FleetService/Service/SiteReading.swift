import FleetCore
import FleetSeal
import FleetWire
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Mosquitto
import Systemd

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

/// The readings of a site's reports: one at a time.
struct SiteReadings {
  /// The silence of a client after which its reading ends, in microseconds.
  private static let patience: UInt64 = 30_000_000

  private var present: SiteReading?
  private var last: UInt64 = 0
  private var timer: EventSource?

  /// Starts a reading, which ends an earlier one. Returns its number.
  mutating func start(of site: ReaderID, over connection: BrokerConnection) -> UInt64 {
    last += 1
    present = SiteReading(last, of: site, over: connection)
    return last
  }

  /// Returns the reading with a number.
  func reading(_ number: UInt64) throws(Refusal) -> SiteReading {
    guard let present, present.number == number else {
      throw .notFound("the reading has ended; another one may have begun")
    }
    return present
  }

  /// Ends the present reading.
  mutating func end() {
    present = nil
    timer = nil
  }

  /// Ends the reading if its client is silent.
  mutating func arm(_ loop: EventLoop, _ end: @escaping () -> Void) {
    timer = try? loop.timer(after: Self.patience, accuracy: 1_000_000, end)
    // Without a timer, an abandoned reading would last.
    if timer == nil { present = nil }
  }
}

extension Service {
  /// Starts to read the reports for a site.
  func readReports(for site: ReaderID) throws(Refusal) -> Reply {
    let made: BrokerConnection?
    do throws(SystemError) {
      made = try broker?.another(as: account)
    } catch {
      throw .unavailable("\(error)")
    }
    guard let connection = made else {
      throw .unavailable(Broker.unconfigured)
    }
    var reply = Reply()
    reply.ok()
    reply.attribute("reading", .number(Int64(readings.start(of: site, over: connection))))
    readings.arm(loop) { [unowned self] in readings.end() }
    return reply
  }

  /// Returns the next reports of a reading, each with the tag of its device.
  func reports(of number: UInt64) throws(Refusal) -> Reply {
    let page: SiteReading.Page
    do throws(Refusal) {
      page = try readings.reading(number).next()
    } catch {
      if case .notFound = error { throw error }
      readings.end()
      throw error
    }
    var reply = Reply()
    for (tag, bytes) in page.reports {
      var text: [UInt8] = []
      Base64Text.append(bytes.span, to: &text)
      reply.row()
      reply.word(.string("\(tag)"))
      reply.attribute("report", .text(Text(trusted: text)))
    }
    reply.ok()
    reply.attribute("last", .string(page.isLast ? "yes" : "no"))
    if page.isLast { readings.end() } else { readings.arm(loop) { [unowned self] in readings.end() } }
    return reply
  }

  // MARK: Proof keys

  /// The number of devices in one answer, which has 230 KB at most.
  private static let proofKeysPage = 256

  /// Returns the public proof keys of the next devices of the account, each with the key that signs the device's record.
  func proofKeys(after last: UUID?) -> Reply {
    let published = fleet.roster.records.compactMap { record -> (record: SignedMessage, keys: PublishedKeys)? in
      guard last.map({ $0 < record.body.subject }) ?? true else { return nil }
      return PublishedKeys(record.body.fields).map { (record, $0) }
    }
    let page = published.sorted { $0.record.body.subject < $1.record.body.subject }.prefix(Self.proofKeysPage)
    return Reply.rows(Array(page)) { entry, reply in
      let (record, keys) = entry
      reply.word(.uuid(record.body.subject))
      reply.attribute("name", record.body.fields[.name].map { .text(Text(trusted: $0)) })
      reply.attribute("signer", .text(Base64Text.encoded(record.signer.bytes)))
      reply.attribute("issuer", .text(keys.issuer))
      reply.attribute("points", .text(Base64Text.encoded(keys.points.flatMap(\.self))))
    }
  }

  // MARK: Presence

  /// Asks the other devices whether they are connected. They answer within two seconds.
  func askWho() throws(DaemonFault) -> Reply {
    guard fleet.phase == .live else {
      throw .refused(code: .conflict, text: "this device is not connected; see 'identityctl fleet status'")
    }
    guard fleet.hasPresence else {
      throw .refused(
        code: .conflict,
        text:
          "devices do not tell each other that they are connected, because of Presence=no, or of more than 64 devices")
    }
    try take(.askWho)
    return .done
  }

  /// Returns the other devices that are connected.
  var peers: Reply {
    let records = fleet.present.compactMap { fleet.roster[$0] }.sorted { "\($0.body.subject)" < "\($1.body.subject)" }
    return Reply.rows(records) { (record: SignedMessage, reply: inout Reply) in
      reply.word(.uuid(record.body.subject))
      reply.attribute("name", record.body.fields[.name].map { .text(Text(trusted: $0)) })
    }
  }
}
