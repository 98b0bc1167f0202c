import Foundation
import TestSupport
import Testing

/// A wall clock that jumps. A preloaded library adds to the daemon's wall-clock time the number of seconds in a file.
/// The monotonic clock does not jump, as on a real machine, unless a test makes time pass with another file.
struct ClockTests {
  /// The C source of the preloaded library. It takes no memory and calls no function that AddressSanitizer replaces,
  /// since the allocator of AddressSanitizer reads the monotonic clock while it holds its locks.
  static let clock = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    int clock_gettime(clockid_t clock, struct timespec *now) {
      int result = syscall(SYS_clock_gettime, clock, now);
      const char *path = getenv(clock == CLOCK_REALTIME ? "CLOCK_FILE" : "PASSED_FILE");
      long file = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
      if (file < 0) return result;
      char text[24] = "";
      syscall(SYS_read, file, text, sizeof text - 1);
      syscall(SYS_close, file);
      long more = 0;
      for (const char *digit = text + (text[0] == '-'); *digit >= '0' && *digit <= '9'; digit++)
        more = more * 10 + (*digit - '0');
      now->tv_sec += text[0] == '-' ? -more : more;
      return result;
    }

    """

  /// Compiles the library, and returns the command that runs a daemon with it.
  static func wrapper(of daemon: DaemonUnderTest) throws -> [String] {
    let library = daemon.folder.appending(path: "clock.so").path
    guard try run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input: clock).status == 0 else {
      throw Failure("the library does not compile")
    }
    let files = ["CLOCK_FILE=\(file(of: daemon).path)", "PASSED_FILE=\(passedFile(of: daemon).path)"]
    return ["env", "LD_PRELOAD=\(library)"] + files
  }

  /// Makes the monotonic clock of a process show that more seconds have passed.
  static func pass(_ seconds: Int, of daemon: DaemonUnderTest) throws {
    try Data("\(seconds)\n".utf8).write(to: passedFile(of: daemon), options: .atomic)
  }

  private static func passedFile(of daemon: DaemonUnderTest) -> URL { daemon.folder.appending(path: "passed") }

  /// Sets the number of seconds by which the daemon's clock is ahead.
  static func set(_ seconds: Int, of daemon: DaemonUnderTest) throws {
    try Data("\(seconds)\n".utf8).write(to: file(of: daemon), options: .atomic)
  }

  private static func file(of daemon: DaemonUnderTest) -> URL { daemon.folder.appending(path: "clock") }

  @Test func `row 41d: clock jumps change no identifier, and UUIDv7s and events stay in order`() throws {
    let daemon = try DaemonUnderTest()
    let wrapper = try Self.wrapper(of: daemon)
    func set(_ seconds: Int) throws { try Self.set(seconds, of: daemon) }
    try set(0)
    try daemon.start(through: wrapper)
    let device = try daemon.uuid("get device")
    let installation = try daemon.uuid("get installation")
    let client = try daemon.client()
    let session = try client.ask("get session")
    var last = ""
    var years: Set<String> = []
    let now = Int(Date().timeIntervalSince1970)
    // The real time, more than a year back, more than two years ahead, 1970, one second back, the end of 2199, and the
    // real time again.
    let times = [0, -400 * 86_400, 900 * 86_400, 86_400 - now, -1, 7_258_032_000 - now, 0]
    for (round, time) in times.enumerated() {
      try set(time)
      #expect(try client.ask("get session") == session)
      #expect(try daemon.uuid("get device") == device)
      #expect(try daemon.uuid("get installation") == installation)
      for line in try client.ask("get uuid count=100 version=7").dropLast() {
        #expect(last < line, "\(time)")
        last = line
      }
      #expect(try client.ask("item add service=s account=a\(round) data=eA==") == ["OK"])
      let found = try client.ask("item read service=s account=a\(round)")[0]
      if let year = found.firstMatch(of: /created=([0-9]{4})-/) { years.insert(String(year.1)) }
      #expect(try client.ask("token put p t\(round)")[0].hasPrefix("OK "))
    }
    // Proves that the preloaded library took effect.
    #expect(years.isSuperset(of: ["1970", "2199"]), "\(years)")
    for time in [-400 * 86_400, 7_258_032_000 - now, 86_400 - now] {
      #expect(daemon.end() == 0)
      try set(time)
      try daemon.start(through: wrapper)
      #expect(try daemon.client().statusValue("store") == "ok")
      #expect(try daemon.uuid("get device") == device)
      #expect(try daemon.uuid("get installation") == installation)
      let replay = try daemon.client()
      #expect(try replay.subscribe("item since=0")[0].hasPrefix("OK "))
      for round in times.indices { #expect(try replay.line()?.contains(" account=a\(round) ") == true, "\(round)") }
    }
    daemon.end()
  }
}
