import Foundation
import Testing

/// What the system tests need, and may be lacking.
enum Requirement {
  private static let environment = ProcessInfo.processInfo.environment

  /// The package under test.
  static let package = environment["IDENTITYD_DEB"].map { URL(filePath: $0) }
  /// The folder with the programs as they are shipped.
  static let programs = environment["IDENTITYD_RELEASE_BIN"].map { URL(filePath: $0) }
  /// On a build server nothing may be left out.
  static let isBuildServer = environment["CI"] == "true"

  /// Why no container can be tested; nil where one can.
  static let missingForContainers: String? = {
    guard let package else { return "IDENTITYD_DEB is not set: packaging/test sets it to the package under test" }
    guard FileManager.default.fileExists(atPath: package.path) else { return "there is no \(package.path)" }
    return refusalOfContainers()
  }()

  /// Why `packaging/run` cannot be tested; nil where it can.
  static let missingForPrograms: String? =
    programs == nil ? "IDENTITYD_RELEASE_BIN is not set: packaging/test sets it to the folder with the programs" : nil

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
  #expect(Requirement.missingForContainers == nil)
  #expect(Requirement.missingForPrograms == nil)
}
