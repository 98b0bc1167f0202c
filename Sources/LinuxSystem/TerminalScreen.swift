import Glibc

/// The whole terminal that this process belongs to, for a program that shows what changes: lines on the alternate screen,
/// no cursor, and keys as they are typed.
///
/// However the process ends or is stopped meanwhile, short of SIGKILL and SIGSTOP, the terminal is left as it was.
package final class TerminalScreen: Sendable {
  /// What ended a wait.
  package enum News: Equatable, Sendable {
    /// This key was typed, or this byte of one.
    case key(UInt8)
    /// The terminal has another size, or shows something else: all has to be shown anew.
    case changed
    /// The time is up.
    case timeUp
    /// The terminal is gone.
    case gone
  }

  /// A line to show.
  package struct Line: Equatable, Sendable {
    /// Nothing but printable ASCII: anything else is shown as a question mark, so that no text can move the cursor.
    package let text: String
    /// Whether it stands out.
    package let isHead: Bool

    /// Says what it is.
    package init(_ text: String, isHead: Bool = false) {
      self.text = text
      self.isHead = isHead
    }
  }

  private let terminal: Descriptor
  private let before: termios
  private let bell: Wakeup
  /// Whether the screen is this program's now.
  private let isOn = Locked(false)

  /// How long a terminal that takes nothing is waited for, in milliseconds.
  private static let patience: Int32 = 500

  /// Opens the terminal; nil where the process has none. Nothing is changed yet.
  package init?() throws(SystemError) {
    let number = unsafe Glibc.open("/dev/tty", O_RDWR | O_CLOEXEC | O_NONBLOCK)
    guard number >= 0 else { return nil }
    terminal = Descriptor(adopting: number)
    var settings = termios()
    try system("tcgetattr /dev/tty") { unsafe tcgetattr(number, &settings) }
    before = settings
    bell = try Wakeup(blocking: false)
  }

  /// Runs `body` with the screen to itself.
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

  /// How many columns and lines it has; 80 and 24 where it does not say.
  package var size: (columns: Int, lines: Int) {
    var size = winsize()
    let number = terminal.number
    guard unsafe ioctl(number, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// Shows lines from the top, cut to the size of the screen, in the place of all that was there.
  package func show(_ lines: [Line]) {
    let (columns, height) = size
    // ECMA-48: CUP home, SGR 7 negative, EL to the end of the line, ED to the end of the screen.
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

  /// Waits for a key, or for a reason to show all anew.
  ///
  /// - Parameter deadline: a moment of ``Clock/monotonicMicroseconds``.
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

  // MARK: In and out

  private func enter() {
    isOn.withLock { isOn in
      var settings = before
      // The keys that end and stop stay what they are; those that halt the output are keys like any other.
      settings.c_lflag &= ~tcflag_t(ICANON | ECHO | ECHONL)
      settings.c_iflag &= ~tcflag_t(IXON)
      apply(settings)
      // xterm's ctlseqs: 1049 is the alternate screen, with the cursor kept; 25 is the cursor.
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

  /// What was typed and not read is thrown away: it was not meant for whoever comes next.
  private func apply(_ settings: termios) {
    var settings = settings
    let number = terminal.number
    // Fails for a terminal that is gone.
    _ = attempt { Int(unsafe tcsetattr(number, TCSAFLUSH, &settings)) }
  }

  /// Writes as much as the terminal takes: one that takes nothing holds nobody up, least of all a signal.
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
