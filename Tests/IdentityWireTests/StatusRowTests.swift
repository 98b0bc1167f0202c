import IdentityCore
import IdentityWire
import Testing

struct StatusRowTests {
  @Test func `row names are unique and in lower case, and each has a description`() {
    #expect(Set(StatusRow.all.map(\.name)).count == StatusRow.all.count)
    for row in StatusRow.all {
      #expect(row.name.allSatisfy { $0 == "-" || ("a"..."z").contains($0) }, "\(row.name)")
      #expect(row.summary.hasSuffix("."), "\(row.name)")
      // In the manual each sentence begins a line, where a quote would begin a macro (mdoc(7)).
      #expect(!row.summary.contains(". '"), "\(row.name)")
    }
  }

  @Test func `everybody sees only the health and the protocol`() {
    #expect(
      StatusRow.all.filter { $0.audience == .everybody }.map(\.name) == [
        "version", "protocol", "store", "master-key", "master-key-reason", "sealed", "store-reason", "manifest-faults",
      ])
    #expect(StatusRow.all.filter { $0.audience == .sharingMonitors } == [.boot, .storeIdentifier])
  }

  @Test func `monitors see more, and the boot only if their app shares the device identifier`() {
    func told(_ peer: Peer, sharesDevice: Bool) -> Set<RowAudience> {
      Set(RowAudience.allCases.filter { $0.includes(peer, sharesDevice: sharesDevice) })
    }
    func peer(isAdmin: Bool = false, isMonitor: Bool = false, place: PeerPlace = PeerPlace()) -> Peer {
      Peer(userID: 1_000, groupID: 1_000, processID: 2, place: place, isAdmin: isAdmin, isMonitor: isMonitor)
    }
    for sharesDevice in [false, true] {
      #expect(told(peer(), sharesDevice: sharesDevice) == [.everybody])
      for monitor in [peer(isAdmin: true), peer(isMonitor: true)] {
        let more: Set<RowAudience> = sharesDevice ? [.sharingMonitors] : []
        #expect(told(monitor, sharesDevice: sharesDevice) == more.union([.everybody, .monitors]))
      }
      for place in [PeerPlace(unit: nil, container: "box"), PeerPlace(unit: "a.service", hasOtherNamespaces: true)] {
        let contained = peer(isAdmin: true, isMonitor: true, place: place)
        #expect(told(contained, sharesDevice: sharesDevice) == [.everybody])
      }
    }
  }
}
