import Glibc

/// The whole controlling terminal, for a program that shows changing content.
///
/// The program draws lines on the alternate screen without a cursor, and gets keys as they are typed. If a
/// signal in ``SignalWatch/ending`` or ``SignalWatch/stopping`` arrives, the terminal is restored before
/// the process ends or stops.
package final class TerminalScreen: Sendable {
  /// The reason why a wait ended.
  package enum News: Equatable, Sendable {
    /// A key was typed, or one byte of a key's sequence.
    case key(UInt8)
    /// The terminal has another size, or shows something else, so everything must be drawn again.
    case changed
    /// The deadline has passed.
    case timeUp
    /// The terminal is gone.
    case gone
  }

  /// A line to show.
  package struct Line: Equatable, Sendable {
    /// The text in printable ASCII. Other characters are shown as question marks, so that no text can move the cursor.
    package let text: String
    /// Whether the line is highlighted.
    package let isHead: Bool

    /// Creates a line.
    package init(_ text: String, isHead: Bool = false) {
      self.text = text
      self.isHead = isHead
    }
  }

  private let terminal: Descriptor
  private let before: termios
  private let bell: Wakeup
  /// Whether the program has taken over the screen.
  private let isOn = Locked(false)

  /// How long to wait for a terminal that accepts no output, in milliseconds.
  private static let patience: Int32 = 500

  /// Opens the terminal without changing it. Nil if the process has no terminal.
  package init?() throws(SystemError) {
    let number = unsafe Glibc.open("/dev/tty", O_RDWR | O_CLOEXEC | O_NONBLOCK)
    guard number >= 0 else { return nil }
    terminal = Descriptor(adopting: number)
    var settings = termios()
    try system("tcgetattr /dev/tty") { unsafe tcgetattr(number, &settings) }
    before = settings
    bell = try Wakeup(blocking: false)
  }

  /// Takes over the screen, runs `body`, and restores the screen.
  package func run<Outcome>(during body: () throws -> Outcome) throws -> Outcome {
    try SignalWatch.run(
      SignalWatch.ending + SignalWatch.stopping, leave: { self.leave() }, comeBack: { self.comeBack() },
      told: [SIGWINCH], tell: { self.bell.ring() }
    ) {
      defer { leave() }
      enter()
      return try body()
    }
  }

  /// The numbers of columns and lines; 80 and 24 if the terminal does not report them.
  package var size: (columns: Int, lines: Int) {
    let size = WindowSize(ofDescriptor: terminal.number)
    guard let columns = size.columns, let lines = size.lines else { return (WindowSize.usualColumns, 24) }
    return (columns, lines)
  }

  /// Replaces the content of the screen with lines from the top, cut to the size of the screen.
  package func show(_ lines: [Line]) {
    let (columns, height) = size
    // ECMA-48: CUP moves the cursor home, SGR 7 is negative image, EL erases to the end of the line, ED
    // to the end of the screen.
    var text = "\u{1b}[H"
    for (place, line) in lines.prefix(height).enumerated() {
      let shown = Self.printable(line.text, columns)
      if place > 0 { text += "\r\n" }
      text += line.isHead ? "\u{1b}[7m\(shown)\u{1b}[0m" : shown
      if shown.utf8.count < columns { text += "\u{1b}[K" }
    }
    text += lines.count < height ? "\u{1b}[J" : ""
    isOn.withLock { isOn in if isOn { write(text) } }
  }

  private static func printable(_ text: String, _ columns: Int) -> String {
    let bytes = text.unicodeScalars.prefix(columns).map { (0x20...0x7e).contains($0.value) ? UInt8($0.value) : 0x3f }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Waits for a key, or for a reason to draw everything again.
  ///
  /// - Parameter deadline: a time of ``Clock/monotonicMicroseconds``.
  package func wait(until deadline: UInt64) throws(SystemError) -> News {
    while true {
      switch try TimedWait.wait(for: terminal.number, bell: bell.descriptor.number, until: deadline) {
      case .timeUp: return .timeUp
      case .rung:
        bell.wait()
        return .changed
      case .readable, .room, .outputClosed: break
      }
      var byte: [UInt8] = [0]
      do {
        switch try terminal.read(into: &byte) {
        case 1?: return .key(byte[0])
        case nil: continue
        case _?: return .gone
        }
      } catch {
        return .gone
      }
    }
  }

  // MARK: Taking over and restoring the screen

  private func enter() {
    isOn.withLock { isOn in
      var settings = before
      // The keys that end or stop the program keep their effect. The keys that halt output become ordinary keys.
      settings.c_lflag &= ~tcflag_t(ICANON | ECHO | ECHONL)
      settings.c_iflag &= ~tcflag_t(IXON)
      apply(settings)
      // xterm's ctlseqs: 1049 is the alternate screen, which also saves the cursor. 25 is the cursor.
      write("\u{1b}[?1049h\u{1b}[?25l\u{1b}[2J")
      isOn = true
    }
  }

  private func leave() {
    isOn.withLock { isOn in
      guard isOn else { return }
      isOn = false
      write("\u{1b}[?25h\u{1b}[?1049l")
      apply(before)
    }
  }

  private func comeBack() {
    enter()
    bell.ring()
  }

  /// Applies settings and discards unread input, which was not meant for the next reader of the terminal.
  private func apply(_ settings: termios) {
    var settings = settings
    let number = terminal.number
    // tcsetattr() fails if the terminal is gone.
    _ = attempt { Int(unsafe tcsetattr(number, TCSAFLUSH, &settings)) }
  }

  /// Writes as much as the terminal accepts, and gives up if it accepts nothing, so that no signal is held up.
  private func write(_ text: String) {
    let bytes = Array(text.utf8)
    var written = 0
    while written < bytes.count {
      do {
        if let count = try terminal.write(bytes, from: written) {
          written += count
        } else {
          var watched = pollfd(fd: terminal.number, events: Int16(POLLOUT), revents: 0)
          guard case .done(1) = attempt({ Int(unsafe poll(&watched, 1, Self.patience)) }) else { return }
        }
      } catch {
        // The terminal is gone.
        return
      }
    }
  }
}
