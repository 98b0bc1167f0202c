import IdentityCore
import IdentityStore

/// The app of these versions and tokens.
let versionedApp: Text = "com.example.full"

/// The releases of the system and of an app, in order.
let debian = Release(distribution: "debian", version: "12")
let ubuntu = Release(distribution: "ubuntu", version: "24.04", build: "LTS")
let firstRelease = Release(version: "1.0", build: "é \"quoted\"")
let secondRelease = Release(version: "2.0")

/// Returns a release of the history, first reported `number` and last reported `last` seconds after the start.
func release(_ number: Int64, _ release: Release, last: Int64? = nil) -> InstalledRelease {
  InstalledRelease(number: number, release: release, installed: later(number), last: later(last ?? number))
}

/// Returns the report of the session with this number.
func report(
  _ number: Int64, _ release: Release, _ state: VersionState = .installed, after previous: Release? = nil
) -> VersionReport {
  VersionReport(
    number: number, session: uuid(2_000 + UInt64(number)), release: release, state: state, previous: previous)
}

/// Returns a token. With an odd number it has all attributes, with an even number only the required ones.
func token(
  _ number: Int64, of app: Text = versionedApp, edition: Int64 = 0, device: UUID = uuid(3), isValid: Bool = true
) -> Token {
  let value = Text("token \(number).\(edition)/é")
  let isFull = number % 2 == 1
  return Token(
    number: number, app: app, provider: Text("provider \(number % 2)"), value: value,
    environment: isFull ? "sand box" : nil, topic: isFull ? "org.example.topic" : nil, device: device,
    isValid: isValid, created: later(number), changed: later(number + edition), confirmed: later(70 + edition),
    fingerprint: Token.fingerprint(of: value))
}

/// Every kind of change of versions and push tokens. In each table the row with the highest number remains.
let versionLife: [[Change]] = [
  [.version(.installed(.system, release(1, debian))), .version(.reported(.system, report(1, debian)))],
  [
    .version(.installed(.app(versionedApp), release(2, firstRelease))),
    .version(.reported(.app(versionedApp), report(2, firstRelease))),
    .version(.installed(.app(versionedApp), release(3, secondRelease))),
    .version(.reported(.app(versionedApp), report(3, secondRelease, .upgraded, after: firstRelease))),
  ],
  [
    .version(.claimed(.app(versionedApp), VersionClaim(number: 1, version: "1.0", name: "a \"name\""))),
    .version(.claimed(.app(versionedApp), VersionClaim(number: 2, version: "2.0", name: "é"))),
    .version(.claimed(.app("user:7"), VersionClaim(number: 3, version: "1", name: "é"))),
  ],
  // A release is reported again, and an earlier report of it is forgotten.
  [
    .version(.reinstalled(.app(versionedApp), release(2, firstRelease, last: 60))),
    .version(.reported(.app(versionedApp), report(4, firstRelease, .downgraded, after: secondRelease))),
    .version(.reportForgotten(.app(versionedApp), report(2, firstRelease))),
  ],
  [
    .version(.installed(.system, release(4, ubuntu))),
    .version(.reported(.system, report(5, ubuntu, .upgraded, after: debian))),
  ],
  [
    .version(.releaseForgotten(.app(versionedApp), release(3, secondRelease))),
    .version(.claimForgotten(.app(versionedApp), VersionClaim(number: 1, version: "1.0", name: "a \"name\""))),
  ],
  [
    .version(.installed(.app("user:7"), release(5, Release(version: "1")))),
    .version(.reported(.app("user:7"), report(6, Release(version: "1")))),
  ],
  [
    .tokenStored(token(1), .created), .tokenStored(token(2), .created),
    .tokenStored(token(3, of: "user:7"), .created),
  ],
  [.tokenStored(token(1, edition: 1), .replaced)],
  [
    .tokenStored(token(2, edition: 1), .confirmed),
    .tokenStored(token(3, of: "user:7", isValid: false), .invalidated),
  ],
  [.tokenStored(token(2, edition: 1, device: uuid(23)), .rehomed(from: uuid(3)))],
  [.tokenDeleted(token(1, edition: 1))],
]

extension VersionHistory {
  /// Whether everything in this history is also in the other one.
  func isPart(of other: VersionHistory) -> Bool {
    subject == other.subject && releases.allSatisfy { other.releases.contains($0) }
      && reports.allSatisfy { other.reports.contains($0) } && claims.allSatisfy { other.claims.contains($0) }
  }

  /// The changes that forget this history.
  var forgotten: [Change] {
    reports.map { .version(.reportForgotten(subject, $0)) } + releases.map { .version(.releaseForgotten(subject, $0)) }
      + claims.map { .version(.claimForgotten(subject, $0)) }
  }
}
