/// The reason why a connection with a broker ended or was never made, in words that name the setting to look at.
struct BrokerTrouble: CustomStringConvertible {
  private static let early =
    "nobody listens at the port in Broker=, or the broker ended the connection without an answer, as at a port for mqtt:// "
    + "that is asked with mqtts://, or the reverse"
  /// Parts of the texts of libmosquitto and OpenSSL, which name the step that failed, and what they mean to an admin.
  private static let meanings: [(sign: String, meaning: String)] = [
    (
      "certificate verify failed",
      "the broker's certificate is not accepted: its authority is not in CAFile=, it is for another host name than that in "
        + "Broker=, or its time is not now"
    ),
    ("host name verification failed", "the broker's certificate is for another host name than that in Broker="),
    ("certificate required", "the broker wants a certificate of this device: set Certificate= and Key="),
    ("alert unknown ca", "the broker does not know the authority of the certificate in Certificate="),
    ("alert bad certificate", "the broker does not accept the certificate in Certificate="),
    ("alert certificate expired", "the time of the certificate in Certificate= is over"),
    ("unexpected eof", "the broker ended the connection without a word of TLS, as at a port for mqtt:// in Broker="),
    ("wrong version number", "the broker does not answer in TLS, as at a port for mqtt:// in Broker="),
    ("Protocol error", "the broker ended the handshake, as one that wants a certificate in Certificate= and Key="),
    ("Connection reset", early), ("connection was lost", early), ("closed the connection", early),
    ("Lookup error", "the host name in Broker= is not known, or no name server answers"),
  ]

  /// The text of a library.
  let text: String
  /// Whether the broker had accepted the connection.
  let wasConnected: Bool

  var description: String {
    let meaning = Self.meanings.first { text.utf8.hasPart($0.sign.utf8) }?.meaning
    // A broker that ends a connection later has reasons of its own.
    guard !wasConnected, let meaning else { return text }
    return "\(meaning) (\(text))"
  }
}

extension String.UTF8View {
  /// Returns whether these bytes are somewhere in the text.
  fileprivate func hasPart(_ part: Self) -> Bool { indices.contains { self[$0...].starts(with: part) } }
}
