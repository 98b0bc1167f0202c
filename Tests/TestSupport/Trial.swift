import Foundation

/// A test that repeats an experiment many times and has a line in the table that `packaging/test --long` prints.
///
/// The usual run repeats it as often as time allows. The long run repeats it often enough to trust the result.
package struct Trial {
  private static let environment = ProcessInfo.processInfo.environment
  /// Whether this is the long run.
  package static let isLong = environment["IDENTITYD_LONG"] == "1"

  private let name: String

  /// - Parameter name: the experiment, in the words of the table: "kill -9 under load".
  package init(_ name: String) { self.name = name }

  /// Whether programs are slow in this run, as under sanitizers, which find their faults in the first rounds.
  package static let isShort = environment["IDENTITYD_SHORT"] == "1"

  /// Returns the number of repetitions in this run.
  package static func rounds(_ usual: Int, long: Int) -> Int { isLong ? long : isShort ? max(1, usual / 20) : usual }

  /// Appends a line to the file that IDENTITYD_TABLE names, which must exist. Does nothing if the variable is not set.
  ///
  /// - Parameters:
  ///   - tried: the number of repetitions.
  ///   - lost: the number of failures: loss, damage that was served, or an answer that differs from the model's.
  ///   - remark: other information for the reader, such as the number of acknowledged commits.
  /// - Throws: if the line cannot be written: without it, the table would look as if the trial was never made.
  package func report(tried: Int, lost: Int, _ remark: String = "") throws {
    guard let path = Self.environment["IDENTITYD_TABLE"] else { return }
    let line = "\(name)\t\(tried)\t\(lost)\t\(remark)\n"
    // O_APPEND, because other processes write to the file at the same time.
    let descriptor = unsafe open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
    guard descriptor >= 0 else { throw CocoaError(.fileNoSuchFile) }
    try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).write(contentsOf: Data(line.utf8))
  }
}
