import IdentityCore
import IdentityStore
import LinuxSystem
import Proofs

/// Makes proof keys and signs proofs, on a thread of its own, which starts with the first order.
///
/// A signature takes longer than most answers, and a key in hardware may never answer.
final class ProofSigner {
  /// The work of an order.
  enum Work: Sendable {
    /// Makes a key pair.
    case make(in: ProofKeyPlace)
    /// Signs claims in JSON with a stored key.
    case sign([UInt8], with: ProofKeyPair)

    /// The place of the key.
    var place: ProofKeyPlace {
      switch self {
      case .make(let place): place
      case .sign(_, let pair): pair.place
      }
    }
  }

  /// An order to the thread.
  struct Order: Sendable {
    /// Tells the answers to orders apart.
    let number: UInt64
    let work: Work
    /// Opens and seals private keys.
    let cipher: ProofKeyCipher
  }

  /// The product of an order.
  enum Product: Sendable {
    case key(ProofKeyPair)
    case proof(Text)
  }

  /// The answer to an order.
  struct Answer: Sendable {
    /// See ``Order/number``.
    let number: UInt64
    let product: Result<Product, Refusal>
  }

  private let inbox: Mailbox<Order>
  private let outbox: Mailbox<Answer>

  /// Starts the thread, which lives as long as the process.
  init() throws(SystemError) {
    let (inbox, outbox) = (try Mailbox<Order>(blocking: true), try Mailbox<Answer>(blocking: false))
    self.inbox = inbox
    self.outbox = outbox
    try Thread(named: "proofs") {
      var bench = ProofBench()
      while true {
        for order in inbox.takeAll() { outbox.send(Answer(number: order.number, product: bench.carryOut(order))) }
      }
    }.detach()
  }

  /// The descriptor that becomes readable once an order is carried out.
  var descriptor: Int32 { outbox.descriptor }

  /// Passes an order to the thread.
  func send(_ order: Order) { inbox.send(order) }

  /// Removes and returns the answers that have arrived.
  func takeAnswers() -> [Answer] { outbox.takeAll(waits: false) }
}

/// The work of the thread, with the key that it used last.
private struct ProofBench {
  private var key: (identifier: Text, key: ProofKey)?

  mutating func carryOut(_ order: ProofSigner.Order) -> Result<ProofSigner.Product, Refusal> {
    let product = attempt(order)
    guard case .failure = product, order.work.place == .tpm2 else { return product }
    // After a fault of the way to the TPM, as when it restarts, each later call would fail, too.
    key = nil
    ProofKey.leaveTPM()
    let second = attempt(order)
    if case .failure = second {
      key = nil
      ProofKey.leaveTPM()
    }
    return second
  }

  private mutating func attempt(_ order: ProofSigner.Order) -> Result<ProofSigner.Product, Refusal> {
    do throws(ProofKeyFault) {
      switch order.work {
      case .make(let place): return .success(.key(try make(in: place, order.cipher)))
      case .sign(let claims, let pair):
        guard let key = try key(of: pair, order.cipher) else {
          return .failure(.broken("the proof key is damaged: 'identityctl proof rotate revoke=yes' replaces it"))
        }
        guard let proof = Proof.sign(claims, with: key) else {
          throw pair.place == .software ? .refused : .refusedByTPM
        }
        return .success(.proof(Text(trusted: proof)))
      }
    } catch {
      return .failure(.unavailable("no proof can be signed: \(error)"))
    }
  }

  private mutating func make(
    in place: ProofKeyPlace, _ cipher: ProofKeyCipher
  ) throws(ProofKeyFault) -> ProofKeyPair {
    // A TPM has few slots.
    if place == .tpm2 { self.key = nil }
    let key = try ProofKey.random(in: place)
    let (identifier, publicKey) = (Text(key.publicKey.thumbprint), key.publicKey)
    let sealed = try key.withStoredForm { cipher.encrypt($0, of: identifier) }
    return ProofKeyPair(
      place: place, identifier: identifier, x: Text(publicKey.x), y: Text(publicKey.y), sealed: sealed)
  }

  /// Returns a key that was stored; nil if it is not as it was stored.
  private mutating func key(of pair: ProofKeyPair, _ cipher: ProofKeyCipher) throws(ProofKeyFault) -> ProofKey? {
    if let key, key.identifier == pair.identifier { return key.key }
    key = nil
    let found = cipher.withKey(pair.sealed, of: pair.identifier) { stored -> Result<ProofKey, ProofKeyFault> in
      do throws(ProofKeyFault) {
        return .success(try ProofKey.stored(stored, in: pair.place))
      } catch {
        return .failure(error)
      }
    }
    guard let read = try found?.get(), Text(read.publicKey.thumbprint) == pair.identifier else { return nil }
    key = (pair.identifier, read)
    return read
  }
}
