import CSystemd

/// Reads the next value of a message, of a basic type (sd_bus_message_read_basic(3)). A text or a descriptor belongs to the
/// message.
func readValue<Value: BitwiseCopyable>(
  _ type: Unicode.Scalar, of message: OpaquePointer, into value: inout Value
) throws(SystemdError) {
  try checked("sd_bus_message_read_basic", unsafe sd_bus_message_read_basic(message, CChar(type.value), &value))
}
