import Foundation
import Testing

/// The requirements of the system tests, each with the reason if it is not met.
enum Requirement {
  private static let environment = ProcessInfo.processInfo.environment

  /// The Debian packages under test. Nil if none are named.
  static let debs = packages("IDENTITYD_DEBS", "deb")
  /// The RPMs under test. Nil if none are named.
  static let rpms = packages("IDENTITYD_RPMS", "rpm")
  /// The folder of the programs as they are shipped.
  static let programs = environment["IDENTITYD_RELEASE_BIN"].map { URL(filePath: $0) }
  /// Whether this is a build server, which may skip no test.
  static let isBuildServer = environment["CI"] == "true"

  /// The reason why no container can be tested. Nil if containers can be tested.
  static let missingForContainers: String? =
    missing("IDENTITYD_DEBS", debs) ?? refusalOfContainers()

  /// The reason why the packages cannot be examined as files. Nil if they can.
  static let missingForPackages: String? =
    missing("IDENTITYD_DEBS", debs) ?? missing("IDENTITYD_RPMS", rpms) ?? missingForPrograms

  /// The reason why the RPMs cannot be tested in a container. Nil if they can.
  static let missingForRPMs: String? = missingForContainers ?? missing("IDENTITYD_RPMS", rpms)

  /// The reason why `packaging/run` cannot be tested. Nil if it can.
  static let missingForPrograms: String? =
    programs == nil ? "IDENTITYD_RELEASE_BIN is not set: packaging/test sets it to the folder with the programs" : nil

  /// Returns the files that a variable names: paths with white space between them, or folders with such files.
  private static func packages(_ variable: String, _ ending: String) -> [URL]? {
    environment[variable].map { value in
      value.split(whereSeparator: \.isWhitespace).map { URL(filePath: String($0)) }.flatMap { place -> [URL] in
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: place.path) else { return [place] }
        return names.sorted().filter { $0.hasSuffix(".\(ending)") }.map { place.appending(path: $0) }
      }
    }
  }

  /// Returns the reason why a package that a variable names is missing. Nil if all of them exist.
  private static func missing(_ variable: String, _ files: [URL]?) -> String? {
    guard let files else { return "\(variable) is not set: packaging/test sets it to the packages under test" }
    guard !files.isEmpty else { return "\(variable) names no package" }
    return files.first { !FileManager.default.fileExists(atPath: $0.path) }.map { "there is no \($0.path)" }
  }

  /// Returns the reason of packaging/tools/container why this machine boots no container. Nil if it boots containers.
  private static func refusalOfContainers() -> String? {
    let process = Process()
    let errors = Pipe()
    process.executableURL = Container.tool
    process.arguments = ["check"]
    process.standardError = errors
    do {
      try process.run()
      let text = String(decoding: try errors.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
      process.waitUntilExit()
      return process.terminationStatus == 0 ? nil : text.trimmingCharacters(in: .whitespacesAndNewlines)
    } catch {
      return "\(Container.tool.path): \(error)"
    }
  }
}

extension Trait where Self == ConditionTrait {
  /// Skips a test if something is missing, and gives the reason.
  static func needs(_ missing: String?) -> ConditionTrait {
    .enabled(if: missing == nil, Comment(rawValue: missing ?? ""))
  }
}

@Test(.enabled(if: Requirement.isBuildServer, "only a build server has to be able to run everything"))
func `a build server skips none of the system tests`() {
  #expect(Requirement.missingForRPMs == nil)
  #expect(Requirement.missingForPrograms == nil)
}
