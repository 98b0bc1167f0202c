import Glibc
import IdentityClient
import LinuxSystem

/// The socket, and the outcome of connecting to it.
struct SocketFacts: Sendable {
  /// A folder on the path of the socket.
  struct Folder: Equatable, Sendable {
    let path: String
    let mode: UInt32
  }

  /// The path of the socket, the user, and the outcome of the contact.
  let examination: Examination
  /// The status of the path; nil if the path is missing or may not be examined.
  var place: PathStatus?
  /// The folders on the path, from the root, as far as this user may examine them.
  var folders: [Folder] = []
}

extension SocketFacts {
  /// Gathers the facts.
  init(_ examination: Examination) {
    self.examination = examination
    let path = examination.socketPath
    place = (try? PathStatus.of(path)) ?? nil
    var passed = path.hasPrefix("/") ? "/" : "."
    for part in path.split(separator: "/") {
      guard let folder = (try? PathStatus.of(passed)) ?? nil, folder.kind == .folder else { return }
      folders.append(Folder(path: passed, mode: folder.mode))
      passed += passed.hasSuffix("/") ? "\(part)" : "/\(part)"
    }
  }

  /// The judgement of the facts.
  var finding: Finding {
    let facts = facts(
      ("path", examination.socketPath), ("uid", "\(examination.userID)"),
      ("mode", place.map { octal($0.mode) }), ("owner", place.map { "\($0.owner)" }))
    let reason = examination.contact == .avoided ? Examination.unreached : nil
    return Finding([closed, fault].compactMap { $0 }, skipped: reason, facts: facts)
  }

  private var fault: Finding.Fault? {
    let path = examination.socketPath
    switch examination.contact {
    case .answered, .avoided, .denied, .refused(EACCES): return nil
    case .busy(let why): return .failure("\(path) is busy: \(why)", .root("ss", "-x", "-p", "src", path))
    case .silent:
      let limit = Examination.patienceSeconds
      return .failure(
        "\(path) accepted the connection, but nothing was answered in \(limit) seconds", examination.restart)
    case .broken(let why): return .failure("\(path): \(why)", examination.restart)
    // Not `systemctl start`, which does nothing while systemd listens on a socket whose file was deleted.
    case .refused(ENOENT), .refused(ENOTDIR):
      return .failure("\(path) is not there", listen).being(.unreachable)
    case .refused(ECONNREFUSED):
      guard let place, place.kind != .socket else {
        return .failure("\(path) was left behind: no process listens on it", listen).being(.unreachable)
      }
      let remove = Remedy.command(asRoot: examination.isSystem, ["rm", "-r", path])
      return .failure("\(path) is not a socket", remove, listen)
    case .untrusted(let fault):
      let failure = Finding.Fault.failure("nothing was sent to \(path): \(fault)", mend(fault))
      switch fault {
      case .openFolder, .folderOwner: return failure
      case .owner, .listener: return failure.being(.unreachable)
      }
    case .refused(let code):
      return .failure("\(path): \(SystemError.text(of: code))", .anybody("identityctl", "--socket=PATH", "check"))
    }
  }

  /// The remedy that lets a daemon, or systemd for it, listen on the socket.
  private var listen: Remedy {
    examination.manager?.remedy("restart", UnitStates.socket)
      ?? .anybody("identityd", "--socket=\(examination.socketPath)")
  }

  private func mend(_ fault: SocketFault) -> Remedy {
    switch fault {
    case .openFolder(let folder): .root("chmod", "+t", folder)
    case .folderOwner(let folder, _) where examination.isSystem: .root("chown", "root:", folder)
    case .owner where examination.isSystem, .listener where examination.isSystem: listen
    // Only people know whether the owner is meant to run a daemon there.
    case .owner, .listener, .folderOwner: .anybody("ss", "-x", "-l", "-p", "src", examination.socketPath)
    }
  }

  /// The fault of modes that keep users out: for the system's socket any user, whoever runs the checks.
  private var closed: Finding.Fault? {
    let path = examination.socketPath
    let isDenied = examination.contact == .refused(EACCES)
    guard examination.isSystem || isDenied else { return nil }
    let user = isDenied ? "uid \(examination.userID)" : "users other than root"
    // The user who was denied could not examine anything below the folder that denied it.
    let denying = place == nil ? folders.last : nil
    if let folder = isDenied ? denying : folders.first(where: { $0.mode & 0o001 == 0 }) {
      return .failure(
        "\(user) may not enter \(folder.path), which has mode \(octal(folder.mode))",
        .root("chmod", "a+x", folder.path))
    }
    if isDenied {
      let mode = place.map { ", which has mode \(octal($0.mode)) and belongs to uid \($0.owner)" } ?? ""
      return .failure("\(user) may not use \(path)\(mode)", .root("chmod", "0666", path))
    }
    guard let place, place.kind == .socket, place.mode & 0o666 != 0o666 else { return nil }
    return .failure(
      "not every user may use \(path), which has mode \(octal(place.mode))", .root("chmod", "0666", path))
  }
}

/// Returns permission bits in the form of chmod(1), with at least four octal digits.
func octal(_ mode: UInt32) -> String {
  let digits = String(mode, radix: 8)
  return String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits
}
