// Signatures with ECDSA on the curve P-256 and SHA-256 (ES256 of RFC 7518, section 3.4), by OpenSSL's libcrypto.
//
// The library is loaded by the first call and not linked to: a program that never signs does not pay for it. It runs in
// library contexts of its own, which read no openssl.cnf (OSSL_LIB_CTX(3)). All functions may be called by any thread.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// The length of a public key: both coordinates of the point, 32 bytes each.
#define CCRYPTO_POINT 64
/// The length of a signature: r and s, 32 bytes each.
#define CCRYPTO_SIGNATURE 64
/// The room that a private key takes at most in its stored form.
#define CCRYPTO_PRIVATE_KEY 512

/// The places in which keys sign.
typedef enum {
    /// The process.
    CCRYPTO_SOFTWARE = 0,
    /// A TPM 2.0, which alone has the private key, by the provider of the package tpm2-openssl.
    CCRYPTO_TPM2 = 1,
} ccrypto_place;

/// Loads the library. Returns 1, or 0 if it is not installed, too old, or without memory for private keys.
int ccrypto_load(void);
/// Reaches the TPM that TPM2OPENSSL_TCTI in the environment names, unless it is reached. Returns 1; or 0 without this
/// variable, without the provider, or if the TPM does not answer. A TPM that hangs makes this and each function for its
/// keys wait.
int ccrypto_reach_tpm2(void);
/// Lets go of the TPM, as after a fault, which makes each later call fail. All keys in it must have been freed.
void ccrypto_leave_tpm2(void);

/// A private key. One of the process is in memory that is left out of core dumps, wiped on release, and locked as far as
/// RLIMIT_MEMLOCK allows (OPENSSL_secure_malloc(3)). One of a TPM takes one of its three or more slots.
typedef struct ccrypto_key ccrypto_key;

/// Draws a key. Returns NULL if the library or the TPM refuses, or if the TPM is not reached.
ccrypto_key *ccrypto_make_key(ccrypto_place place);
/// Reads a key from its stored form: PKCS #8 in DER, or the TSS2 PRIVATE KEY in DER that only the TPM of its origin reads.
/// Returns NULL for anything but a private key on P-256 of this place.
ccrypto_key *ccrypto_read_key(ccrypto_place place, const uint8_t *stored, size_t length);
/// Writes the stored form of a key into CCRYPTO_PRIVATE_KEY bytes, which the caller must wipe. Returns its length, or 0.
size_t ccrypto_write_key(ccrypto_key *key, uint8_t *stored);
/// Writes the public key that belongs to a private key. Returns 1, or 0.
int ccrypto_public_key(ccrypto_key *key, uint8_t point[CCRYPTO_POINT]);
/// Wipes and releases a key.
void ccrypto_free_key(ccrypto_key *key);

/// Signs a message. Returns 1, or 0.
int ccrypto_sign(
    ccrypto_key *key, const uint8_t *message, size_t length, uint8_t signature[CCRYPTO_SIGNATURE]);
/// Verifies a signature. Returns 1 if it is valid, 0 if it is not or `point` is no point of the curve, or -1 if the library
/// is not available.
int ccrypto_verify(
    const uint8_t point[CCRYPTO_POINT], const uint8_t *message, size_t length,
    const uint8_t signature[CCRYPTO_SIGNATURE]);
