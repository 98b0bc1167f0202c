import IdentityWire
import LinuxSystem

/// The fleet's service, where it is in use.
struct FleetFacts: Sendable {
  /// The properties of `identity-fleet.service`; none if they are unknown.
  var unit: [String: String] = [:]
  /// The state that the service told identityd; nil if identityd was not reached, or does not tell this user.
  var state: String?
  /// The other words that the service told.
  var words: [String: String] = [:]
  /// The reason why the state is unknown.
  var unknown: String?
  /// The service manager of the service.
  var manager = ServiceManager.system
  /// The way to the daemon for a command of the client.
  var client = ClientAddress.system
  /// Whether identityd suspects that another machine has its identifiers, which another check finds.
  var isSuspect = false
  /// The reason why the service refuses its configuration; nil if it accepts it, or was not asked.
  var refusal: String?
  /// The file with the password for the broker; nil if there is none.
  var passwordFile: String?
  /// Whether a time source keeps the clock synchronized; nil if this process may not ask the kernel.
  var isSynchronized: Bool?
}

extension FleetFacts {
  private static let service = UnitStates.fleet

  /// Gathers the facts.
  init(_ examination: Examination) {
    unit = examination.units.units[Self.service] ?? [:]
    isSynchronized = Clock.isSynchronized
    manager = examination.manager ?? .system
    client = examination.client
    if isInUse {
      let options = manager == .user ? ["--config=\(configuration)"] : []
      let verdict = ConfigurationVerdict(of: Self.program, options, under: manager, asUser: examination.userID)
      refusal = verdict.refusal
    }
    passwordFile = Self.passwordFiles.first { ((try? PathStatus.of($0)) ?? nil) != nil }
    guard let answers = examination.answers else {
      unknown = Examination.unreached
      return
    }
    state = answers[StatusRow.fleet.name]
    if state == nil { unknown = Examination.untold("the state of the fleet's service") }
    isSuspect = answers[StatusRow.suspect.name] != nil
    for word in answers.all(StatusRow.fleetWord.name) {
      let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
      if parts.count == 2 { words[parts[0]] = parts[1] }
    }
  }

  private static let program = "/usr/sbin/identity-fleet"
  private var status: Remedy { client.fleetRemedy("status") }
  private var configuration: String { "\(manager.configurationFolder)/identity-fleet.conf" }
  /// The places in which systemd looks for the credential of the shipped unit (systemd.exec(5), LoadCredential=).
  private static let passwordFiles = ["/etc", "/run", "/usr/local/lib", "/usr/lib"].flatMap { folder in
    ["\(folder)/credstore/fleet.password", "\(folder)/credstore.encrypted/fleet.password"]
  }

  private var isOpen: Bool { state != nil && state != FleetState.none.rawValue }

  /// Whether the service runs, or should.
  private var isInUse: Bool {
    isOpen || ["enabled", "enabled-runtime"].contains(unit["UnitFileState"])
      || ["active", "activating", "failed"].contains(unit["ActiveState"])
  }

  /// The judgement of the facts.
  var finding: Finding {
    guard isInUse || unit.isEmpty && unknown != nil else {
      return Finding(skipped: "the fleet's service is not in use")
    }
    let facts = facts(
      ("service", unit["ActiveState"]), ("state", state), ("broker", words["broker"]), ("reason", words["reason"]),
      ("connected", words["connected"]), ("twin", words["twin"]), ("alone", words["alone"]), ("keys", words["keys"]),
      ("removed", words["removed"]), ("superseded", words["superseded"]), ("password", words["password"]))
    if let refused { return Finding([refused], facts: facts) }
    if let unknown { return Finding(skipped: unknown, facts: facts) }
    let faults = [stopped ?? connection ?? membership, storage, twin, loneliness, leak, otherKey, formerPassword]
    return Finding(faults.compactMap { $0 }, facts: facts)
  }

  private var refused: Finding.Fault? {
    guard let refusal else { return nil }
    let file = file(in: refusal, endingWith: ".conf") ?? configuration
    return .failure(
      "\(Self.service) refuses its configuration: \(refusal)", .edit(asRoot: manager == .system, [file]),
      manager.remedy("restart", Self.service))
  }

  private var stopped: Finding.Fault? {
    guard !isOpen else { return nil }
    let end = unit["StatusText"].flatMap { $0.isEmpty ? nil : ": \($0)" } ?? ""
    return Finding.Fault.failure(
      "\(Self.service) does not use identityd (\(unit["ActiveState"] ?? "unknown"))\(end); "
        + "see \(manager.journal(of: Self.service))",
      manager.remedy("reset-failed", Self.service), manager.remedy("restart", Self.service)
    ).being(.fleetStops)
  }

