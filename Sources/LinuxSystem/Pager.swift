import CLinux
import Glibc

/// A program that shows long output screen by screen, chosen as systemctl(1) chooses it.
package struct Pager: Equatable, Sendable {
  /// The programs to try, in order, each with its arguments.
  package let commands: [[String]]
  /// The variables that the pager gets besides those of this process.
  package let variables: [String: String]

  /// The options of less(1) that systemctl(1) sets: quit at once if the text fits on the screen, and keep colours.
  private static let options = "FRSXMK"

  private static let signals = [SIGINT, SIGQUIT, SIGPIPE]

  /// Chooses a pager.
  ///
  /// - Parameters:
  ///   - own: the program's own variable for a pager, which comes before SYSTEMD_PAGER and PAGER.
  ///   - isOwnUser: whether the process runs as the user who logged in. Other users must not get a way to run commands
  ///     with the rights of the process, so they get less(1) in its secure mode (`LESSSECURE`).
  ///   - environment: returns the value of a variable, or nil if the variable is unset.
  /// - Returns: nil if the user wants no pager: the variable is empty or names cat(1).
  package init?(_ own: String, isOwnUser: Bool, _ environment: (String) -> String?) {
    let named = (environment(own) ?? environment("SYSTEMD_PAGER") ?? environment("PAGER"))
      .map { $0.split(whereSeparator: \.isWhitespace).map(String.init) }
    guard named != [], named != ["cat"] else { return nil }
    let choice = environment("SYSTEMD_PAGERSECURE").map {
      !["0", "no", "n", "false", "f", "off"].contains($0.lowercased())
    }
    let isSecure = choice ?? !isOwnUser
    // A user who chose the mode has also chosen the pager.
    let trusted = isSecure && choice == nil ? nil : named
    // Of these, only less(1) has a secure mode.
    commands = (trusted.map { [$0] } ?? []) + (isSecure ? [["less"]] : [["pager"], ["less"], ["more"]])
    var variables = ["LESS": environment("SYSTEMD_LESS") ?? Self.options]
    variables["LESSCHARSET"] = environment("SYSTEMD_LESSCHARSET") ?? environment("LESSCHARSET") ?? "utf-8"
    if isSecure { variables["LESSSECURE"] = "1" }
    self.variables = variables
  }

  /// Whether this process runs as the user who logged in (the login UID of pam_loginuid(8)).
  ///
  /// Without a login UID, root and a user whom sudo(8), pkexec(1) or doas(1) chose count as another user.
  package static var isOwnUser: Bool {
    let user = geteuid()
    if let login = loginUser { return login == user }
    return user != 0 && ["SUDO_UID", "PKEXEC_UID", "DOAS_USER"].allSatisfy { Environment[$0] == nil }
  }

  /// Returns the login UID of this process; nil if none was recorded, or the kernel keeps none.
  private static var loginUser: UInt32? {
    var bytes = [UInt8](repeating: 0, count: 16)
    guard let file = try? InputFile(path: "/proc/self/loginuid"), let count = try? file.fill(&bytes),
      let user = UInt32(String(decoding: bytes[..<count], as: UTF8.self)), user != .max
    else { return nil }
    return user
  }

  /// Shows a text on standard output, and waits for the user to quit.
  ///
  /// Meanwhile, the process ignores the signals of the keyboard and SIGPIPE, which are for the pager.
  ///
  /// - Returns: false if none of the programs can be run, and nothing was shown.
  package func show(_ text: String) -> Bool {
    let before = Self.signals.map { ($0, Glibc.signal($0, SIG_IGN)) }
    defer { for (signal, action) in before { _ = Glibc.signal(signal, action) } }
    for command in commands {
      var (reading, writing) = (Int32(-1), Int32(-1))
      guard (try? system("pipe") { unsafe clinux_pipe(&reading, &writing) }) != nil else { return false }
      let input = Descriptor(adopting: reading)
      let output = Descriptor(adopting: writing)
      guard let process = start(command, reading: input) else { continue }
      _ = consume input
      let bytes = Array(text.utf8)
      var written = 0
      // A user who quits early closes the pipe.
      while written < bytes.count, let count = try? output.write(bytes, from: written) { written += count }
      _ = consume output
      var status: Int32 = 0
      // Fails if the caller of this program ignores SIGCHLD. The pager has ended by then, too.
      _ = try? system("waitpid") { unsafe waitpid(process, &status, 0) }
      return true
    }
    return false
  }

  /// Starts a program that reads from a descriptor. Nil if it cannot be run.
  private func start(_ command: [String], reading input: borrowing Descriptor) -> pid_t? {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, input.number, STDIN_FILENO)
    unsafe clinux_close_from_in_child(&actions, STDERR_FILENO + 1)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var usual = sigset_t()
    unsafe sigemptyset(&usual)
    for signal in Self.signals { unsafe sigaddset(&usual, signal) }
    unsafe posix_spawnattr_setsigdefault(&attributes, &usual)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
    var process: pid_t = 0
    var code = ENOENT
    unsafe withCStrings(command) { arguments in
      unsafe withCStrings(environment) { variables in
        guard let name = unsafe arguments[0] else { return }
        code = unsafe posix_spawnp(&process, name, &actions, &attributes, arguments, variables)
      }
    }
    return code == 0 ? process : nil
  }

  /// The environment of this process with the variables of the pager.
  private var environment: [String] {
    let inherited = Environment.all.filter { entry in !variables.keys.contains { entry.hasPrefix("\($0)=") } }
    return inherited + variables.map { "\($0.key)=\($0.value)" }
  }
}
