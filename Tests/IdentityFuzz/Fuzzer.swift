import Glibc

/// The entry point that libFuzzer's main calls. IDENTITYD_FUZZ_TARGET names the target.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  do {
    try unsafe target.run(Array(UnsafeBufferPointer(start: start, count: count)))
    return 0
  } catch {
    fatalError("\(error)")
  }
}

// Sendable: libFuzzer calls from one thread.
nonisolated(unsafe) private let target: any FuzzTarget = {
  let name = unsafe getenv("IDENTITYD_FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
  if name == "planted" { return PlantedTarget() }
  guard let type = fuzzTargets[name] else {
    fatalError("IDENTITYD_FUZZ_TARGET has to be one of \(fuzzTargets.keys.sorted().joined(separator: ", "))")
  }
  do {
    return try type.init()
  } catch {
    fatalError("\(name): \(error)")
  }
}()

/// A fault that only a fuzzer with coverage feedback finds. packaging/tools/fuzz rejects a fuzzer that does not find it.
private final class PlantedTarget: FuzzTarget {
  func run(_ input: [UInt8]) throws {
    guard input.count > 3, input[0] == UInt8(ascii: "b") else { return }
    guard input[1] == UInt8(ascii: "u") else { return }
    guard input[2] == UInt8(ascii: "g") else { return }
    if input[3] == UInt8(ascii: "!") { throw Finding("the planted fault is found") }
  }
}
