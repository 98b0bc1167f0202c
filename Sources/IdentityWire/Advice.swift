/// Texts for people that name commands of `identityctl` in quotation marks, such as `see 'identityctl check'`.
package enum Advice {
  /// Returns a text whose commands reach the daemon that gives the text.
  ///
  /// - Parameter isOwn: whether the daemon is that of a user, which the client reaches with `--user`.
  package static func text(_ text: String, isOwn: Bool) -> String {
    guard isOwn else { return text }
    let command = Array("'identityctl ".utf8)
    var advice: [UInt8] = []
    for byte in text.utf8 {
      advice.append(byte)
      if advice.suffix(command.count).elementsEqual(command) { advice += Array("--user ".utf8) }
    }
    return String(decoding: advice, as: UTF8.self)
  }
}
