import Foundation
import LinuxSystem
import TestSupport

/// A fake broker, which answers packets as a function says. It serves one connection.
final class PlayedBroker {
  let port: UInt16

  /// Listens on a loopback port.
  ///
  /// - Parameter answer: returns the bytes to send after a packet, which may come with others behind it.
  init(_ answer: @escaping @Sendable ([UInt8]) -> [UInt8]) throws {
    let (number, port) = try BrokerUnderTest.listener()
    self.port = port
    Thread.detachNewThread {
      let listener = Descriptor(adopting: number)
      let connection = Descriptor(adopting: accept(listener.number, nil, nil))
      var packet = [UInt8](repeating: 0, count: 4_096)
      while let count = try? connection.read(into: &packet), count > 0 {
        guard (try? connection.sendAll(answer(Array(packet[..<count])))) != nil else { return }
      }
    }
  }
}
