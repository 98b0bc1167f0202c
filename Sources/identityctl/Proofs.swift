import ClientFormats
import IdentityClient
import IdentityCore
import IdentityWire
import LinuxSystem
import Proofs

// The verification of proofs (identityctl(1), section "PROOFS").
extension Program {
  /// Verifies a proof from a file, or from standard input, and shows its claims. Needs no daemon.
  ///
  /// - Returns: nil for any other command.
  static func verifyProof(_ line: CommandLine) throws -> Int32? {
    guard VerbName(line.words).both == "proof verify" else { return nil }
    let operands = line.words.dropFirst(2)
    guard operands.count <= 1 else { throw CommandLine.UsageError("'proof verify' takes one FILE") }
    guard let path = line.options["keys"], let audience = line.options["audience"] else {
      throw CommandLine.UsageError("'proof verify' needs --keys=FILE and --audience=NAME")
    }
    let format = try UUIDFormat(named: line.options["format"] ?? "hyphen")
    let file = operands.first ?? "-"
    guard !(path == "-" && file == "-") else {
      throw CommandLine.UsageError("either the proof or the key set can come from standard input")
    }
    guard let keys = KeySet(parsing: try bytes(of: path, limit: KeySet.length)) else {
      throw Ending(status: ExitStatus.fileFailed, text: "\(path) has no key set of 'identityctl proof keys'")
    }
    // A file usually ends with a line feed.
    let text = try bytes(of: file, limit: Proof.length + 1).filter { $0 > UInt8(ascii: " ") }
    guard let proof = Proof(parsing: text) else {
      throw Ending(
        status: ExitStatus.fileFailed, text: "\(file == "-" ? "standard input" : file) is not a proof, which is a JWT")
    }
    do {
      try proof.verify(by: keys, for: audience, at: Clock.realtimeMilliseconds / 1_000)
    } catch let refusal as ProofRefusal {
      throw Ending(status: ExitStatus.no, code: "refused", text: "the proof is refused: \(refusal)")
    } catch ProofKeyFault.noLibrary {
      throw Ending(
        status: ErrorCode.unavailable.exitStatus, text: "no signature can be verified without OpenSSL's libcrypto.so.3")
    }
    if line.options["json"] != nil {
      let isWritten = line.options["quiet"] != nil || StandardStream.output.write(proof.claims.json + "\n")
      return isWritten ? ExitStatus.success : ExitStatus.outputFailed
    }
    let rows = proof.claims.leaves.map { name, value in
      var row = ReplyLine.Content()
      row.attributes = [.init(name: Text(name), value: Text(value.text ?? value.json))]
      return row
    }
    return try show(.init(rows: rows, final: .ok(.init())), to: line.words, line, format)
  }
}

extension JSONValue {
  /// The members of an object, with those of objects in it under both names, joined by a dot.
  fileprivate var leaves: [(name: String, value: JSONValue)] {
    guard case .object(let members) = self else { return [] }
    return members.flatMap { member in
      guard case .object = member.value else { return [(member.name, member.value)] }
      return member.value.leaves.map { ("\(member.name).\($0.name)", $0.value) }
    }
  }
}
