import IdentityCore
import IdentityStore
import TestSupport
import Testing

/// The recovery key, which opens the data key without any master key.
struct RecoveryKeyTests {
  private static let items = [Known(1), Known(2, length: 3_000), Known(3, length: 0)]
  private static let credential = KeyCredentials(current: Credential.first)
  private static let other = KeyCredentials(current: Credential.second)
  private static let first = [UInt8](1...32)
  private static let second = [UInt8](2...33)

  /// Returns a store with items under ``credential``, and with the recovery key ``first``.
  private func protected() throws -> Workspace {
    let workspace = try Workspace()
    try workspace.withStore(credentials: Self.credential) { store, content in
      #expect(store.recoveryKeyTime == nil)
      try store.put(Self.items)
      try store.protectKey(with: store.secret(Self.first), at: later(1))
      #expect(store.recoveryKeyTime == later(1))
      try store.mustClose()
    }
    return workspace
  }

  private func expectOpen(_ workspace: Workspace, _ credentials: KeyCredentials, isProtected: Bool = true) throws {
    try workspace.withStore(credentials: credentials) { store, content in
      #expect(content.condition == .writable && content.registry.itemFault == nil)
      #expect((store.recoveryKeyTime != nil) == isProtected)
      try store.expectOpen(Self.items)
      try store.mustClose()
    }
  }

  /// Recovers under ``other``, and returns the refusal.
  private func recover(_ workspace: Workspace, with key: [UInt8], isTrial: Bool = false) throws -> Refusal? {
    try workspace.withStore(credentials: Self.other) { store, content in
      #expect(content.registry.itemFault != nil)
      let found = refusal {
        let source = try store.recoverKey(with: store.secret(key), isTrial: isTrial, at: later(9))
        #expect(source == (isTrial ? nil : .credential))
      }
      #expect(store.isStartDue == (found == nil && !isTrial))
      try store.mustClose()
      return found
    }
  }

  @Test func `the recovery key opens every item under another master key, and stays`() throws {
    let workspace = try protected()
    #expect(try recover(workspace, with: Self.first, isTrial: true) == nil)
    for round in 0..<2 {
      if round == 0 { #expect(try recover(workspace, with: Self.first) == nil) }
      try expectOpen(workspace, Self.other)
    }
    try workspace.withStore(credentials: Self.credential) { store, content in
      #expect(content.registry.itemFault != nil, "the former master key opens nothing")
    }
  }

  @Test func `a recovery without a credential makes a key file`() throws {
    let workspace = try protected()
    try workspace.withStore { store, _ in
      let source = try store.recoverKey(with: store.secret(Self.first), isTrial: false, at: later(9))
      #expect(source == .file)
      #expect(
        refusal { _ = try store.recoverKey(with: store.secret(Self.first), isTrial: false, at: later(9)) }?.isConflict
          == true)
      #expect(refusal { try store.protectKey(with: store.secret(Self.first), at: later(9)) } != nil)
      try store.mustClose()
    }
    try expectOpen(workspace, KeyCredentials())
  }

  @Test func `another recovery key, one of another length, or none opens nothing`() throws {
    let workspace = try protected()
    for key in [Self.second, Array(Self.first.dropLast()), Self.first + [0], []] {
      for isTrial in [true, false] {
        guard case .badArgument("key recover", _)? = try recover(workspace, with: key, isTrial: isTrial) else {
          Issue.record("\(key)")
          continue
        }
      }
    }
    try expectOpen(workspace, Self.credential)
    let bare = try Workspace()
    try bare.withStore(credentials: Self.credential) { store, _ in
      try store.put(Self.items)
      #expect(
        refusal { _ = try store.recoverKey(with: store.secret(Self.first), isTrial: true, at: later(1)) }?.isConflict
          == true)
      #expect(refusal { try store.protectKey(with: store.secret([1]), at: later(1)) } != nil)
      try store.mustClose()
    }
    #expect(try recover(bare, with: Self.first) == .unavailable("the store has no recovery key"))
  }

  @Test func `a new recovery key replaces the earlier one, which opens older copies only`() throws {
    let workspace = try protected()
    let copy = try Workspace()
    try copy.restore(try workspace.files())
    try workspace.withStore(credentials: Self.credential) { store, _ in
      try store.protectKey(with: store.secret(Self.second), at: later(2))
      #expect(store.recoveryKeyTime == later(2))
      try store.mustClose()
    }
    #expect(try recover(workspace, with: Self.first) != nil)
    #expect(try recover(workspace, with: Self.second) == nil)
    #expect(try recover(copy, with: Self.second) != nil)
    #expect(try recover(copy, with: Self.first) == nil)
  }

  @Test func `a rotation and a rewrite keep the recovery key`() throws {
    let workspace = try protected()
    let both = KeyCredentials(current: Credential.third, previous: Credential.first)
    try workspace.withStore(credentials: both) { store, _ in
      let source = try store.rotateKey(at: later(3))
      #expect(source == .credential)
      let healed = store.heal()
      #expect(healed != nil)
      #expect(store.recoveryKeyTime == later(1))
      try store.mustClose()
    }
    #expect(try recover(workspace, with: Self.first) == nil)
    try expectOpen(workspace, Self.other)
  }

  @Test func `a seal and a restore remove the recovery key`() throws {
    for change in [Change.sealed, .epochBegan(uuid(77))] {
      let workspace = try protected()
      try workspace.withStore(credentials: Self.credential) { store, content in
        var registry = content.registry
        try store.mustCommit(registry.recorded([change]))
        #expect(store.recoveryKeyTime == nil)
        #expect(
          (refusal { try store.protectKey(with: store.secret(Self.first), at: later(9)) } != nil) == (change == .sealed)
        )
        if change != .sealed { return }
        try store.mustClose()
      }
      #expect(try workspace.sql("SELECT count(*) FROM recovery_key").contains("0") == (change == .sealed))
    }
  }

  @Test func `the store contains the recovery key nowhere`() throws {
    let workspace = try protected()
    for (name, bytes) in try workspace.files() {
      #expect(bytes.firstRange(of: Self.first) == nil, "\(name)")
    }
  }

  @Test func `a damaged row of the recovery key leaves the items open`() throws {
    let workspace = try protected()
    _ = try workspace.sql("UPDATE recovery_key SET created = '2030-01-01T00:00:00.000Z'")
    try workspace.withStore(credentials: Self.credential) { store, content in
      guard case .damaged = store.condition else { throw Failure("\(store.condition)") }
      #expect(content.registry.unproven == .recovery)
      #expect(store.recoveryKeyTime == nil)
      try store.expectOpen(Self.items)
    }
  }
}

extension Store {
  /// Returns a secret as a request passes it.
  fileprivate func secret(_ bytes: [UInt8]) throws -> SealedSecret { try makeSecretMemory().encrypt(bytes) }
}
