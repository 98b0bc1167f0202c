import Glibc
import IdentityClient
import LinuxSystem

/// What there is to know about the socket.
struct SocketFacts: Sendable {
  /// Where it is, who asks, and what became of that.
  let examination: Examination
  /// What stands at its path; nil where there is nothing, or it may not be looked at.
  var place: PathStatus?
  /// The first folder on the way that this user may not pass, with its mode.
  var closedFolder: (path: String, mode: UInt32)?
}

extension SocketFacts {
  /// Looks.
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

  /// What that means.
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
      return .failure("\(path) took the connection, and nothing was answered in \(limit) seconds", examination.restart)
    case .broken(let why): return .failure("\(path): \(why)", examination.restart)
    case .refused(ENOENT), .refused(ENOTDIR): return .failure("\(path) is not there", start("start"))
    case .refused(ECONNREFUSED):
      guard let place, place.kind != .socket else {
        return .failure("\(path) was left behind: nobody listens on it any more", start("restart"))
      }
      let remove = Remedy.command(asRoot: examination.isSystem, ["rm", "-r", path])
      return .failure("\(path) is no socket", remove, start("restart"))
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
    // Whether the owner is meant to have a daemon there, only people know.
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

/// Permission bits as chmod(1) reads them: four digits.
func octal(_ mode: UInt32) -> String {
  let digits = String(mode, radix: 8)
  return String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
}
