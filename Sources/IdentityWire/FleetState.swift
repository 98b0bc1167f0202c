/// The state of the fleet's service, as the row ``StatusRow/fleet`` and the metric ``Metric/fleetState`` show it.
package enum FleetState: String, CaseIterable, Sendable {
  /// No service has the fleet open.
  case none
  /// A service has the fleet open, and has not told its state.
  case open
  /// This device is in no account.
  case noAccount = "no-account"
  /// The keys of the account cannot be read.
  case noKeys = "no-keys"
  /// The service waits until it connects again.
  case waiting
  case connecting
  /// The service reads the broker's retained messages.
  case reading
  /// This device enters the account.
  case joining
  /// The list of the account's devices is kept up to date.
  case live
  /// The list is kept up to date, and the other devices do not get the present record of this one.
  case unpublished
  /// The broker refuses the user or the password.
  case refused
  /// The service is about to stop.
  case ended

  /// Whether the service is connected with the broker.
  package var isConnected: Bool {
    switch self {
    case .reading, .joining, .live, .unpublished: true
    case .none, .open, .noAccount, .noKeys, .waiting, .connecting, .refused, .ended: false
    }
  }
}
