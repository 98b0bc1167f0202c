import Glibc

/// The controlling terminal of this process, where a person can be asked even if the standard streams are redirected.
package struct Terminal: ~Copyable {
  private let descriptor: Descriptor

  /// Opens the terminal. Nil if the process has none.
  package init?() {
    let number = unsafe Glibc.open("/dev/tty", O_RDWR | O_CLOEXEC)
    guard number >= 0 else { return nil }
    descriptor = Descriptor(adopting: number)
  }

  /// Asks for a line that the terminal does not echo.
  ///
  /// If a signal in ``SignalWatch/ending`` or ``SignalWatch/stopping`` arrives meanwhile, echo is turned on again
  /// before the process ends or stops.
  ///
  /// - Parameter take: gets the bytes of the line one by one, without the line end.
  package func readHidden(_ prompt: String, _ take: (UInt8) -> Void) throws {
    let number = descriptor.number
    var settings = termios()
    try system("tcgetattr /dev/tty") { unsafe tcgetattr(number, &settings) }
    let shown = settings
    settings.c_lflag &= ~tcflag_t(ECHO | ECHONL)
    let hidden = settings
    try SignalWatch.run(
      SignalWatch.ending + SignalWatch.stopping,
      leave: {
        try? Self.apply(shown, to: number)
        try? Self.write("\n", to: number)
      },
      comeBack: { try? Self.hide(hidden, prompt, number) }
    ) {
      defer { try? Self.apply(shown, to: number) }
      try Self.hide(hidden, prompt, number)
      try readLine(take)
      try Self.write("\n", to: number)
    }
  }

  private func readLine(_ take: (UInt8) -> Void) throws(SystemError) {
    // Reads byte by byte, so that no copy of the line stays in a buffer.
    var byte: [UInt8] = [0]
    defer { byte[0] = 0 }
    while try descriptor.read(into: &byte) == 1, byte[0] != UInt8(ascii: "\n") { take(byte[0]) }
  }

  /// Turns echo off before the prompt appears, because a person who waits for the prompt must not see the input.
  private static func hide(_ hidden: termios, _ prompt: String, _ number: Int32) throws(SystemError) {
    try apply(hidden, to: number)
    try write(prompt, to: number)
  }

  /// Applies settings and discards unread input, such as input that was shown before echo was turned off.
  private static func apply(_ settings: termios, to number: Int32) throws(SystemError) {
    var settings = settings
    try system("tcsetattr /dev/tty") { unsafe tcsetattr(number, TCSAFLUSH, &settings) }
  }

  private static func write(_ text: String, to number: Int32) throws(SystemError) {
    let bytes = Array(text.utf8)
    var written = 0
    while written < bytes.count {
      written += try system("write /dev/tty") {
        unsafe bytes.withUnsafeBytes { buffer in
          let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[written...])
          return unsafe Glibc.write(number, rest.baseAddress, rest.count)
        }
      }
    }
  }
}
