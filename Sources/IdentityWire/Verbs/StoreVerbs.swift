import IdentityCore

extension Verb {
  /// The verbs about the store as a whole, for admins (identityd-protocol(7), sections BACKUP AND
  /// RESTORE and The master key).
  static let store: [Verb] = [
    Verb(
      words: "key rotate", access: .admin,
      summary: "Wrap the store's data key in a new master key.",
      answer: .object(Line([.word("source")])),
      loss: .ask("A new master key replaces the present one, which does not open the store any more."),
      examples: [.init("key rotate", "OK <word>")]
    ) { (_) throws(Refusal) in .store(.rotateKey) },

    Verb(
      words: "key protect", attributes: [.secret("data")], access: .admin,
      summary: "Wrap the store's data key in this recovery key of 32 bytes as well, in place of an earlier one.",
      answer: .nothing,
      loss: .nothing, examples: [.init("key protect data=\(exampleKey)", "OK")]
    ) { (arguments) throws(Refusal) in .store(.protectKey(try arguments.requiredSecret("data"))) },

    Verb(
      words: "key recover", attributes: [.secret("data"), .init("dry-run", "yes")], access: .admin,
      summary: "Open the store's data key with the recovery key, and wrap it in the present master key.",
      answer: .object(Line([.word("source").optional])),
      loss: .nothing, examples: [.init("key recover data=\(exampleKey)", "ERR conflict …")]
    ) { (arguments) throws(Refusal) in
      .store(.recoverKey(try arguments.requiredSecret("data"), dryRun: try arguments.flag("dry-run")))
    },

    Verb(
      words: "backup", attributes: [.secret("key")], access: .admin,
      summary: "Send a backup without this-device-only items, encrypted with a key of 32 bytes.",
      answer: .object(Line([.number("bytes")])),
      loss: .nothing, examples: [.init("backup key=\(exampleKey)", "* data=<word>", "OK <number>")]
    ) { (arguments) throws(Refusal) in .store(.backup(key: try arguments.requiredSecret("key"))) },

    Verb(
      words: "restore begin", attributes: [.secret("key")], access: .admin,
      summary: "Begin to upload a backup that is encrypted with this key.",
      answer: .nothing,
      loss: .nothing, examples: [.init("restore begin key=\(exampleKey)", "OK")]
    ) { (arguments) throws(Refusal) in .local(.beginRestore(key: try arguments.requiredSecret("key"))) },

    Verb(
      // A backup is encrypted, so a piece of a backup is not a secret.
      words: "restore add", attributes: [.required("data", "BASE64")], access: .admin,
      summary: "Upload the next piece of the backup: the data= of one row of 'backup'.",
      answer: .object(Line([.number("bytes")])),
      loss: .nothing, examples: [.init("restore add data=AAAA", "ERR conflict …")]
    ) { (arguments) throws(Refusal) in .local(.addToRestore(try arguments.required("data"))) },

    Verb(
      words: "restore end", attributes: [.init("dry-run", "yes"), .init("adopt-device", "yes")], access: .admin,
      summary: "Restore the uploaded backup, or list what that would change.",
      answer: .list(Line([.word("record"), .word("outcome")], isOpen: true)),
      loss: .ask("The backup changes the store in these ways."),
      examples: [.init("restore end", "ERR conflict …")]
    ) { (arguments) throws(Refusal) in
      .store(
        .restore(dryRun: try arguments.flag("dry-run"), adoptsDevice: try arguments.flag("adopt-device")))
    },
  ]

  /// A key of 32 zero bytes, for the examples only.
  private static let exampleKey = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
}
