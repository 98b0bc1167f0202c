import ClientFormats
import FleetWire
import Glibc
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Proofs

// The public proof keys of other devices, for relying parties (identityctl(1), section "FLEET").
extension Program {
  /// The proof keys that a device has published.
  private struct Publication {
    let device: UUID
    /// The key that signed the device's message, in Base64.
    let signer: Text
    let keys: PublishedKeys

    /// The keys as members of a key set.
    var webKeys: [JSONWebKey] {
      keys.points.map { point in
        let key = PublicProofKey(point: point)
        return JSONWebKey(
          identifier: key.thumbprint, x: key.x, y: key.y, device: device, issuer: "\(keys.issuer)")
      }
    }
  }

  /// Writes a directory with the key set of each device of the account, or of a site.
  static func writeFleetKeys(_ line: CommandLine, _ format: UUIDFormat) throws -> Int32 {
    guard line.words.count == 2, let output = line.options["output"], !output.isEmpty else {
      throw CommandLine.UsageError("'fleet keys' needs --output=DIR, and nothing else")
    }
    let found: [Publication]
    do {
      found = try line.options["key"].map { try reportedKeys(with: $0, line) } ?? accountKeys(line)
    } catch let unfinished as Unfinished {
      return try show(unfinished.answer, to: line.words, line, format)
    }
    var written: [Publication] = []
    var refused: Set<UUID> = []
    for (device, publications) in Dictionary(grouping: found, by: \.device).sorted(by: { $0.key < $1.key }) {
      let folder = "\(output)/\(device)"
      if let publication = try believed(publications, in: folder) {
        try write(publication, to: folder)
        written.append(publication)
      } else {
        refused.insert(device)
      }
    }
    if line.options["combined"] != nil {
      try replace("\(output)/combined", with: Array(JSONWebKey.set(written.flatMap(\.webKeys)).utf8))
    }
    let emptied = try emptyOthers(in: output, than: Set(written.map(\.device)).union(refused))
    var content = ReplyLine.Content()
    content.attributes = [("devices", written.count), ("emptied", emptied), ("refused", refused.count)].map {
      .init(name: $0, value: Text("\($1)"))
    }
    let status = try show(.init(final: .ok(content)), to: line.words, line, format)
    return refused.isEmpty ? status : ExitStatus.no
  }

  // MARK: Sources

  /// Returns the keys in the records of the account's devices.
  private static func accountKeys(_ line: CommandLine) throws -> [Publication] {
    let patience = try patience(line)
    var connection = try connectToFleet(line, patience)
    var found: [Publication] = []
    while true {
      let start = found.last.map { ["after=\($0.device)"] } ?? []
      let answer = try connection.ask(RequestLine(words: ["fleet", "keys"] + start), patience)
      guard case .ok = answer.final else { throw Unfinished(answer: answer) }
      guard !answer.rows.isEmpty else { return found }
      for row in answer.rows {
        guard let device = row.words.first.flatMap({ UUID($0) }), let signer = row["signer"],
          let issuer = row["issuer"], let bytes = row["points"].flatMap({ Base64Text.decode($0.bytes.span) }),
          bytes.count % PublicProofKey.length == 0,
          let keys = PublishedKeys(
            issuer: issuer,
            points: stride(from: 0, to: bytes.count, by: PublicProofKey.length).map {
              Array(bytes[$0..<$0 + PublicProofKey.length])
            })
        else { throw Ending(status: ExitStatus.brokenAnswer, text: "the service sent keys that cannot be read") }
        found.append(Publication(device: device, signer: signer, keys: keys))
      }
    }
  }

  /// Returns the keys in the reports of a site's devices.
  private static func reportedKeys(with path: String, _ line: CommandLine) throws -> [Publication] {
    let reports = try reports(with: path, line)
    // A broker without the reports must not end all proofs.
    guard !reports.isEmpty else { throw Ending(status: ExitStatus.fileFailed, text: "nothing was written") }
    return reports.sorted { ($0.body.generation, $0.body.counter) > ($1.body.generation, $1.body.counter) }
      .compactMap { report in
        PublishedKeys(report.body.fields).map {
          Publication(device: report.body.subject, signer: Base64Text.encoded(report.signer.bytes), keys: $0)
        }
      }
  }

  // MARK: Beliefs

  /// The file with the key that signs the messages of the device whose key set is beside it.
  private static let signerFile = ".signer"

  /// Returns the publication of a device that is believed; nil if none is.
  ///
  /// The first signer of a device is believed, and no other after that: another member of the account, or a stranger at
  /// the topics of a site, can sign in the name of the device.
  private static func believed(_ publications: [Publication], in folder: String) throws -> Publication? {
    let former = try withFileFailures { () -> Text? in
      guard try PathStatus.of(folder, followsLink: false) != nil else { return nil }
      return try Folder(path: folder).read(signerFile, limit: 64).flatMap { Text(validating: $0) }
    }
    let own = publications.filter { former == nil || $0.signer == former }
    guard let first = own.first, own.allSatisfy({ $0.signer == first.signer }) else {
      complain(
        former == nil
          ? "several devices call themselves \(publications[0].device), so none of them is believed until the broker has "
            + "the report of one alone"
          : "\(publications[0].device) signs with another key than before, so its key set stays as it was; if 'identityctl "
            + "fleet status' on the device shows signer=\(publications[0].signer), remove \(folder) and repeat the command",
        nil)
      return nil
    }
    guard first.keys.names(first.device) else {
      complain(
        "the issuer \(first.keys.issuer) of \(first.device) does not contain its device identifier, so other devices "
          + "could have the same one; set Issuer= with %d in section [Proof] of its identityd.conf", nil)
      return nil
    }
    return first
  }

  // MARK: Files

  private static func write(_ publication: Publication, to folder: String) throws {
    // Without an https address, no relying party fetches anything.
    let issuer = "\(publication.keys.issuer)"
    let configuration = issuer.hasPrefix("https://") ? try configuration(of: issuer) : nil
    // First, so that another signer is found after a power cut, too.
    try replace("\(folder)/\(signerFile)", with: publication.signer.bytes, end: "")
    try replace("\(folder)/keys", with: Array(JSONWebKey.set(publication.webKeys).utf8))
    if let configuration { try replace("\(folder)/.well-known/openid-configuration", with: configuration) }
  }

  /// Empties the key sets of devices that are gone: a relying party that fetches such a set forgets its keys.
  ///
  /// - Returns: the number of devices whose key set is empty.
  private static func emptyOthers(in output: String, than present: Set<UUID>) throws -> Int {
    var count = 0
    for name in try withFileFailures({ try ConfigurationAccess.names(in: output) }) ?? [] {
      guard let device = UUID(Text(name)), "\(device)" == name, !present.contains(device),
        try PathStatus.of("\(output)/\(name)/keys", followsLink: false) != nil
      else { continue }
      try replace("\(output)/\(name)/keys", with: Array(JSONWebKey.set([]).utf8))
      count += 1
    }
    return count
  }
}
