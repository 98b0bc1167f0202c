import Foundation

/// The number of instructions of a request, which is the same in every run.
extension LimitBenchmark {
  /// Measures the instructions in user space of one request, with 64 requests sent at a time. The number is the
  /// difference of two runs under callgrind.
  func instructions(_ answers: Answers) throws -> Row {
    let name = "user-space work per read, 64 at a time"
    guard let valgrind = MeasuredServer.installed("valgrind") else {
      return Row(name, .instructions, [], target: .atMost(500), remark: "valgrind is not installed")
    }
    Program.say("instructions")
    let stripped = try stripped(try MeasuredServer.besideThis("identityd"))
    func wrapper(_ number: Int) -> [String] {
      [valgrind, "--tool=callgrind", "--callgrind-out-file=\(output(number))"]
    }
    let kinds: [(Int) throws -> MeasuredServer?] = [
      { try .limit(answers, guardian: guardian, wrapper: wrapper($0)) },
      { try .identityd(guardian: guardian, wrapper: wrapper($0), program: stripped) },
      { try .redis(guardian: guardian, wrapper: wrapper($0)) },
    ]
    var number = 0
    var measurements: [Measurement] = []
    for kind in kinds {
      var counts: [Double] = []
      for batches in [100, 300] {
        number += 1
        guard let server = try kind(number) else { break }
        try server.start()
        let question =
          try server.language == .lines
          ? Question("get device\n", asking: server) : server.language.read(answers, on: server)
        guard let question else { break }
        try Generator(question, of: server, connections: 1, depth: 64).repeat(batches)
        try server.stop()
        counts.append(try count(in: output(number)))
        if counts.count == 2 { measurements.append(Measurement(server.name, [(counts[1] - counts[0]) / (200 * 64)])) }
      }
    }
    return Row(name, .instructions, measurements, target: .atMost(500))
  }

  private func output(_ number: Int) -> String { guardian.folder.appending(path: "callgrind-\(number)").path }

  /// Returns a copy of a program without debugging information, some of which Debian's valgrind cannot read.
  private func stripped(_ program: String) throws -> String {
    let copy = guardian.folder.appending(path: "identityd-stripped").path
    let strip = Process()
    strip.executableURL = URL(filePath: "/usr/bin/strip")
    strip.arguments = ["--strip-debug", "-o", copy, program]
    try strip.run()
    strip.waitUntilExit()
    guard strip.terminationStatus == 0 else { throw Failure("strip does not take \(program)") }
    return copy
  }

  /// Returns the total that callgrind wrote.
  private func count(in file: String) throws -> Double {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    guard let line = text.split(separator: "\n").last(where: { $0.hasPrefix("totals:") || $0.hasPrefix("summary:") }),
      let number = line.split(separator: " ").dropFirst().first.flatMap({ Double($0) })
    else { throw Failure("callgrind wrote no sum to \(file)") }
    return number
  }
}
