import Foundation
import TestSupport

/// The changes that a daemon made to its state directory, in order, and the lines that it sent to clients in between.
///
/// The recording comes from the system calls of the real daemon. An unknown call fails it, so that no way to the disk
/// goes unexamined.
struct StorageRecording {
  /// One operation on the state directory, called the folder, or on a file in it. Files have numbers, because
  /// names change.
  enum Step {
    case makeFolder
    case create(String, file: Int)
    case rename(String, to: String)
    case remove(String)
    case write(file: Int, at: Int, Data)
    case truncate(file: Int, to: Int)
    case synchronize(file: Int)
    /// The sync failed: the unsynced writes may be lost, whatever is written and synced later.
    case failToSynchronize(file: Int)
    case synchronizeFolder
    case synchronizeParent
  }

  /// A request and the last line of its answer.
  struct Exchange {
    let request: String
    let reply: String
    /// The number of completed steps when the daemon began to send the answer.
    let after: Int
  }

  private(set) var steps: [Step] = []
  private(set) var exchanges: [Exchange] = []
  /// The events that a subscriber received, by number, each with the number of completed steps at that moment.
  private(set) var told: [(event: Int64, after: Int)] = []
  /// The files before the recording.
  let initial: [String: Data]

  private let state: String
  private var names: [String: Int] = [:]
  private var files = 0

  /// Creates an empty recording. The files of `initial` have numbers from 0 on, in the order of their names.
  init(state: URL, initial: [String: Data]) {
    self.state = state.path
    self.initial = initial
    for name in initial.keys.sorted() { number(name) }
  }

  @discardableResult
  private mutating func number(_ name: String) -> Int {
    defer { files += 1 }
    names[name] = files
    return files
  }

  // MARK: Reading

  /// The calls that are not traced, because they say nothing of the state directory. Reads change no file, and no call
  /// in this list opens one.
  private static let uninteresting =
    "newfstatat,fstat,flock,statfs,fstatfs,fadvise64,mincore,access,readlink,read,pread64,lseek,getdents64,brk,mprotect,munmap,madvise,mlock,munlock,"
    + "mremap,getrandom,rt_sigaction,rt_sigprocmask,rt_sigreturn,sigaltstack,signalfd4,epoll_create1,epoll_ctl,epoll_wait,"
    + "poll,futex,eventfd2,timerfd_create,timerfd_settime,getpid,gettid,geteuid,getuid,prctl,prlimit64,arch_prctl,"
    + "set_tid_address,set_robust_list,rseq,sched_getaffinity,sched_yield,clock_nanosleep,inotify_init1,inotify_add_watch,"
    + "inotify_rm_watch,getsockopt,setsockopt,getsockname,umask,uname,exit,exit_group,clone3,restart_syscall,"
    + "getcwd,pidfd_open,shutdown,socket,bind,listen,connect,tgkill,clock_gettime,gettimeofday,sysinfo,readlinkat"

  /// Returns the wrapper that writes the trace.
  static func tracer(_ trace: URL, injecting fault: String? = nil) -> [String] {
    ["strace", "-f", "-xx", "-s", "10000000", "-e", "signal=none", "-e", "trace=!\(uninteresting)", "-o", trace.path]
      + (fault.map { ["-e", "inject=\($0)"] } ?? [])
  }

  /// Traced calls that have no effect on the disk, except in the cases that `take` handles itself.
  private static let harmless: Set = [
    "execve", "fcntl", "ioctl", "fchown", "fchmod", "chmod", "sendmsg", "recvmsg", "pipe2", "pidfd_send_signal",
    "close",
  ]

  private enum Target {
    case file(Int, position: Int)
    case folder
    case parent
    case connection(Connection)
  }

  private final class Connection {
    var requests: [String] = []
    private var received: [UInt8] = []
    private var sent: [UInt8] = []

    func receive(_ bytes: [UInt8]) { requests += Self.lines(&received, bytes) }
    func send(_ bytes: [UInt8]) -> [String] { Self.lines(&sent, bytes) }

    private static func lines(_ rest: inout [UInt8], _ bytes: [UInt8]) -> [String] {
      rest += bytes
      var parts = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      rest = Array(parts.removeLast())
      return parts.map { String(decoding: $0, as: UTF8.self) }
    }
  }

  /// Appends one run of the daemon to the recording.
  mutating func append(_ trace: URL) throws {
    var open: [Int: Target] = [:]
    var begun: [Int: Int] = [:]
    try TracedCall.read(trace) {
      begun[$0] = steps.count
    } returns: { call, number in
      // The client may know the bytes as soon as the call that sends them begins.
      try take(call, begunAt: number.flatMap { begun.removeValue(forKey: $0) } ?? steps.count, &open)
    }
  }

