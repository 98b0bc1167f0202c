import TestSupport
import Testing

/// One cluster for all tests of a suite, since it takes seconds to boot. It boots when the first test needs it.
struct OneCluster: SuiteTrait, TestScoping {
  private final class Holder: @unchecked Sendable {
    // Sendable: tests run one after the other.
    var cluster: ClusterUnderTest?
  }

  @TaskLocal private static var current: Holder?

  /// Returns the cluster of the suite.
  static func running() throws -> ClusterUnderTest {
    guard let current else { throw Failure("the suite has no cluster") }
    let cluster = try current.cluster ?? ClusterUnderTest()
    current.cluster = cluster
    return cluster
  }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await Self.$current.withValue(Holder()) { try await function() }
  }
}

extension Trait where Self == OneCluster {
  /// One cluster for all tests of the suite.
  static var oneCluster: Self { Self() }
}
