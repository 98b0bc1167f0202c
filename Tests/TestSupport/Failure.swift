/// An error that ends a test.
package struct Failure: Error, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}
