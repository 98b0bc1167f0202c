import CLinux
import Glibc

/// A POSIX thread that runs one function. The owner calls ``join()`` to wait for the thread, or
/// ``detach()`` to abandon it.
package struct Thread: ~Copyable {
  private let handle: pthread_t

  /// Starts the thread, which owns the captures of `body` from now on.
  package init(named name: String, _ body: sending @escaping () -> Void) throws(SystemError) {
    var handle = pthread_t()
    let box = unsafe Unmanaged.passRetained(Body(body))
    let code = unsafe pthread_create(
      &handle, nil,
      { argument in
        guard let argument = unsafe argument else { return nil }
        unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, box.toOpaque())
    guard code == 0 else {
      unsafe box.release()
      throw SystemError(call: "pthread_create", code: code)
    }
    // The name shows in ps and top. The kernel keeps 15 bytes.
    _ = unsafe clinux_name_thread(handle, String(name.prefix(15)))
    self.handle = handle
  }

  /// Waits until the function has returned.
  package consuming func join() {
    _ = pthread_join(handle, nil)
  }

  /// Detaches the thread, which frees its own memory when it ends.
  package consuming func detach() {
    _ = pthread_detach(handle)
  }

  private final class Body {
    let run: () -> Void
    init(_ run: @escaping () -> Void) { self.run = run }
  }
}
