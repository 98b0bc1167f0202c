import Testing

/// The package in real systems: each test on each Debian release, one after the other, since they share the system.
///
/// They depend on no order: each starts from ``Container/ready(_:)``. The time limit only ends what hangs.
@Suite(.serialized, .needs(Requirement.missingForContainers), .timeLimit(.minutes(10)))
struct SystemTests {}