  private var connection: Finding.Fault? {
    let broker = words["broker"] ?? "the broker"
    let reason = words["reason"]
    switch state.flatMap(FleetState.init) {
    case .noKeys:
      return Finding.Fault.failure(
        "the keys of the account cannot be read: \(reason ?? "the items are locked")", status
      ).being(.itemsUnavailable)
    case .refused:
      // A reload reads the configuration, but only a restart passes the credential anew.
      let source =
        passwordFile.map { "the password is the credential in \($0)" }
        ?? "without the credential fleet.password, the password is that of the account, which the broker has to know. If "
        + "the key of the account was replaced while this device was away, \(client.fleetNamed("account", "join")) with "
        + "--file= takes the present one from an invitation that another device of the account has written since"
      return .failure(
        "\(broker) refuses the user or the password: \(reason ?? "unknown reason"); \(source)",
        client.fleetRemedy("credentials"), manager.remedy("restart", Self.service))
    case .waiting, .connecting:
      guard let reason else { return nil }
      let clock =
        isSynchronized == false && words["broker"]?.hasPrefix("mqtts:") == true
        ? "; the clock is not synchronized, and a certificate is valid for a time only" : ""
      return .failure(
        "there is no connection with \(broker): \(reason)\(clock)",
        .edit(asRoot: manager == .system, [configuration]), manager.remedy("reload", Self.service))
    case .unpublished: return .warning(reason ?? "the other devices do not get the record of this one", mend: [status])
    default: return nil
    }
  }

  /// The warning of a service without a membership that a person would expect.
  private var membership: Finding.Fault? {
    let cause: String
    if words["keys"] == "missing" {
      cause = "this device is in an account, of which the fleet has no keys, as after a restore"
    } else if let account = words["removed"] {
      cause = "another device has removed this one from the account \(account)"
    } else if let account = words["superseded"] {
      cause = "another machine has joined the account \(account) in the name of this device"
    } else {
      return nil
    }
    return .warning(
      "\(cause). Get a code with 'identityctl account invite' on another device of the account, and enter it here with "
        + "\(client.fleetNamed("account", "join")). "
        + "Without a fleet, this device does not need \(Self.service)", mend: [status])
  }

  private var storage: Finding.Fault? {
    guard let held = words["held"] else { return nil }
    return Finding.Fault.failure("identityd could not store \(held) messages of the fleet", status)
      .being(.storeFails)
  }

  private var twin: Finding.Fault? {
    guard words["twin"] == "yes", !isSuspect else { return nil }
    return .warning(
      "another machine speaks for this device, because one is a copy of the other. On the copy, "
        + "\(client.named("renew", "device")) gives it an identifier and keys of its own, and leaves the original in its place",
      mend: [status])
  }

  /// The warning that two devices have used one code. The code may have been read by somebody else.
  private var leak: Finding.Fault? {
    guard let newcomer = words["second-newcomer"] else { return nil }
    return .warning(
      "a second device, \(newcomer), has used the code of an invitation, and has the keys of the account. If one of the "
        + "two is not yours, \(client.fleetNamed("account", "rotate")) replaces the keys; with without=UUID, it removes the "
        + "device, too, if \(client.named("devices")) lists it", mend: [status])
  }

  /// The warning that a device has another key. A device draws its key once, when it joins.
  private var otherKey: Finding.Fault? {
    guard let device = words["other-key"] else { return nil }
    let others = words["other-keys"].map { " (the first of \($0))" } ?? ""
    return .warning(
      "the device \(device)\(others) has come with another key, and this device knows of no removal. If the device has "
        + "lost its state and joined again, nothing is to be done, and a restart of \(Self.service) ends the warning. "
        + "Otherwise, a member of the account speaks in the name of the device: "
        + "\(client.fleetNamed("account", "rotate")) with without=UUID,UUID removes the device and the members that you do "
        + "not trust in one step, and the device itself can join again afterwards", mend: [status])
  }

  /// The warning that the broker does not have the password of the present key.
  private var formerPassword: Finding.Fault? {
    guard words["password"] == "former" else { return nil }
    return .warning(
      "this device uses the former password of the account at the broker, which a device that was removed since knows, "
        + "too. Have the broker's admin enter the one that \(client.fleetNamed("fleet", "credentials")) shows. A reload of the "
        + "service tries it",
      mend: [client.fleetRemedy("credentials"), manager.remedy("reload", Self.service)])
  }

  private var loneliness: Finding.Fault? {
    guard words["alone"] == "yes" else { return nil }
    return .warning(
      "all other devices use earlier keys of the account. Some time after a replacement of the key, this device has to "
        + "leave the account and join again", mend: [status])
  }
}
