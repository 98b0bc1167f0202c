import IdentityCore
import IdentityWire

let root = Peer(userID: 0, groupID: 0, processID: 1, isAdmin: true)
let alice = Peer(userID: 1_000, groupID: 1_000, processID: 2, isAdmin: false)

/// Parses a request line, by default of an admin.
func command(_ line: String, by peer: Peer = root, secrets: TestIntake = TestIntake()) throws(Refusal) -> Command {
  var parser = WordParser()
  let bytes = Array(line.utf8)
  do { try parser.parse(bytes.span) } catch { throw .syntax(error) }
  return try VerbTable().command(parser, in: bytes.span, by: peer, secrets: secrets)
}

/// Returns the refusal of a request line. Nil if the line is a command.
func refused(_ line: String, by peer: Peer = root, secrets: TestIntake = TestIntake()) -> Refusal? {
  do throws(Refusal) {
    _ = try command(line, by: peer, secrets: secrets)
    return nil
  } catch {
    return error
  }
}
