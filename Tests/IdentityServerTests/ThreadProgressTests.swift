import Testing

@testable import IdentityServer

struct ThreadProgressTests {
  @Test func `a writer that answers keeps the watchdog fed`() {
    var progress = ThreadProgress()
    for number in UInt64(1)...5 {
      #expect(progress.tick(writerIsInStorage: false) == .init(isAlive: true, heartbeat: number))
      progress.noteAnswer(to: number)
    }
  }

  @Test func `row 48: a writer that does not answer starves the watchdog until it does`() {
    var progress = ThreadProgress()
    _ = progress.tick(writerIsInStorage: false)
    for _ in 0..<5 { #expect(progress.tick(writerIsInStorage: false) == .init(isAlive: false, heartbeat: nil)) }
    progress.noteAnswer(to: 1)
    #expect(progress.tick(writerIsInStorage: false) == .init(isAlive: true, heartbeat: 2))
  }

  @Test func `row 48: a writer that waits for the disk is not taken for a hung one`() {
    var progress = ThreadProgress()
    _ = progress.tick(writerIsInStorage: false)
    #expect(progress.tick(writerIsInStorage: true) == .init(isAlive: true, heartbeat: nil))
    #expect(progress.tick(writerIsInStorage: false) == .init(isAlive: false, heartbeat: nil))
  }
}
