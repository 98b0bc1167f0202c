import IdentityCore

extension Verb {
  /// The verbs about apps (protocol, section 8).
  static let apps: [Verb] = [
    Verb(
      words: "app list", kind: .question,
      summary: "List the installed apps: an admin sees all, an app those of its vendor.",
      examples: [.init("app list", "OK 0")]
    ) { (_) throws(Refusal) in .registry(.apps) },

    Verb(
      words: "app forget", operands: [.required("ID")], kind: .change,
      summary: "Uninstall an app that has no manifest: the app itself may, or an admin.",
      examples: [.init("app forget user:4294967294", "ERR …")]
    ) { (arguments) throws(Refusal) in .registry(.forget(app: arguments.operands[0])) },
  ]
}
