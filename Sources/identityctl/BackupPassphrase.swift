import ClientSecrets
import IdentityClient
import LinuxSystem

// The source of a backup's passphrase.
extension Program {
  /// The purpose of a passphrase.
  enum PassphraseUse {
    /// Opening a backup. A wrong passphrase is detected.
    case open
    /// Making a backup. A typing error would make the backup useless, so the user types the passphrase twice.
    case make
  }

  /// A passphrase that was read already, or a terminal to ask at.
  enum PassphraseSource: ~Copyable {
    case given(Passphrase)
    case terminal(Terminal)
  }

  /// Returns the source that the options name, and reads a passphrase given by descriptor.
  ///
  /// A passphrase in a descriptor is read at once, for two reasons. As long as this process has opened nothing
  /// else, the number can only mean the descriptor that the caller passed. On standard input, the backup may
  /// follow the passphrase.
  static func passphraseSource(_ line: CommandLine) throws -> PassphraseSource {
    guard let text = line.options["passphrase-fd"] else {
      guard let terminal = Terminal() else {
        throw CommandLine.UsageError("there is no terminal to read the passphrase from; use '--passphrase-fd=N'")
      }
      return .terminal(terminal)
    }
    guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let number = Int32(text)
    else {
      throw CommandLine.UsageError(
        "--passphrase-fd cannot be '\(text)'; allowed: the number of an open file descriptor")
    }
    return try withPassphraseFailures {
      do {
        return .given(try Passphrase(from: try InputFile(descriptor: number, named: "descriptor \(number)")))
      } catch let error as SystemError {
        throw Passphrase.Failure.unreadable("\(error)")
      }
    }
  }

  /// Derives the key of a new file, after asking for the passphrase if the source is a terminal.
  ///
  /// - Parameter file: the kind of file, for the prompt.
  static func newKey(
    _ source: consuming PassphraseSource, _ header: BackupHeader, of file: String = "backup"
  ) throws -> BackupKey {
    let passphrase = try passphrase(source, for: .make, of: file)
    return try withPassphraseFailures { try passphrase.key(for: header) }
  }

  /// Derives the keys that may open a file, after asking for the passphrase if the source is a terminal.
  ///
  /// - Parameter file: the kind of file, for the prompt.
  static func keys(
    _ source: consuming PassphraseSource, _ header: BackupHeader, of file: String = "backup"
  ) throws -> BackupKeys {
    let passphrase = try passphrase(source, for: .open, of: file)
    return try withPassphraseFailures { try passphrase.keys(for: header) }
  }

  private static func passphrase(
    _ source: consuming PassphraseSource, for use: PassphraseUse, of file: String
  ) throws -> Passphrase {
    switch consume source {
    case .given(let passphrase): return passphrase
    case .terminal(let terminal):
      return try withPassphraseFailures {
        let passphrase = try Passphrase(
          at: terminal, use == .make ? "Passphrase for the \(file): " : "Passphrase of the \(file): ")
        if use == .make {
          let again = try Passphrase(at: terminal, "Once more: ")
          guard passphrase.matches(again) else { throw Passphrase.Failure.different }
        }
        return passphrase
      }
    }
  }

  /// Derives the keys of a file with a passphrase that was given by descriptor; nil if there is none.
  static func givenKeys(_ source: borrowing PassphraseSource?, _ header: BackupHeader) throws -> BackupKeys? {
    switch source {
    case .some(.given(let passphrase)): try withPassphraseFailures { try passphrase.keys(for: header) }
    default: nil
    }
  }

  /// Runs `body` and turns a passphrase failure into an ``Ending``.
  private static func withPassphraseFailures<Outcome: ~Copyable>(_ body: () throws -> Outcome) throws -> Outcome {
    do {
      return try body()
    } catch let failure as Passphrase.Failure {
      throw Ending(status: ExitStatus.fileFailed, text: "\(failure)")
    }
  }

  /// Returns a request that carries the backup key.
  static func request(_ verb: [String], _ key: borrowing BackupKey) -> RequestLine {
    RequestLine(words: verb).secret(key.withBytes { Secret($0) }, as: "key")
  }
}
