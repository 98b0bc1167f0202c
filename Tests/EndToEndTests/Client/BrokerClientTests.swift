import TestSupport
import Testing

/// The clients of a broker that the tests of the fleet run.
struct BrokerClientTests {
  @Test(arguments: [("Connection reset by peer", 3), ("Broken pipe", 3), ("Connection refused", 1)])
  func `a client runs again until its connection is not reset, and only then`(error: String, runs: Int) throws {
    let folder = try TemporaryFolder()
    // The first two runs fail.
    let script = """
      echo run >>"$0"
      [ "$(grep -c run "$0")" -gt 2 ] && exec echo done
      echo "cat: write error: \(error)" >&2
      exit 1
      """
    let result = try runClient(["sh", "-c", script, folder["runs"]])
    #expect(try folder.text("runs") == String(repeating: "run\n", count: runs))
    #expect(result.output == (runs == 3 ? "done\n" : ""), "\(result)")
  }
}
