import CLinux
import Glibc

/// The system's clocks (clock_gettime(2)).
package enum Clock {
  /// The wall clock, in milliseconds since 1970. An administrator may set the clock.
  package static var realtimeMilliseconds: Int64 { nanoseconds(CLOCK_REALTIME) / 1_000_000 }

  /// The monotonic clock, in microseconds since some point in the past. The clock never steps back, and
  /// `MONOTONIC_USEC=` requires it (sd_notify(3)).
  package static var monotonicMicroseconds: UInt64 { UInt64(clamping: nanoseconds(CLOCK_MONOTONIC) / 1_000) }

  /// Whether a time server or another source keeps the kernel's clock synchronized, as that source told the kernel.
  ///
  /// Nil if the process may not ask the kernel (adjtimex(2), STA_UNSYNC).
  package static var isSynchronized: Bool? {
    let answer = clinux_is_clock_synchronized()
    return answer < 0 ? nil : answer == 1
  }

  private static func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    // clock_gettime() fails only for a clock that does not exist.
    _ = unsafe clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
