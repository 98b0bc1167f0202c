import Foundation
import Testing

/// What the system tests need, and may be lacking.
enum Requirement {
  private static let environment = ProcessInfo.processInfo.environment

  /// The Debian packages under test; nil where none are named.
  static let debs = packages("IDENTITYD_DEBS", "deb")
  /// The RPMs under test; nil where none are named.
  static let rpms = packages("IDENTITYD_RPMS", "rpm")
  /// The folder with the programs as they are shipped.
  static let programs = environment["IDENTITYD_RELEASE_BIN"].map { URL(filePath: $0) }
  /// On a build server nothing may be left out.
  static let isBuildServer = environment["CI"] == "true"

  /// Why no container can be tested; nil where one can.
  static let missingForContainers: String? =
    missing("IDENTITYD_DEBS", debs) ?? refusalOfContainers()

  /// Why the packages cannot be looked at as files; nil where they can.
  static let missingForPackages: String? =
    missing("IDENTITYD_DEBS", debs) ?? missing("IDENTITYD_RPMS", rpms) ?? missingForPrograms

  /// Why the RPMs cannot be tested in a container; nil where they can.
  static let missingForRPMs: String? = missingForContainers ?? missing("IDENTITYD_RPMS", rpms)

  /// Why `packaging/run` cannot be tested; nil where it can.
  static let missingForPrograms: String? =
    programs == nil ? "IDENTITYD_RELEASE_BIN is not set: packaging/test sets it to the folder with the programs" : nil

  /// The files that a variable names: paths with white space between them, or folders that hold such files.
  private static func packages(_ variable: String, _ ending: String) -> [URL]? {
    environment[variable].map { value in
      value.split(whereSeparator: \.isWhitespace).map { URL(filePath: String($0)) }.flatMap { place -> [URL] in
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: place.path) else { return [place] }
        return names.sorted().filter { $0.hasSuffix(".\(ending)") }.map { place.appending(path: $0) }
      }
    }
  }

  /// What there is not of the packages that a variable names; nil where all of them are there.
  private static func missing(_ variable: String, _ files: [URL]?) -> String? {
    guard let files else { return "\(variable) is not set: packaging/test sets it to the packages under test" }
    guard !files.isEmpty else { return "\(variable) names no package" }
    return files.first { !FileManager.default.fileExists(atPath: $0.path) }.map { "there is no \($0.path)" }
  }

  /// Why this machine boots no container, as packaging/container says; nil where it does.
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
  /// Skips where something is missing, and says what.
  static func needs(_ missing: String?) -> ConditionTrait {
    .enabled(if: missing == nil, Comment(rawValue: missing ?? ""))
  }
}

@Test(.enabled(if: Requirement.isBuildServer, "only a build server has to be able to run everything"))
func `a build server leaves out none of the system tests`() {
  #expect(Requirement.missingForRPMs == nil)
  #expect(Requirement.missingForPrograms == nil)
}
