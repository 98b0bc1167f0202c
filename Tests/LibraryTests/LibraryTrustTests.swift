import Foundation
import IdentityClient
import TestSupport
import Testing

/// Tests that a client refuses the daemon of another user.
@Suite(.enabled(if: isRoot, "listening as another user needs root")) struct LibraryTrustTests {
  private let other = 4_711
  private let folder: TemporaryFolder
  private let listener: OtherListener
  private var path: String { folder["socket"] }

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.setAttributes([.posixPermissions: 0o1777], ofItemAtPath: folder.path)
    listener = try OtherListener(at: folder["socket"], user: other)
  }

  private func expectUntrusted(_ error: IdentityError) {
    guard case .untrusted(path, let reason) = error else {
      Issue.record("\(error)")
      return
    }
    #expect(reason.contains("uid \(other)"))
    #expect(!error.isWorthRetrying)
    #expect(error.description == "nothing was sent to \(path): \(reason)")
  }

  @Test func `another user's daemon is asked nothing unless the program trusts anybody`() async throws {
    let client = IdentityClient(socket: path)
    for _ in 0..<2 {
      do {
        _ = try await client.ask(.words("ping"))
        Issue.record("it was asked")
      } catch {
        expectUntrusted(error)
      }
      #expect(try listener.received() == "")
    }
    let careless = IdentityClient(socket: path, trust: .anybody)
    #expect(try await careless.ask(.words("ping")).final.words == [])
  }

  @Test func `the blocking client does not trust another user's daemon either`() throws {
    var client = BlockingIdentityClient(socket: path)
    do {
      _ = try client.ask(.words("ping"))
      Issue.record("it was asked")
    } catch {
      expectUntrusted(error)
    }
    #expect(try listener.received() == "")
    var careless = BlockingIdentityClient(socket: path, trust: .anybody)
    #expect(try careless.ask(.words("ping")).final.words == [])
  }

  @Test func `events are not requested from another user's daemon either`() async throws {
    var events = IdentityClient(socket: path).events().makeAsyncIterator()
    do {
      _ = try await events.next()
      Issue.record("it was asked")
    } catch {
      expectUntrusted(error)
    }
    #expect(try listener.received() == "")
    var blocking = BlockingIdentityClient(socket: path).events()
    do {
      _ = try blocking.next(timeout: .seconds(60))
      Issue.record("it was asked")
    } catch {
      expectUntrusted(error)
    }
    #expect(try listener.received() == "")
  }
}
