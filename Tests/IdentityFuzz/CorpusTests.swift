import Foundation
import Testing

/// Runs every saved input of the fuzzers again.
struct CorpusTests {
  @Test(arguments: fuzzTargets.keys.sorted())
  func `every saved input of the fuzzers runs without an error`(name: String) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpora/\(name)")
    let inputs = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    #expect(!inputs.isEmpty)
    let target = try #require(fuzzTargets[name]).init()
    for input in inputs.sorted(by: { $0.path < $1.path }) {
      do {
        try target.run(Array(Data(contentsOf: input)))
      } catch {
        Issue.record("\(input.lastPathComponent): \(error)")
      }
    }
  }

  @Test func `every target has a corpus, and every corpus a target`() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Corpora")
    #expect(try Set(FileManager.default.contentsOfDirectory(atPath: folder.path)) == Set(fuzzTargets.keys))
  }
}
