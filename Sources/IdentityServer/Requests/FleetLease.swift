import IdentityCore
import IdentityWire

/// The right of one connection at a time to have the fleet open.
///
/// The connection has the lease while its first `fleet open` is carried out, so that no other connection gets it
/// meanwhile, and keeps the lease only if that request succeeds. The lease ends with the connection.
final class FleetLease {
  private var holder: Connection?
  /// Whether the first request of the holder is still carried out.
  private var isPending = false
  /// The words of the holder for `status`.
  private(set) var words: [Event.Attribute] = []
  private var stateWord: Text?
  /// The time of the end of the last connection with the broker.
  private var contact: Timestamp?

  /// The state of the fleet for `status`, in the word of the holder.
  var saidState: Text { holder == nil || isPending ? none : stateWord ?? open }
  private let none = Text(FleetState.none.rawValue)
  private let open = Text(FleetState.open.rawValue)
  /// The state of the fleet; nil if the holder's word is none of the known ones.
  var state: FleetState? { FleetState(rawValue: "\(saidState)") }
  /// The last time when the holder or an earlier one was connected with the broker, which is now while the holder is;
  /// nil if none was since the start.
  var lastContact: Timestamp? { state?.isConnected == true ? Writer.now : contact }

  /// Takes the lease for a connection, unless the connection has it.
  ///
  /// - Throws: `conflict` while another connection has it.
  func take(for connection: Connection) throws(Refusal) {
    guard holder !== connection else { return }
    guard holder == nil else {
      throw .conflict("another connection has the fleet open; stop the other program first")
    }
    holder = connection
    isPending = true
    connection.hasFleetOpen = true
  }

  /// Notes the end of the first request of the holder. Ignored for any other request.
  func settle(_ connection: Connection, isOpen: Bool) {
    guard isPending, holder === connection else { return }
    isPending = false
    if !isOpen { end(of: connection) }
  }

  /// Takes over words of the holder for `status`, in place of its earlier ones.
  ///
  /// - Throws: `conflict` if the connection does not have the fleet open.
  func say(_ state: Text?, _ words: [Event.Attribute], by connection: Connection) throws(Refusal) {
    guard holder === connection, !isPending else { throw .conflict("this connection does not have the fleet open") }
    contact = lastContact
    stateWord = state
    self.words = words
  }

  /// Ends the lease if the connection has it.
  func end(of connection: Connection) {
    guard holder === connection else { return }
    connection.hasFleetOpen = false
    contact = lastContact
    holder = nil
    isPending = false
    (stateWord, words) = (nil, [])
  }
}
