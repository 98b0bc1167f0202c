import CLinux
import Glibc

/// The system's clocks (clock_gettime(2)).
package enum Clock {
  /// The wall clock: milliseconds since 1970, which an administrator may set.
  package static var realtimeMilliseconds: Int64 { nanoseconds(CLOCK_REALTIME) / 1_000_000 }

  /// Microseconds since some point in the past; never steps back. What `MONOTONIC_USEC=` wants (sd_notify(3)).
  package static var monotonicMicroseconds: UInt64 { UInt64(clamping: nanoseconds(CLOCK_MONOTONIC) / 1_000) }

  /// Whether the kernel's clock is kept by a time server or another source, as whoever keeps it has told the kernel; nil
  /// where it may not be asked (adjtimex(2), STA_UNSYNC).
  package static var isSynchronized: Bool? {
    let answer = clinux_is_clock_synchronized()
    return answer < 0 ? nil : answer == 1
  }

  private static func nanoseconds(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    // Fails only for a clock that does not exist.
    _ = unsafe clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
