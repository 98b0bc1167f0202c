import Foundation
import LinuxSystem
import Testing

struct ChildProcessTests {
  private func run(_ command: [String], seconds: UInt64 = 600, limit: Int = 65_536) throws -> ChildProcess.Outcome {
    try ChildProcess.run(command, until: Clock.monotonicMicroseconds + seconds * 1_000_000, limit: limit)
  }

  @Test func `the output and the exit status of a program are returned`() throws {
    let outcome = try run(["/bin/sh", "-c", "echo out; echo error >&2; exit 3"])
    #expect(outcome == .init(status: 3, output: Array("out\n".utf8)))
    #expect(try run(["/bin/sh", "-c", "kill -TERM $$"]).status == 128 + SIGTERM)
  }

  @Test func `either output stream of a program can be read`() throws {
    let command = ["/bin/sh", "-c", "echo out; echo error >&2; exit 3"]
    let outcome = try ChildProcess.run(
      command, reading: .standardError, until: Clock.monotonicMicroseconds + 600_000_000)
    #expect(outcome == .init(status: 3, output: Array("error\n".utf8)))
  }

  @Test func `arguments are passed without a shell`() throws {
    let word = "a b; $(id) '*'\n"
    #expect(try run(["/usr/bin/printf", "%s|%s", word, ""]).output == Array("\(word)|".utf8))
  }

  @Test func `a program inherits no environment, input or descriptors`() throws {
    #expect(try run(["/usr/bin/env"]).output == Array("PATH=/usr/sbin:/usr/bin:/sbin:/bin\nLC_ALL=C.UTF-8\n".utf8))
    #expect(try run(["/bin/cat"]).output == [])
    let open = String(decoding: try run(["/bin/ls", "/proc/self/fd"]).output, as: UTF8.self)
    // ls itself reads the folder by descriptor 3.
    #expect(open == "0\n1\n2\n3\n")
  }

  @Test func `a program that does not end in time is killed, with or without output`() throws {
    for script in ["exec sleep 100000", "echo out; exec sleep 100000", "exec >&-; exec sleep 100000"] {
      #expect(throws: ChildProcess.Failure.timeUp) { try run(["/bin/sh", "-c", script], seconds: 1) }
    }
    #expect(throws: ChildProcess.Failure.tooLong) { try run(["/bin/cat", "/dev/zero"], limit: 10_000) }
  }

  @Test func `a missing program is reported with the error of the kernel`() {
    #expect(throws: ChildProcess.Failure.system(SystemError(call: "run /nonexistent", code: ENOENT))) {
      try run(["/nonexistent"])
    }
  }
}
