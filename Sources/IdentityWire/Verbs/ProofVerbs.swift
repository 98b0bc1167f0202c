import IdentityCore

extension Verb {
  /// The verbs about proofs (identityd-protocol(7), section PROOFS).
  static let proofs: [Verb] = [
    Verb(
      words: "prove", operands: [.required("AUDIENCE")],
      attributes: [.init("lifetime", "SECONDS"), .init("nonce", "TEXT"), .init("app", "ID")],
      summary: "Make a proof of the app for AUDIENCE: a signed statement that a server can verify.",
      answer: .object(Line([.word("proof")], [.time("expires")])),
      loss: .nothing, examples: [.init("prove https://vault.example.org", "OK <word> expires=<time>")]
    ) { (arguments) throws(Refusal) in
      let lifetimes = ProofRequest.lifetimes
      let lifetime = try arguments.number("lifetime", in: Int(lifetimes.lowerBound)...Int(lifetimes.upperBound))
      return .registry(
        .prove(
          ProofRequest(
            audience: try arguments.name(arguments.operands[0], named: "AUDIENCE"),
            lifetime: lifetime.map(Int64.init) ?? ProofRequest.standardLifetime,
            nonce: try arguments.optional("nonce"), app: arguments["app"])))
    },

    Verb(
      words: "proof keys",
      summary: "Show the public keys by which a server verifies proofs of this device, as a JWK Set.",
      answer: .object(Line([.document("keys")])),
      loss: .nothing, examples: [.init("proof keys", "OK <word>")]
    ) { (_) throws(Refusal) in .registry(.proofKeys) },

    Verb(
      words: "proof rotate", attributes: [.init("revoke", "yes|no")], access: .admin,
      summary: "Publish a new proof key, which signs later, or with revoke=yes replace the present one at once.",
      answer: .object(Line([.word("key")], [.time("signs")])),
      loss: .nothing, examples: [.init("proof rotate", "OK <word> signs=<time>")]
    ) { (arguments) throws(Refusal) in .registry(.rotateProofKey(revokes: try arguments.flag("revoke"))) },
  ]
}
