extension UUID {
  /// Whether firmware reports this value for want of a UUID, so that many machines have it.
  ///
  /// The SMBIOS specification (DSP0134, section 7.2.1) has two values for that: all zeros and all ones. Vendors ship
  /// other ones, which people found on machines of different makes.
  package var isFirmwareFiller: Bool {
    let bytes = bytes
    // One byte or four bytes over and over: FEFEFEFE-…, DEADBEEF-….
    return bytes.indices.allSatisfy { bytes[$0] == bytes[$0 % 4] } || Self.firmwareFillers.contains(self)
  }

  private static let firmwareFillers: Set<UUID> = Set(
    [
      // American Megatrends, on boards of ASRock, ASUS, MSI and others: issue 2417 of oshi/oshi, rpc-go of Intel AMT.
      "03000200-0400-0500-0006-000700080009",
      // The same sixteen bytes before SMBIOS 2.6, which changed the order of the first fields: FOG Project, lshw.
      "00020003-0004-0005-0006-000700080009",
      // Another one of this firmware, in public lists beside the first.
      "03D40274-0435-05DC-8506-010700080009",
      // The number of each byte.
      "00010203-0405-0607-0809-0A0B0C0D0E0F",
      // The list of hosts that FOG Project does not take for the same.
      "12345678-1234-5678-90AB-CDDEEFAABBCC",
    ].compactMap { UUID(Text($0)) })
}
