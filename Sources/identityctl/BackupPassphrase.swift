import ClientSecrets
import LinuxSystem

// Where the passphrase of a backup comes from.
extension Program {
  /// What a passphrase is wanted for.
  enum PassphraseUse {
    /// To open a backup: where it is wrong, that shows.
    case open
    /// To make one: a slip would make it useless, so it is asked for twice.
    case make
  }

  /// Somebody who can be asked, or the passphrase already.
  enum PassphraseSource: ~Copyable {
    case given(Passphrase)
    case terminal(Terminal)
  }

  /// Finds out where the passphrase comes from.
  ///
  /// One in a descriptor is read at once: as long as nothing else is open, its number stands for what was handed over, and
  /// behind it on standard input the backup may follow.
  static func passphraseSource(_ line: CommandLine) throws -> PassphraseSource {
    guard let text = line.options["passphrase-fd"] else {
      guard let terminal = Terminal() else {
        throw CommandLine.UsageError("there is no terminal to ask for the passphrase; give it by '--passphrase-fd=N'")
      }
      return .terminal(terminal)
    }
    guard !text.isEmpty, text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let number = Int32(text)
    else { throw CommandLine.UsageError("--passphrase-fd cannot be '\(text)'; allowed: the number of a descriptor") }
    return try withPassphraseFailures {
      do {
        return .given(try Passphrase(from: try InputFile(descriptor: number, named: "descriptor \(number)")))
      } catch let error as SystemError {
        throw Passphrase.Failure.unreadable("\(error)")
      }
    }
  }

  /// Gets the passphrase, asking for it where that is needed, and makes the key.
  static func key(_ source: consuming PassphraseSource, _ header: BackupHeader, for use: PassphraseUse) throws
    -> BackupKey
  {
    switch consume source {
    case .given(let passphrase): return try withPassphraseFailures { try passphrase.key(for: header) }
    case .terminal(let terminal):
      return try withPassphraseFailures {
        let passphrase = try Passphrase(
          at: terminal, use == .make ? "Passphrase for the backup: " : "Passphrase of the backup: ")
        if use == .make {
          let again = try Passphrase(at: terminal, "Once more: ")
          guard passphrase.matches(again) else { throw Passphrase.Failure.different }
        }
        return try passphrase.key(for: header)
      }
    }
  }

  /// Runs what needs a passphrase.
  private static func withPassphraseFailures<Outcome: ~Copyable>(_ body: () throws -> Outcome) throws -> Outcome {
    do {
      return try body()
    } catch let failure as Passphrase.Failure {
      throw Ending(status: ExitStatus.fileFailed, text: "\(failure)")
    }
  }

  /// A request with the key of a backup, its end among the bytes; whoever gets it wipes it.
  static func request(_ verb: String, _ key: borrowing BackupKey) -> [UInt8] {
    var request: [UInt8] = []
    // Room for all of it: no copy is left behind where the array would have been before.
    request.reserveCapacity(verb.utf8.count + Base64.length(of: BackupKey.length) + 8)
    request += "\(verb) key=".utf8
    key.appendBase64(to: &request)
    request.append(UInt8(ascii: "\n"))
    return request
  }
}
