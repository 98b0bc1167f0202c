import Testing

/// The package in real systems: each test runs on each Debian release. The tests run one at a time, since they share
/// the system.
///
/// The order does not matter: each test starts from ``Container/ready(_:)``. The time limit only ends hangs.
@Suite(.serialized, .needs(Requirement.missingForContainers), .timeLimit(.minutes(10)))
struct SystemTests {}
