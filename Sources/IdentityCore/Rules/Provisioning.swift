// The identity that a machine is given at its first start (identityd(8), "First boot").
extension Registry {
  /// Whether the store has nothing yet that an identity from elsewhere could contradict.
  package var isWithoutIdentity: Bool { history.last == 0 && items.total.items == 0 && account == nil }

  /// Returns the changes that give this machine an identity: those of a restore, and then a device identifier, if there
  /// is none after the restore.
  ///
  /// - Throws: `invalidUUID` for a placeholder, or the refusal of the restore.
  package func provision(
    device: UUID?, backup: Backup?, _ context: Context
  ) throws(Refusal) -> [Change] {
    if let device, device.isPlaceholder { throw .invalidUUID(Text("\(device)")) }
    var plan = Plan(self)
    if let backup {
      for change in try restoration(of: backup, adoptsDevice: false, context).changes { plan.add(change) }
    }
    if let device, plan.registry[.device] == nil {
      plan.put(
        Identifier(
          scope: .device, value: device, created: context.now, origin: .migrated, cause: .migrated, author: nil))
    }
    return plan.changes
  }
}