  private mutating func take(_ call: TracedCall, begunAt start: Int, _ open: inout [Int: Target]) throws {
    let descriptor = call.arguments[0].number.flatMap { open[$0] }
    switch (call.name, descriptor) {
    case ("close", _): if let number = call.arguments[0].number { open[number] = nil }
    case ("fsync", _), ("fdatasync", _): synchronize(descriptor, call)
    case (_, _) where call.result < 0: return
    case ("openat", _): open[call.result] = opened(call, open)
    case ("accept4", _): open[call.result] = .connection(Connection())
    case ("mkdir", _) where call.arguments[0].path == state: steps.append(.makeFolder)
    case ("mkdir", _) where name(call.arguments[0].path) == nil: return
    case ("unlink", _): if let name = name(call.arguments[0].path) { remove(name) }
    case ("unlinkat", .folder): remove(call.arguments[1].path)
    case ("renameat", .folder): rename(call.arguments[1].path, to: call.arguments[3].path)
    case ("write", .file(let file, let position)), ("pwrite64", .file(let file, let position)):
      let bytes = Data(call.arguments[1].bytes ?? []).prefix(call.result)
      let isPlaced = call.name == "pwrite64"
      let place = isPlaced ? try number(call, 3) : position
      steps.append(.write(file: file, at: place, bytes))
      if !isPlaced { open[try number(call, 0)] = .file(file, position: position + call.result) }
    case ("ftruncate", .file(let file, _)): steps.append(.truncate(file: file, to: try number(call, 1)))
    case ("write", .connection(let to)), ("sendto", .connection(let to)), ("sendmsg", .connection(let to)),
      ("writev", .connection(let to)):
      let bytes = (call.arguments[1].bytes ?? []).prefix(call.result)
      for line in to.send(Array(bytes)) { say(line, to, start) }
    case ("recvfrom", .connection(let from)), ("recvmsg", .connection(let from)):
      from.receive(call.arguments[1].bytes ?? [])
    case ("mmap", _):
      // A read-only mapping changes no file.
      guard case .file? = call.arguments[4].number.flatMap({ open[$0] }), call.arguments[2].text.contains("WRITE")
      else { return }
      throw Failure("a file of the state directory is mapped")
    // The descriptor is the lock, a socket, /dev/null, standard error, or a file elsewhere.
    case ("write", nil), ("pwrite64", nil), ("ftruncate", nil), ("sendto", nil), ("recvfrom", nil): return
    case ("fcntl", .file?) where call.arguments[1].text.contains("DUP"):
      throw Failure("a file of the state is duplicated")
    default:
      guard Self.harmless.contains(call.name) else {
        throw Failure("the daemon called \(call.name), which the recorder does not know")
      }
    }
  }

  private func number(_ call: TracedCall, _ place: Int) throws -> Int {
    guard let number = call.arguments[place].number else { throw Failure("\(call.name): no number") }
    return number
  }

  /// Returns the name of a file in the state directory. Nil for a path elsewhere.
  private func name(_ path: String) -> String? {
    path.hasPrefix("\(state)/") ? String(path.dropFirst(state.count + 1)) : nil
  }

  private mutating func opened(_ call: TracedCall, _ open: [Int: Target]) -> Target? {
    let path = call.arguments[1].path
    var name = name(path)
    if case .folder? = call.arguments[0].number.flatMap({ open[$0] }) { name = path }
    guard let name else {
      let parent = URL(filePath: state).deletingLastPathComponent().path
      return path == state ? .folder : path == parent || path == "\(parent)/." ? .parent : nil
    }
    // The lock shows which process holds the folder, and says nothing of the files in it.
    guard name != "lock" else { return nil }
    if let file = names[name] {
      if call.arguments[2].text.contains("O_TRUNC") { steps.append(.truncate(file: file, to: 0)) }
      return .file(file, position: 0)
    }
    let file = number(name)
    steps.append(.create(name, file: file))
    return .file(file, position: 0)
  }

  private mutating func synchronize(_ target: Target?, _ call: TracedCall) {
    switch target {
    case .file(let file, _):
      steps.append(call.result == 0 ? .synchronize(file: file) : .failToSynchronize(file: file))
    case .folder: if call.result == 0 { steps.append(.synchronizeFolder) }
    case .parent: if call.result == 0 { steps.append(.synchronizeParent) }
    case .connection, nil: return
    }
  }

  private mutating func remove(_ name: String) {
    names[name] = nil
    steps.append(.remove(name))
  }

  private mutating func rename(_ name: String, to new: String) {
    names[new] = names.removeValue(forKey: name)
    steps.append(.rename(name, to: new))
  }

  private mutating func say(_ line: String, _ connection: Connection, _ after: Int) {
    if line.hasPrefix("EVENT "), let event = Int64(line.split(separator: " ")[1]) {
      told.append((event, after))
    } else if !line.hasPrefix("*"), !connection.requests.isEmpty {
      exchanges.append(Exchange(request: connection.requests.removeFirst(), reply: line, after: after))
    }
  }
}
