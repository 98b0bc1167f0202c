import Glibc
import IdentityClient
import LinuxSystem

/// The socket, and the outcome of connecting to it.
struct SocketFacts: Sendable {
  /// The path of the socket, the user, and the outcome of the contact.
  let examination: Examination
  /// The status of the path; nil if the path is missing or may not be examined.
  var place: PathStatus?
  /// The first folder of the path that this user may not enter, with its mode.
  var closedFolder: (path: String, mode: UInt32)?
}

extension SocketFacts {
  /// Gathers the facts.
  init(_ examination: Examination) {
    self.examination = examination
    let path = examination.socketPath
    place = (try? PathStatus.of(path)) ?? nil
    guard case .refused(EACCES) = examination.contact, place == nil else { return }
    var passed = path.hasPrefix("/") ? "/" : "."
    for part in path.split(separator: "/") {
      guard let folder = (try? PathStatus.of(passed)) ?? nil else { return }
      closedFolder = (passed, folder.mode)
      passed += passed.hasSuffix("/") ? "\(part)" : "/\(part)"
    }
  }

  /// The judgement of the facts.
  var finding: Finding {
    let facts = facts(
      ("path", examination.socketPath), ("uid", "\(examination.userID)"),
      ("mode", place.map { octal($0.mode) }), ("owner", place.map { "\($0.owner)" }))
    return Finding(fault.map { [$0] } ?? [], facts: facts)
  }

  private var fault: Finding.Fault? {
    let path = examination.socketPath
    switch examination.contact {
    case .answered: return nil
    case .busy(let why): return .failure("\(path) is busy: \(why)", .root("ss", "-x", "-p", "src", path))
    case .silent:
      let limit = Examination.patienceSeconds
      return .failure(
        "\(path) accepted the connection, but nothing was answered in \(limit) seconds", examination.restart)
    case .broken(let why): return .failure("\(path): \(why)", examination.restart)
    case .refused(ENOENT), .refused(ENOTDIR): return .failure("\(path) is not there", start("start"))
    case .refused(ECONNREFUSED):
      guard let place, place.kind != .socket else {
        return .failure("\(path) was left behind: no process listens on it", start("restart"))
      }
      let remove = Remedy.command(asRoot: examination.isSystem, ["rm", "-r", path])
      return .failure("\(path) is not a socket", remove, start("restart"))
    case .refused(EACCES): return denial
    case .untrusted(let fault): return .failure("nothing was sent to \(path): \(fault)", mend(fault))
    case .refused(let code):
      return .failure("\(path): \(SystemError.text(of: code))", .anybody("identityctl", "--socket=PATH", "check"))
    }
  }

  private func start(_ verb: String) -> Remedy {
    examination.isSystem
      ? .root("systemctl", verb, "identityd.socket") : .anybody("identityd", "--socket=\(examination.socketPath)")
  }

  private func mend(_ fault: SocketFault) -> Remedy {
    switch fault {
    case .openFolder(let folder): .root("chmod", "+t", folder)
    case .folderOwner(let folder, _) where examination.isSystem: .root("chown", "root:", folder)
    case .owner where examination.isSystem, .listener where examination.isSystem: start("restart")
    // Only people know whether the owner is meant to run a daemon there.
    case .owner, .listener, .folderOwner: .anybody("ss", "-x", "-l", "-p", "src", examination.socketPath)
    }
  }

  private var denial: Finding.Fault {
    let path = examination.socketPath
    let user = "uid \(examination.userID)"
    if let closedFolder {
      return .failure(
        "\(user) may not enter \(closedFolder.path), which has mode \(octal(closedFolder.mode))",
        .root("chmod", "a+x", closedFolder.path))
    }
    let mode = place.map { ", which has mode \(octal($0.mode)) and belongs to uid \($0.owner)" } ?? ""
    return .failure("\(user) may not use \(path)\(mode)", .root("chmod", "0666", path))
  }
}

/// Returns permission bits in the form of chmod(1), with at least four octal digits.
func octal(_ mode: UInt32) -> String {
  let digits = String(mode, radix: 8)
  return String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
}
