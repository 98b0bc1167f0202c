import IdentityCore
import TestSupport

/// A state built from all events alone.
///
/// It must equal a snapshot: each change has its event, and each event has its change.
struct Follower {
  private var values: [String: String] = [:]
  private var devices: [String] = []
  private var account = ""
  private var last: Int64 = 0

  /// Applies the next event.
  mutating func take(_ event: Event) throws(Finding) {
    try require(event.sequence == last + 1, "event \(event.sequence) follows \(last)")
    last = event.sequence
    let attributes = Dictionary(event.attributes.map { ("\($0.name)", "\($0.value)") }) { first, _ in first }
    switch event.topic {
    case .devices: try take(ofList: "\(event.name)", attributes["value", default: ""], attributes["previous"])
    case .account: account = attributes["value", default: ""]
    // A snapshot has no keys.
    case .proof: break
    case .device, .installation, .vendor, .app, .item, .version, .token:
      if event.name == "suspect" || event.topic == .device && event.name == "resumed" { return }
      let key = Self.key(event.topic, attributes)
      let ends = ["ended", "uninstalled", "deleted"].contains("\(event.name)")
      // A value that begins must not exist yet, and a value that ends must exist.
      let begins = ["created", "installed", "added"].contains("\(event.name)")
      let isThere = values[key] != nil
      try require(
        begins ? !isThere : isThere, "\(event.topic) \(event.name) of \(key), which is \(isThere ? "" : "not ")there")
      let time: [Event.Attribute] =
        event.topic == .app && event.name == "suspended" ? [.init("suspended", Text("\(event.time)"))] : []
      values[key] = ends ? nil : Self.text(event.topic, event.attributes + time)
      if event.name == "uninstalled" { values["version app=\(attributes["app", default: ""])"] = nil }
    }
  }

  private mutating func take(ofList name: String, _ value: String, _ previous: String?) throws(Finding) {
    switch name {
    case "added": devices.append(value)
    case "removed": devices.removeAll { $0 == value }
    case "changed": try require(devices.contains(value), "\(value) changed, which is not in the list")
    default:
      devices[try require(devices.firstIndex { $0 == previous }, "\(previous ?? "") is not in the list")] = value
    }
  }

  /// Drops all versions when the store is sealed. Their end has no event.
  mutating func seal() { values = values.filter { !$0.key.hasPrefix("version") } }

  /// Compares the state with the current values of a registry.
  func check(_ registry: Registry) throws(Finding) {
    let root = Peer(userID: 0, groupID: 0, processID: 1, isAdmin: true)
    let reply = registry.snapshot(of: Set(Topic.allCases), for: root)
    var found: [String: String] = [:]
    var listed: [String] = []
    var topic: Topic?
    var attributes: [Event.Attribute] = []
    for part in ((try? reply.allParts()) ?? []) + [.final] {
      switch part {
      case .word(let value): topic = Topic(rawValue: value.asText)
      case .attribute(let name, let value): attributes.append(.init(Text(name), Text(value.asText)))
      case .secret: throw Finding("a snapshot has a secret")
      case .row, .final:
        defer { attributes = [] }
        guard let topic else { continue }
        let named = Dictionary(attributes.map { ("\($0.name)", "\($0.value)") }) { first, _ in first }
        switch topic {
        case .devices: listed.append(named["value", default: ""])
        case .account: try require(named["value"] == account, "the account is not what was told")
        default:
          let key = Self.key(topic, named)
          try require(found.updateValue(Self.text(topic, attributes), forKey: key) == nil, "\(key) is there twice")
        }
      }
    }
    try require(listed == devices, "the devices are \(listed), and \(devices) were told")
    try require(registry.lastEvent == last, "the last event is \(registry.lastEvent), and \(last) was told")
    for key in Set(found.keys).union(values.keys).sorted() {
      try require(found[key] == values[key], "\(key) is \(found[key] ?? "-"), and \(values[key] ?? "-") was told")
    }
  }

  /// Returns the key that identifies a value of a topic.
  private static func key(_ topic: Topic, _ attributes: [String: String]) -> String {
    let names =
      switch topic {
      case .device: ["app", "vendor"]
      case .vendor: ["vendor"]
      case .installation, .app, .version: ["app"]
      case .item: ["group", "service", "account"]
      case .token: ["app", "provider"]
      case .devices, .account, .proof: [String]()
      }
    return topic.rawValue + names.map { " \($0)=\(attributes[$0] ?? "")" }.joined()
  }

  /// Returns the attributes to compare. Leaves out earlier values, and an app's vendor, which a manifest may change
  /// without an event. Of a version, compares only its existence: equal versions may be written in two ways.
  private static func text(_ topic: Topic, _ attributes: [Event.Attribute]) -> String {
    if topic == .version { return "" }
    return attributes.filter { attribute in
      !attribute.name.bytes.starts(with: "previous".utf8)
        && !((topic == .app || topic == .installation) && attribute.name == "vendor")
    }.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
  }
}

extension Reply.Value {
  /// The text of the value, without quotes.
  var asText: String {
    switch self {
    case .text(let text): "\(text)"
    case .string(let text): text
    case .uuid(let uuid): "\(uuid)"
    case .time(let time): "\(time)"
    case .number(let number): "\(number)"
    case .yesOrNo(let flag): flag ? "yes" : "no"
    }
  }
}
