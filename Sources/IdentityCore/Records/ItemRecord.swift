extension Item: StoredRecord {
  package static let table = RecordTable(
    "item", of: Self.self, digestIndex: 6, .items,
    indexes: ["item_key ON item (access_group, service, account)"])

  package init() {
    self.init(
      key: ItemKey(group: .empty, service: .empty, account: .empty), number: 0, edition: .zero, owner: .empty,
      label: nil, attributes: [], isThisDeviceOnly: false, endsWithInstallation: false, secretLength: 0,
      created: .epoch, modified: .epoch)
  }

  /// Label and attributes are encrypted. The columns by which an item is deleted together with its app, even without the
  /// key, are not.
  package mutating func visit(_ fields: inout some FieldVisitor) {
    visitOpen(&fields)
    var texts = fields.isReading ? [] : described
    fields.visitSealed("description", &texts)
    guard fields.isReading else { return }
    guard texts.count % 2 == 1 else { return fields.refuse() }
    label = texts[0].isEmpty ? nil : texts[0]
    attributes = stride(from: 1, to: texts.count, by: 2).map { Attribute(name: texts[$0], value: texts[$0 + 1]) }
  }

  /// Visits the fields that are not encrypted.
  package mutating func visitOpen(_ fields: inout some FieldVisitor) {
    fields.field("n", &number)
    fields.field("access_group", &key.group, [.lasting, .repeats])
    fields.field("service", &key.service, [.lasting, .repeats])
    fields.field("account", &key.account, .lasting)
    fields.field("owner", &owner, .repeats)
    fields.field("edition", &edition)
    fields.field("this_device_only", &isThisDeviceOnly)
    fields.field("ends_with_installation", &endsWithInstallation)
    var length = Int64(secretLength)
    fields.field("secret_length", &length)
    fields.field("created", &created, .repeats)
    fields.field("modified", &modified, .repeats)
    if fields.isReading { secretLength = Int(clamping: length) }
  }

  /// The label, then the name and the value of each attribute.
  private var described: [Text] {
    var texts = [label ?? .empty]
    texts.reserveCapacity(1 + 2 * attributes.count)
    for attribute in attributes { texts += [attribute.name, attribute.value] }
    return texts
  }
}
