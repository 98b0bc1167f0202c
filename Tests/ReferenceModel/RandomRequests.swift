package import TestSupport

// Random requests. They use few names, so that many of them concern the same objects.
extension ReferenceModel {
  /// UUIDs that clients supply.
  package static let given = (1...4).map { "55555555-5555-4555-8555-00000000000\($0)" }
  /// Secrets in Base64, among them the second and third UUID of ``given``.
  private static let secrets = [
    "\"\"", "eA==", "c2VjcmV0", "c2VjcmV0", "eHh4eHh4eHh4eHh4eHh4eHh4eHg=",
    "NTU1NTU1NTUtNTU1NS00NTU1LTg1NTUtMDAwMDAwMDAwMDAy", "NTU1NTU1NTUtNTU1NS00NTU1LTg1NTUtMDAwMDAwMDAwMDAz",
  ]

  /// Returns a random request.
  ///
  /// - Parameters:
  ///   - apps: names of apps, installed or not.
  ///   - groups: access groups besides those of the apps.
  ///   - tellsTime: whether a request may depend on elapsed time.
  package func request(
    of apps: [String], groups: [String], tellsTime: Bool, _ random: inout SeededGenerator
  ) -> String {
    let app = random.once(in: 4) ? " app=\(random.one(of: apps))" : ""
    let group = random.once(in: 2) ? " group=\(random.one(of: apps + groups + groups + groups))" : ""
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<12: return "get \(random.one(of: ["device", "installation", "vendor"]))\(app)"
    case 12..<15: return "history \(random.one(of: ["device", "installation", "vendor"]))\(app)"
    case 15..<20: return "resolve \(uuid(&random))"
    case 20..<25: return migration(group, &random) + app
    case 25:
      return random.one(of: [
        "app list", "app list", "token list app=*",
        "token list app=*\(random.once(in: 2) ? " after=\(random.one(of: apps))" : "") limit=\(random.one(of: [1, 3]))",
      ])
    case 26..<29: return "app forget \(random.one(of: apps))"
    case 29:
      let change = random.one(of: ["account set alice", "account set bob", "account clear"])
      return random.once(in: 4) ? "account" : change + (random.once(in: 4) ? " dry-run=yes" : "")
    case 30:
      return random.one(of: [
        "devices", "devices", "seal dry-run=yes", "fleet next", "fleet next above=9", "fleet records",
        "fleet records after=\(Self.given[1]) limit=2", "fleet twin copy=\(random.one(of: ["yes", "no", "unknown"]))",
      ])
    case 31, 32: return random.once(in: 8) ? "devices name \(random.one(of: ["desk", "lap"]))" : device(&random)
    case 33, 34:
      let isDry = random.once(in: 2) ? " dry-run=yes" : ""
      let replaces = random.once(in: 4) ? " replaces=yes" : ""
      return "renew \(random.one(of: ["device\(replaces)", "installation", "vendor", "vendor"]))\(app)\(isDry)"
    case 35..<70: return item(&random, group)
    case 70..<85: return version(&random) + app
    default: return token(tellsTime, &random) + app
    }
  }

  private func uuid(_ random: inout SeededGenerator) -> String {
    let known = identifiers.map(\.value)
    return known.isEmpty || random.once(in: 5) ? random.one(of: Self.given) : random.one(of: known)
  }

  private func migration(_ group: String, _ random: inout SeededGenerator) -> String {
    let level = random.one(of: ["device", "installation", "installation"])
    let source = random.once(in: 3) ? "item=\(random.one(of: ["a", "b"])) service=s\(group)" : uuid(&random)
    let how = (random.once(in: 2) ? " commit=yes" : "") + (random.once(in: 3) ? " force=yes" : "")
    return "migrate \(level) \(source)\(how)"
  }

  private func device(_ random: inout SeededGenerator) -> String {
    let value = devices.isEmpty || random.once(in: 2) ? random.one(of: Self.given) : random.one(of: devices).value
    switch Int.random(in: 0..<6, using: &random) {
    case 0, 1, 4, 5:
      let name = random.once(in: 2) ? " name=\(random.one(of: ["phone", "laptop"]))" : ""
      let seen = random.once(in: 3) ? " seen=2026-11-21T08:39:12.345Z" : ""
      guard random.once(in: 2) else { return "devices put \(value)\(name)\(seen)" }
      // The model sorts records by their devices, so it has to know these.
      let device = random.one(of: Self.given)
      let isGone = random.once(in: 4)
      if isGone { return "devices remove \(device) \(message(isGone: true, &random))" }
      let former = random.one(of: Self.given.filter { $0 != device })
      let more =
        (random.once(in: 4) ? " replaces=\(former)" : "")
        + random.one(of: ["", " suspect=yes", " suspect=no"])
      return "devices put \(device) \(message(isGone: false, &random))\(name)\(seen)\(more)"
    case 2: return "devices remove \(value)"
    default: return "devices forget \(value)"
    }
  }

  /// Returns the attributes of a message of the fleet. Each rank has one message.
  private func message(isGone: Bool, _ random: inout SeededGenerator) -> String {
    let (generation, counter) = (Int.random(in: 1...4, using: &random), Int.random(in: 0...6, using: &random))
    let letters = ["A", "B", "C", "D", "E", "F", "G"]
    let epoch = random.one(of: ["", "", "aUYBAQAAAAEA", "aUYBAQAAAAIA", "aUYCAQAAAAEA", "aUYCAQAAAAIA", "aUYDAQAAAAIA"])
    return "generation=\(generation) counter=\(counter) record=\(epoch)aUY\(letters[generation])\(letters[counter])"
      + (isGone ? "Q==" : "A==")
  }

  private func item(_ random: inout SeededGenerator, _ group: String) -> String {
    let name = "service=\(random.one(of: ["s", "t"])) account=\(random.one(of: ["a", "b"]))\(group)"
    let data = " data=\(random.one(of: Self.secrets))"
    let label = random.once(in: 3) ? " label=\(random.one(of: ["\"\"", "label", "other"]))" : ""
    let said = ["b", "a", "c"].filter { _ in random.once(in: 5) }.map {
      " attr.\($0)=\(random.one(of: ["\"\"", "v", "w"]))"
    }.joined()
    switch Int.random(in: 0..<16, using: &random) {
    case 0..<7:
      let lasting = (random.once(in: 4) ? " this-device-only=yes" : "")
      let lifetime = random.once(in: 3) ? " lifetime=installation" : ""
      return "item \(random.one(of: ["add", "put", "put"])) \(name)\(data)\(label)\(said)\(lasting)\(lifetime)"
    case 7: return "item read \(name)"
    case 8:
      let condition = group + random.one(of: ["", " service=s", " account=b"]) + label + said
      return "item read\(condition.isEmpty ? " service=s" : condition)"
    case 9..<12:
      let place = random.once(in: 3) ? " group=*" : group
      let condition = random.once(in: 3) ? " service=s" : random.once(in: 4) ? label + said : ""
      let limit = random.one(of: ["", "", " limit=one", " limit=2", " limit=all"])
      return "item find\(place)\(condition)\(random.once(in: 3) ? " data=yes" : "")\(limit)"
    case 12:
      let condition = random.one(of: ["service=t", "account=a", "where.label=label", "where.attr.a=v"])
      return "item update \(condition)\(group)\(random.once(in: 2) ? data : "")\(label)\(said)"
    case 13: return "item update \(name)\(random.once(in: 2) ? data : "")\(label)\(said)"
    default:
      let condition = group + (random.once(in: 3) ? " service=s" : "") + (random.once(in: 4) ? label + said : "")
      return "item delete\(condition.isEmpty ? " service=t account=b" : condition)"
        + (random.once(in: 3) ? " dry-run=yes" : "")
    }
  }

  private func version(_ random: inout SeededGenerator) -> String {
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<6:
      let version = random.one(of: Self.ranks).version
      let build = random.one(of: ["", "", " build=b", " build=c"])
      let order =
        random.once(in: 4) ? " order=\(random.one(of: ["numeric", "semver", "debian", "linux", "auto"]))" : ""
      return "version report \(version)\(build)\(order)\(random.once(in: 6) ? " dry-run=yes" : "")"
    case 6: return "version state"
    case 7: return "version history"
    default: return "version claim \(random.one(of: ["n", "m"]))"
    }
  }

  private func token(_ tellsTime: Bool, _ random: inout SeededGenerator) -> String {
    let provider = random.one(of: ["p", "q", "r"])
    let value = random.one(of: ["one", "two"])
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<4:
      let more =
        (random.once(in: 6) ? " environment=e" : "") + (random.once(in: 8) ? " topic=t" : "")
        + (random.once(in: 8) ? " renewed=yes" : "")
      return "token put \(provider) \(value)\(more)"
    case 4, 6: return "token get \(provider)"
    case 5: return "token list\(tellsTime ? random.one(of: ["", " stale=0", " stale=10", " stale=1000"]) : "")"
    case 7, 8: return "token invalidate \(provider) \(value)"
    default: return "token delete \(provider)\(random.once(in: 3) ? " dry-run=yes" : "")"
    }
  }
}
