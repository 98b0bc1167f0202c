import FleetWire
import TestSupport
import Testing

@testable import FleetSeal

/// Draws sixteen bytes.
func drawn<Value: SixteenBytes>(_ chance: inout SeededGenerator) -> Value {
  Value(high: chance.next(), low: chance.next())
}

/// Draws a secret.
func drawnSecret(_ chance: inout SeededGenerator) throws -> SecretKey {
  var bytes = (0..<4).flatMap { _ in chance.next().bigEndianBytes }
  return try #require(SecretKey(consuming: &bytes))
}
