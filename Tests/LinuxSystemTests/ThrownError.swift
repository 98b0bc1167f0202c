import TestSupport

/// Runs the body and returns the error that it throws.
func failure<Failing: Error>(of type: Failing.Type = Failing.self, _ body: () throws -> Void) throws -> Failing {
  do {
    try body()
  } catch let error as Failing {
    return error
  }
  throw Failure("nothing was thrown")
}
