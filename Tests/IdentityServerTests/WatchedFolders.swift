import Foundation
import LinuxSystem
import Systemd
import TestSupport

@testable import IdentityServer

/// Folders watched in a separate event loop, within a readiness set as in the daemon. Notes the surveys and warnings.
final class WatchedFolders {
  /// An action on the folders, and the wait after it.
  enum Step {
    /// Waits for the next survey.
    case look(() throws -> Void)
    /// Waits for a number of milliseconds.
    case wait(Int, () throws -> Void)
  }

  /// One survey of the folders.
  struct Look {
    let folders: [String]
    let microseconds: UInt64
    /// The names in the first folder.
    let names: [String]
  }

  private let loop: EventLoop
  private(set) var folders: AppFolders?
  private var steps: ArraySlice<Step> = []
  private var awaitsLook = false
  private var next: EventSource?
  private var timeout: EventSource?
  private var failure: (any Error)?
  private(set) var looks: [Look] = []
  private(set) var warnings: [String] = []
  /// An additional action on each folder of a survey.
  var onLook: (String) -> Void = { _ in }

  init(_ paths: [String], clock: @escaping () -> UInt64 = { Clock.monotonicMicroseconds }) throws {
    loop = try EventLoop()
    folders = try AppFolders(
      paths, loop: loop, clock: clock, survey: { [unowned self] in look($0) },
      warn: { [unowned self] in warnings.append($0) })
  }

  private func look(_ paths: [String]) {
    let names = paths.first.flatMap { try? FileManager.default.contentsOfDirectory(atPath: $0) } ?? []
    looks.append(Look(folders: paths, microseconds: Clock.monotonicMicroseconds, names: names.sorted()))
    for path in paths { onLook(path) }
    if awaitsLook { next?.arm(after: 0) }
    awaitsLook = false
  }

  /// Runs the loop through these steps, once. Fails if a survey does not come within ten seconds.
  func play(_ steps: [Step]) throws {
    self.steps = steps[...]
    // The steps hold references to this object and to the test's folder.
    defer { self.steps = [] }
    next = try loop.timer(after: 0, accuracy: 1_000) { [unowned self] in goOn() }
    timeout = try loop.timer(after: UInt64.max / 2, accuracy: 1_000) { [unowned self] in loop.exit(status: 1) }
    let readiness = try ReadinessSet()
    try readiness.add(loop.descriptor, .read, token: 0)
    if let mounts = folders?.mounts { try readiness.add(mounts.descriptor.number, [.urgent, .once], token: 1) }
    let status = try loop.run { waits in
      for place in 0..<((try? readiness.wait(waits)) ?? 0) {
        if readiness[place].token == 0 { loop.wake() } else { folders?.noteMount() }
      }
    }
    guard status == 0 else {
      throw failure ?? Failure("no look came of step \(steps.count - self.steps.count); there were \(looks.count)")
    }
  }

  private func goOn() {
    guard let step = steps.popFirst() else { return loop.exit(status: 0) }
    do {
      switch step {
      case .look(let action):
        timeout?.arm(after: 10_000_000)
        awaitsLook = true
        try action()
      case .wait(let milliseconds, let action):
        timeout?.disable()
        try action()
        next?.arm(after: UInt64(milliseconds) * 1_000)
      }
    } catch {
      failure = error
      loop.exit(status: 1)
    }
  }
}
