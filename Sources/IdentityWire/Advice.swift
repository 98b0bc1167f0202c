/// Texts for people that name commands of `identityctl` in quotation marks, such as `see 'identityctl check'`.
package enum Advice {
  /// Returns a text whose commands reach the daemon that gives the text. A command that reaches it already stays as it is:
  /// the client shows texts in which the daemon has named its commands.
  ///
  /// - Parameter isOwn: whether the daemon is that of a user, which the client reaches with `--user`.
  package static func text(_ text: String, isOwn: Bool) -> String {
    guard isOwn else { return text }
    let (command, option) = (Array("'identityctl ".utf8), Array("--user ".utf8))
    var advice: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      advice.append(byte)
      if advice.suffix(command.count).elementsEqual(command), !rest.starts(with: option) { advice += option }
    }
    return String(decoding: advice, as: UTF8.self)
  }
}
