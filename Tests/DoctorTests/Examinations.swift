import IdentityClient
import LinuxSystem

@testable import Doctor

/// Returns the facts of a contact for user 1000, with the rows of `status` if the daemon answered.
func examination(
  _ contact: Examination.Contact = .answered, at path: String = DaemonSocket.systemPath,
  _ status: [(String, String)] = [], units: UnitStates = UnitStates()
) -> Examination {
  Examination(
    socketPath: path, userID: 1_000, contact: contact,
    answers: contact == .answered ? DaemonAnswers(status: status) : nil, units: units)
}

/// Returns the repair commands of all faults, as shown to user 1000.
func mends(_ finding: Finding) -> [String] { finding.faults.flatMap(\.mend).map { $0.text(for: 1_000) } }

/// Returns the mount at `/var` that contains `/var/lib/s`, with the flags of the mount and of its file system.
func mount(_ own: String, _ fileSystem: String) -> Mount? {
  Mount.containing("/var/lib/s", in: "29 1 8:1 / /var \(own),relatime shared:1 - ext4 /dev/sda1 \(fileSystem)\n")
}
