import ConfigurationFiles
import IdentityCore

/// Versions: their order, and os-release, from which the system's version comes.
final class ReleaseTarget: FuzzTarget {
  init() throws {}

  func run(_ input: [UInt8]) throws {
    let release = OSRelease(input)
    for name in ["ID", "VERSION_ID", "BUILD_ID"] {
      guard let value = try? release.value(of: name, limit: 64) else { continue }
      try require(!value.isEmpty && !value.contains("\n") && value.utf8.count <= 64, "\(name) is \(value)")
    }
    let texts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 3).prefix(3).map { Text(trusted: Array($0)) }
    guard texts.count == 3 else { return }
    let areNumbered = texts.allSatisfy { ("0"..."9").contains("\($0)".prefix(1)) }
    /// Whether an order of pairs is one of all texts, too. The automatic order chooses another one for each pair, and two
    /// orders skip a name that both texts begin with.
    func isWhole(_ order: VersionOrder) -> Bool {
      order == .debian || order == .linux || areNumbered && order != .auto
    }
    for order in VersionOrder.allCases {
      // Checks that the order is reflexive, antisymmetric and transitive.
      for first in texts {
        try require(order.compare(first, first) == .equal, "\(first) is not itself in order \(order)")
        for second in texts {
          let outcome = order.compare(first, second)
          try require(order.compare(second, first) == outcome.opposite, "\(first) and \(second) in order \(order)")
          for third in texts where isWhole(order) {
            guard outcome != .greater, order.compare(second, third) != .greater else { continue }
            let isEqual = outcome == .equal && order.compare(second, third) == .equal
            let wanted: VersionOrder.Outcome = isEqual ? .equal : .less
            try require(
              order.compare(first, third) == wanted, "\(first), \(second) and \(third) go round in order \(order)")
          }
        }
      }
    }
  }
}

extension VersionOrder.Outcome {
  fileprivate var opposite: Self {
    switch self {
    case .less: .greater
    case .equal: .equal
    case .greater: .less
    }
  }
}
