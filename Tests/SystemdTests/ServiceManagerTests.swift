import Foundation
import LinuxSystem
import Systemd
import TestSupport
import Testing

/// A fake service manager: a datagram socket that `NOTIFY_SOCKET` names.
private final class Manager: Sendable {
  private let temporary: TemporaryFolder
  private let socket: Descriptor

  init() throws {
    temporary = try TemporaryFolder()
    let path = temporary["notify"]
    socket = try boundSocket(SOCK_DGRAM, to: path)
    let number = socket.number
    // The timeout only ends a failing test, because every message is sent before it is received.
    var patience = timeval(tv_sec: 10, tv_usec: 0)
    try system("setsockopt") {
      unsafe setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }
    unsafe setenv("NOTIFY_SOCKET", path, 1)
  }

  struct Message {
    let lines: [String]
    /// The receiver must close these.
    let descriptors: [Int32]
  }

  /// Receives the next message with its descriptors (SCM_RIGHTS, unix(7)).
  func receive() throws -> Message {
    let number = socket.number
    var (text, control) = ([UInt8](repeating: 0, count: 4_096), [UInt8](repeating: 0, count: 4_096))
    var (textCount, controlCount) = (0, 0)
    try unsafe text.withUnsafeMutableBytes { text in
      try unsafe control.withUnsafeMutableBytes { control in
        var vector = unsafe iovec(iov_base: text.baseAddress, iov_len: text.count)
        try unsafe withUnsafeMutablePointer(to: &vector) { vector in
          var header = unsafe msghdr()
          unsafe header.msg_iov = vector
          unsafe header.msg_iovlen = 1
          unsafe header.msg_control = control.baseAddress
          unsafe header.msg_controllen = control.count
          textCount = try system("recvmsg") { unsafe recvmsg(number, &header, Int32(MSG_CMSG_CLOEXEC)) }
          controlCount = unsafe header.msg_controllen
          guard unsafe header.msg_flags & Int32(MSG_CTRUNC) == 0 else { throw Failure("cut short") }
        }
      }
    }
    var descriptors: [Int32] = []
    if controlCount > 0 {
      // struct cmsghdr: the length with the header, SOL_SOCKET, SCM_RIGHTS. The descriptors follow.
      unsafe control.withUnsafeBytes { control in
        let length = unsafe control.load(as: Int.self)
        for offset in stride(from: MemoryLayout<cmsghdr>.size, to: length, by: 4) {
          descriptors.append(unsafe control.load(fromByteOffset: offset, as: Int32.self))
        }
      }
    }
    let lines = String(decoding: text.prefix(textCount), as: UTF8.self).split(separator: "\n").map(String.init)
    return Message(lines: lines, descriptors: descriptors)
  }

  /// Whether no further message was sent.
  var isQuiet: Bool {
    var poll = pollfd(fd: socket.number, events: Int16(POLLIN), revents: 0)
    return unsafe Glibc.poll(&poll, 1, 0) == 0
  }
}

private func inode(_ number: Int32) throws -> UInt64 {
  var status = stat()
  try system("fstat") { unsafe fstat(number, &status) }
  return UInt64(status.st_ino)
}

