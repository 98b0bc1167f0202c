import Foundation

/// Something that is tried many times over, with its line in the table that `packaging/test --long` prints.
///
/// The usual run tries it as often as there is time for; the long one as often as it takes to trust it.
package struct Trial {
  private static let environment = ProcessInfo.processInfo.environment
  /// Whether this is the long run.
  package static let isLong = environment["IDENTITYD_LONG"] == "1"

  private let name: String

  /// - Parameter name: what is tried, in the words of the table: "kill -9 under load".
  package init(_ name: String) { self.name = name }

  /// Whether programs are slow in this run, as those of sanitizers are: what they look for, they find at the first rounds.
  package static let isShort = environment["IDENTITYD_SHORT"] == "1"

  /// How often to try it in this run.
  package static func rounds(_ usual: Int, long: Int) -> Int { isLong ? long : isShort ? max(1, usual / 20) : usual }

  /// Adds the line to the file that IDENTITYD_TABLE names, which has to exist; nothing where it is not set.
  ///
  /// - Parameters:
  ///   - tried: how often it was tried.
  ///   - lost: how often it went wrong: something lost, served although damaged, answered otherwise than the model.
  ///   - remark: what else the reader should know, such as how many commits were acknowledged.
  /// - Throws: what the file system says; a line that is missing would be taken for a trial that was never made.
  package func report(tried: Int, lost: Int, _ remark: String = "") throws {
    guard let path = Self.environment["IDENTITYD_TABLE"] else { return }
    let line = "\(name)\t\(tried)\t\(lost)\t\(remark)\n"
    // Behind what others write there at the same time.
    let descriptor = unsafe open(path, O_WRONLY | O_APPEND | O_CLOEXEC)
    guard descriptor >= 0 else { throw CocoaError(.fileNoSuchFile) }
    try FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).write(contentsOf: Data(line.utf8))
  }
}
