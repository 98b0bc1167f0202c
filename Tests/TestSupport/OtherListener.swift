import Foundation

/// A listener of another user. Answers every line with `OK` and reports the bytes of each connection.
package final class OtherListener {
  private let process = Process()
  private let output = Pipe()
  private var read = Data()

  /// Listens as a user. The folder of the path must be accessible to this user.
  package init(at path: String, user: Int) throws {
    let script = """
      import os, socket, sys
      listener = socket.socket(socket.AF_UNIX)
      listener.bind(sys.argv[1])
      os.chmod(sys.argv[1], 0o777)
      listener.listen(5)
      print("listening", flush=True)
      while True:
          connection, _ = listener.accept()
          sent = b""
          try:
              for chunk in iter(lambda: connection.recv(65536), b""):
                  sent += chunk
                  connection.sendall(b"OK\\n" * chunk.count(b"\\n"))
          except ConnectionError:
              pass
          print(sent.replace(b"\\n", b"/").decode(), flush=True)
      """
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "/usr/bin/python3", "-c", script, path,
    ]
    process.standardOutput = output
    process.standardInput = FileHandle.nullDevice
    try process.runUnmasked()
    guard try line() == "listening" else { throw Failure("uid \(user) cannot listen at \(path)") }
  }

  deinit {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// Returns the bytes of the next connection up to its end, with `/` for each line feed.
  package func received() throws -> String { try line() }

  private func line() throws -> String {
    while true {
      if let end = read.firstIndex(of: 0x0a) {
        let line = String(decoding: read[..<end], as: UTF8.self)
        read = Data(read[(end + 1)...])
        return line
      }
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { throw Failure("the listener has ended") }
      read += more
    }
  }
}