// Each test runs in a separate process: a service manager passes its data in the environment, which
// concurrent tests share.
@Suite(.serialized) struct ServiceManagerTests {
  @Test func `row 51: a line end in a value does not add a line`() async {
    await #expect(processExitsWith: .success) {
      let manager = try Manager()
      #expect(ServiceManager.notify(["READY=1", "STATUS=a\nMAINPID=1\r\nb"]) == nil)
      #expect(try manager.receive().lines == ["READY=1", "STATUS=a MAINPID=1\r b"])
    }
  }

  @Test func `descriptors are stored under their name and stay open here`() async {
    await #expect(processExitsWith: .success) {
      let manager = try Manager()
      let one = try MemoryFile(named: "one")
      let bell = try Wakeup(blocking: false)
      let numbers = [one.descriptor.number, bell.descriptor.number]
      #expect(ServiceManager.store(numbers, name: "state of it"))
      let message = try manager.receive()
      #expect(message.lines == ["FDSTORE=1", "FDNAME=state of it"])
      #expect(try message.descriptors.count == 2 && inode(message.descriptors[0]) == inode(numbers[0]))
      // Both descriptors are of the same file, so a write here is visible there.
      try one.write([1, 2, 3])
      let received = try MemoryFile(adopting: Descriptor(adopting: message.descriptors[0]))
      #expect(try received.readWhole(limit: 3) == [1, 2, 3])
      for number in numbers { #expect(fcntl(number, F_GETFD) >= 0) }
      #expect(manager.isQuiet)
      withExtendedLifetime(bell.descriptor.number) {}
    }
  }

  @Test func `more descriptors than fit into a message are sent in several`() async {
    await #expect(processExitsWith: .success) {
      let manager = try Manager()
      let first = try MemoryFile(named: "first")
      let rest = try MemoryFile(named: "rest")
      var numbers = [first.descriptor.number]
      for _ in 1..<254 {
        let number = rest.descriptor.number
        numbers.append(try system("fcntl") { fcntl(number, F_DUPFD_CLOEXEC, 3) })
      }
      for (count, parts) in [(1, [1]), (253, [253]), (254, [253, 1]), (0, [])] {
        let given = Array(numbers.prefix(count))
        #expect(ServiceManager.store(given, name: "many"))
        var inodes: [UInt64] = []
        for part in parts {
          let message = try manager.receive()
          #expect(message.lines == ["FDSTORE=1", "FDNAME=many"])
          #expect(message.descriptors.count == part)
          inodes += try message.descriptors.map(inode)
          for number in message.descriptors { close(number) }
        }
        #expect(try inodes == given.map(inode), "each once, in order")
        #expect(manager.isQuiet)
      }
    }
  }

  @Test func `descriptors stored under a name can be removed`() async {
    await #expect(processExitsWith: .success) {
      let manager = try Manager()
      #expect(ServiceManager.removeStored(name: "gone"))
      let message = try manager.receive()
      #expect(message.lines == ["FDSTOREREMOVE=1", "FDNAME=gone"])
      #expect(message.descriptors == [])
    }
  }

  @Test func `an invalid name is refused before anything is sent`() async {
    await #expect(processExitsWith: .success) {
      let manager = try Manager()
      let file = try MemoryFile(named: "test")
      let number = file.descriptor.number
      for name in ["", "a:b", "a\nMAINPID=1", "tab\t", "\u{7F}", "é", String(repeating: "n", count: 256)] {
        #expect(ServiceManager.store([number], name: name) == false)
        #expect(ServiceManager.removeStored(name: name) == false)
      }
      #expect(manager.isQuiet)
      for name in ["a", " ~", String(repeating: "n", count: 255)] {
        #expect(ServiceManager.store([number], name: name))
        #expect(try manager.receive().lines == ["FDSTORE=1", "FDNAME=\(name)"])
      }
      withExtendedLifetime(file.descriptor.number) {}
    }
  }

  @Test func `descriptors that cannot be sent are not stored`() async {
    await #expect(processExitsWith: .success) {
      let manager = try Manager()
      #expect(ServiceManager.store([999_999], name: "closed") == false)
      #expect(manager.isQuiet)
      unsafe setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1)
      #expect(ServiceManager.store([0], name: "nobody") == false)
      #expect(ServiceManager.removeStored(name: "nobody") == false)
      #expect(ServiceManager.barrier(microseconds: 1_000) == false)
      unsafe unsetenv("NOTIFY_SOCKET")
      #expect(ServiceManager.store([0], name: "nobody") == false)
      #expect(ServiceManager.removeStored(name: "nobody") == false)
      #expect(ServiceManager.barrier(microseconds: 1_000) == false)
    }
  }

  @Test func `a barrier waits until the manager has processed it`() async {
    await #expect(processExitsWith: .success) {
      let manager = try Manager()
      let isThrough = Locked(false)
      let thread = try Thread(named: "manager") {
        guard let message = try? manager.receive() else { return }
        // Long enough for a barrier that does not hold to return.
        usleep(50_000)
        isThrough.withLock { $0 = message.lines == ["BARRIER=1"] && message.descriptors.count == 1 }
        for number in message.descriptors { close(number) }
      }
      #expect(ServiceManager.barrier(microseconds: 10_000_000))
      #expect(isThrough.withLock { $0 })
      thread.join()
    }
  }

  @Test func `a barrier that the manager does not process times out`() async {
    await #expect(processExitsWith: .success) {
      let manager = try Manager()
      let before = Clock.monotonicMicroseconds
      #expect(ServiceManager.barrier(microseconds: 20_000) == false)
      let after = Clock.monotonicMicroseconds
      #expect(after - before >= 20_000 && after - before < 5_000_000)
      #expect(try manager.receive().lines == ["BARRIER=1"])
    }
  }

  @Test func `the presence of a descriptor store is read from the environment`() async {
    await #expect(processExitsWith: .success) {
      let cases: [(socket: String?, store: String?, expected: Bool?)] = [
        (nil, nil, false), (nil, "5", false), ("", "5", false), ("/run/x", nil, nil), ("/run/x", "0", false),
        ("/run/x", "1", true), ("@x", "4096", true), ("/run/x", "4294967295", true), ("/run/x", "", nil),
        ("/run/x", "many", nil), ("/run/x", "-1", nil),
      ]
      for (socket, store, expected) in cases {
        for (name, value) in [("NOTIFY_SOCKET", socket), ("FDSTORE", store)] {
          if let value { unsafe setenv(name, value, 1) } else { unsafe unsetenv(name) }
        }
        #expect(ServiceManager.hasDescriptorStore == expected, "\(socket ?? "-") \(store ?? "-")")
      }
    }
  }

  @Test func `stored descriptors are received together with the listening ones`() async {
    await #expect(processExitsWith: .success) {
      let file = try MemoryFile(named: "test")
      let bell = try Wakeup(blocking: false)
      let numbers = [file.descriptor.number, bell.descriptor.number]
      let inodes = try numbers.map(inode)
      // Passes descriptors from 3 on, as systemd does. The process's own ones, perhaps a pipe of the test runner,
      // are restored later.
      let high = try numbers.map { number in try system("fcntl") { fcntl(number, F_DUPFD, 500) } }
      let before = (fcntl(3, F_DUPFD_CLOEXEC, 500), fcntl(4, F_DUPFD_CLOEXEC, 500))
      for (index, number) in high.enumerated() { try system("dup2") { dup2(number, Int32(3 + index)) } }
      unsafe setenv("LISTEN_PID", "\(getpid())", 1)
      unsafe setenv("LISTEN_FDS", "2", 1)
      unsafe setenv("LISTEN_FDNAMES", "state:bell", 1)
      let handed = try ServiceManager.listeningDescriptors()
      let found = try handed.map { try inode($0.number) }
      if before.0 >= 0 { try system("dup2") { dup2(before.0, 3) } }
      if before.1 >= 0 { try system("dup2") { dup2(before.1, 4) } }
      #expect(handed.map(\.number) == [3, 4])
      #expect(handed.map(\.name) == ["state", "bell"])
      #expect(found == inodes)
      #expect(unsafe getenv("LISTEN_FDS") == nil)
      withExtendedLifetime((file.descriptor.number, bell.descriptor.number)) {}
    }
  }
}
