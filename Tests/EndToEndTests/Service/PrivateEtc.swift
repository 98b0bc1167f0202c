import Foundation
import TestSupport

extension DaemonUnderTest {
  /// Returns a wrapper that gives the daemon a private /etc, which a script changes.
  func privateEtc(_ script: String = "true") -> [String] {
    let upper = folder.appending(path: "upper").path
    // On a tmpfs: the upper folder of an overlay cannot be on an overlay, and the folder for temporary files may be.
    let mount =
      "mkdir -p \(upper); mount -t tmpfs tmpfs \(upper); mkdir \(upper)/1 \(upper)/2; "
      + "mount -t overlay overlay -o lowerdir=/etc,upperdir=\(upper)/1,workdir=\(upper)/2 /etc && { \(script); } && exec \"$@\""
    return ["unshare", "--mount", "sh", "-c", mount, "-"]
  }
}
