import TestSupport
import Testing

@testable import IdentityCore

struct AppTableTests {
  private static let ids: [Text] = [
    "user:1", "unit:a.service@1", "unit:b.service@1", "unit:c.service@2", "a", "b", "v",
  ]
  private static let vendors: [Text?] = [nil, "a", "v", "user:1"]

  private static func app(of vendor: Text?) -> App {
    App(installed: Timestamp(milliseconds: 1), manifest: vendor.map { Manifest(vendor: $0) })
  }

  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func `after random changes the counts equal those of a linear count`(seed: UInt64) {
    var random = SeededGenerator(seed)
    var table = AppTable()
    var plain: [Text: App] = [:]
    for step in 0..<2_000 {
      let id = Self.ids[Int.random(in: 0..<Self.ids.count, using: &random)]
      if random.once(in: 3) {
        table.remove(id)
        plain[id] = nil
      } else {
        let app = Self.app(of: Self.vendors[Int.random(in: 0..<Self.vendors.count, using: &random)])
        table.store(app, as: id)
        plain[id] = app
      }
      let isSame =
        table.count == plain.count && plain.allSatisfy { table[$0.key] == $0.value }
        && Set(table.keys) == Set(plain.keys) && table.withoutManifest == plain.values.count { $0.manifest == nil }
        && (1...3 as ClosedRange<UInt32>).allSatisfy { user in
          let holder = Holder.principal(.user(user))
          return table.apps(of: holder) == Set(plain.keys.filter { Holder(of: $0, SubordinateUsers()) == holder })
        }
        && table.principals == Set(plain.keys.filter(\.isUnclaimedApp).map { Holder(of: $0, SubordinateUsers()) }).count
        && (Self.ids + ["nobody"]).allSatisfy { vendor in
          table.hasAny(of: vendor) == plain.contains { ($0.value.manifest?.vendor ?? $0.key) == vendor }
        }
      guard isSame else {
        Issue.record("step \(step)")
        return
      }
    }
  }

  @Test func `equality does not depend on the order of the changes`() {
    var (straight, roundabout) = (AppTable(), AppTable())
    straight.store(Self.app(of: "v"), as: "a")
    roundabout.store(Self.app(of: nil), as: "unit:a.service@1")
    roundabout.store(Self.app(of: nil), as: "a")
    roundabout.store(Self.app(of: "v"), as: "a")
    #expect(straight != roundabout)
    roundabout.remove("unit:a.service@1")
    #expect(straight == roundabout)
  }
}
