import CSodium

extension BackupKey {
  /// Seals a few bytes: a random nonce, then XSalsa20-Poly1305 (crypto_secretbox).
  package func seal(_ content: borrowing Span<UInt8>) -> [UInt8] {
    var nonce = [UInt8](repeating: 0, count: Int(crypto_secretbox_NONCEBYTES))
    unsafe randombytes_buf(&nonce, nonce.count)
    var sealed = [UInt8](repeating: 0, count: content.count + Int(crypto_secretbox_MACBYTES))
    unsafe bytes.withBytes { key in
      unsafe content.withUnsafeBufferPointer { content in
        // Always returns 0.
        _ = unsafe crypto_secretbox_easy(&sealed, content.baseAddress, UInt64(content.count), nonce, key)
      }
    }
    return nonce + sealed
  }

  /// Opens sealed bytes; nil if another key sealed them, or if they were altered. The caller wipes the result.
  package func open(_ sealed: [UInt8]) -> [UInt8]? {
    let nonce = Array(sealed.prefix(Int(crypto_secretbox_NONCEBYTES)))
    let box = Array(sealed.dropFirst(nonce.count))
    let length = box.count - Int(crypto_secretbox_MACBYTES)
    guard length >= 0 else { return nil }
    var content = [UInt8](repeating: 0, count: length)
    let code = unsafe bytes.withBytes { key in
      unsafe crypto_secretbox_open_easy(&content, box, UInt64(box.count), nonce, key)
    }
    return code == 0 ? content : nil
  }
}
