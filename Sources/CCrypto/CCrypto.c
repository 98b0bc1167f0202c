#include "CCrypto.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// The declarations of OpenSSL 3 that are used here: openssl/crypto.h, openssl/evp.h, openssl/ec.h, openssl/bn.h and
// openssl/x509.h. The library keeps them within a major version (openssl-migration_guide(7)), and its name has that one.
typedef struct {
    const char *key;
    unsigned int type;
    void *data;
    size_t size;
    size_t returned;
} parameter;

static struct {
    int (*init)(uint64_t options, const void *settings);
    int (*secure_heap)(size_t size, size_t smallest);
    void *(*new_context)(void);
    void (*free_context)(void *context);
    void *(*load_provider)(void *context, const char *name);
    int (*unload_provider)(void *provider);
    const void *(*provider_of)(const void *key);
    void *(*make_key)(void *context, const char *queries, const char *type, ...);
    void *(*read_key)(int type, void **key, const uint8_t **stored, long length, void *context, const char *queries);
    void *(*new_decoder)(
        void **key, const char *form, const char *structure, const char *type, int selection, void *context,
        const char *queries);
    int (*decode)(void *decoder, const uint8_t **stored, size_t *length);
    void (*free_decoder)(void *decoder);
    void *(*to_pkcs8)(const void *key);
    int (*write_pkcs8)(const void *pkcs8, uint8_t **stored);
    int (*write_key)(const void *key, uint8_t **stored);
    void (*free_pkcs8)(void *pkcs8);
    void (*free_key)(void *key);
    int (*get_name)(const void *key, const char *name, char *text, size_t room, size_t *length);
    int (*get_bytes)(const void *key, const char *name, uint8_t *bytes, size_t room, size_t *length);
    void *(*new_key_context)(void *context, const char *name, const char *queries);
    void (*free_key_context)(void *context);
    int (*begin_from_data)(void *context);
    int (*from_data)(void *context, void **key, int selection, parameter *parameters);
    void *(*new_signing)(void *context, void *key, const char *queries);
    int (*begin_sign)(void *signing);
    int (*sign)(void *signing, uint8_t *signature, size_t *room, const uint8_t *digest, size_t length);
    void *(*find_digest)(void *context, const char *name, const char *queries);
    int (*digest)(
        const void *bytes, size_t length, uint8_t *digest, unsigned int *size, const void *type, void *engine);
    void *(*new_digest)(void);
    void (*free_digest)(void *digest);
    int (*begin_verify)(
        void *digest, void **key_context, const char *name, void *context, const char *queries, void *key,
        const parameter *parameters);
    int (*verify)(void *digest, const uint8_t *signature, size_t count, const uint8_t *message, size_t length);
    void *(*new_pair)(void);
    void *(*read_pair)(void **pair, const uint8_t **der, long length);
    int (*write_pair)(const void *pair, uint8_t **der);
    int (*set_pair)(void *pair, void *r, void *s);
    const void *(*pair_r)(const void *pair);
    const void *(*pair_s)(const void *pair);
    void (*free_pair)(void *pair);
    void *(*read_number)(const uint8_t *bytes, int length, void *number);
    int (*write_number)(const void *number, uint8_t *bytes, int length);
    void (*free_number)(void *number);
    void (*clear_errors)(void);
} openssl;

static void *context;
// The algorithm is kept, because finding it again takes longer than a digest.
static void *sha256;
// A context with the provider of the TPM alone: no algorithm of the process can take the place of one in the TPM, and no
// other use of libcrypto waits for the TPM.
static void *tpm2_context, *tpm2_provider;
// The provider has one connection to the TPM for all keys, without a lock of its own (tpm2-openssl 1.1).
static pthread_mutex_t tpm2_lock = PTHREAD_MUTEX_INITIALIZER;

// OPENSSL_INIT_NO_LOAD_CONFIG and OPENSSL_INIT_NO_ATEXIT: no configuration of the machine, and nothing at the exit.
static const uint64_t init_options = 0x00000080 | 0x00080000;
// Room for some 40 keys. It counts for RLIMIT_MEMLOCK.
static const size_t secure_heap = 16384, secure_smallest = 32;
static const int ec_key = 408; // EVP_PKEY_EC
static const int key_pair = 0x01 | 0x02 | 0x84; // EVP_PKEY_KEYPAIR
static const int public_key = 0x02 | 0x84; // EVP_PKEY_PUBLIC_KEY: the point and the parameters of the curve
// The length of an ECDSA signature on P-256 in DER is at most 72.
enum { der_length = 80 };

static void load(void) {
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    const struct {
        void *place;
        const char *name;
    } functions[] = {
        {&openssl.init, "OPENSSL_init_crypto"},
        {&openssl.secure_heap, "CRYPTO_secure_malloc_init"},
        {&openssl.new_context, "OSSL_LIB_CTX_new"},
        {&openssl.free_context, "OSSL_LIB_CTX_free"},
        {&openssl.load_provider, "OSSL_PROVIDER_load"},
        {&openssl.unload_provider, "OSSL_PROVIDER_unload"},
        {&openssl.provider_of, "EVP_PKEY_get0_provider"},
        {&openssl.make_key, "EVP_PKEY_Q_keygen"},
        {&openssl.read_key, "d2i_PrivateKey_ex"},
        {&openssl.new_decoder, "OSSL_DECODER_CTX_new_for_pkey"},
        {&openssl.decode, "OSSL_DECODER_from_data"},
        {&openssl.free_decoder, "OSSL_DECODER_CTX_free"},
        {&openssl.to_pkcs8, "EVP_PKEY2PKCS8"},
        {&openssl.write_pkcs8, "i2d_PKCS8_PRIV_KEY_INFO"},
        {&openssl.write_key, "i2d_PrivateKey"},
        {&openssl.free_pkcs8, "PKCS8_PRIV_KEY_INFO_free"},
        {&openssl.free_key, "EVP_PKEY_free"},
        {&openssl.get_name, "EVP_PKEY_get_utf8_string_param"},
        {&openssl.get_bytes, "EVP_PKEY_get_octet_string_param"},
        {&openssl.new_key_context, "EVP_PKEY_CTX_new_from_name"},
        {&openssl.free_key_context, "EVP_PKEY_CTX_free"},
        {&openssl.begin_from_data, "EVP_PKEY_fromdata_init"},
        {&openssl.from_data, "EVP_PKEY_fromdata"},
        {&openssl.new_signing, "EVP_PKEY_CTX_new_from_pkey"},
        {&openssl.begin_sign, "EVP_PKEY_sign_init"},
        {&openssl.sign, "EVP_PKEY_sign"},
        {&openssl.find_digest, "EVP_MD_fetch"},
        {&openssl.digest, "EVP_Digest"},
        {&openssl.new_digest, "EVP_MD_CTX_new"},
        {&openssl.free_digest, "EVP_MD_CTX_free"},
        {&openssl.begin_verify, "EVP_DigestVerifyInit_ex"},
        {&openssl.verify, "EVP_DigestVerify"},
        {&openssl.new_pair, "ECDSA_SIG_new"},
        {&openssl.read_pair, "d2i_ECDSA_SIG"},
        {&openssl.write_pair, "i2d_ECDSA_SIG"},
        {&openssl.set_pair, "ECDSA_SIG_set0"},
        {&openssl.pair_r, "ECDSA_SIG_get0_r"},
        {&openssl.pair_s, "ECDSA_SIG_get0_s"},
        {&openssl.free_pair, "ECDSA_SIG_free"},
        {&openssl.read_number, "BN_bin2bn"},
        {&openssl.write_number, "BN_bn2binpad"},
        {&openssl.free_number, "BN_free"},
        {&openssl.clear_errors, "ERR_clear_error"},
    };
    for (size_t index = 0; index < sizeof functions / sizeof *functions; index++) {
        void *found = dlsym(library, functions[index].name);
        if (found == NULL) return;
        memcpy(functions[index].place, &found, sizeof found);
    }
    if (openssl.init(init_options, NULL) != 1) return;
    // 2 means that the memory cannot be locked, as in a container that may lock none. It is left out of core dumps all the
    // same. libsodium's memory, in which all other keys are, is not locked there either.
    if (openssl.secure_heap(secure_heap, secure_smallest) < 1) return;
    void *made = openssl.new_context();
    sha256 = made == NULL ? NULL : openssl.find_digest(made, "SHA2-256", NULL);
    if (sha256 == NULL)
        openssl.free_context(made);
    else
        context = made;
}

int ccrypto_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return context != NULL;
}

int ccrypto_reach_tpm2(void) {
    // Without this name, the provider would try one after the other, and at last a TCP port that any user can open.
    if (!ccrypto_load() || getenv("TPM2OPENSSL_TCTI") == NULL) return 0;
    pthread_mutex_lock(&tpm2_lock);
    if (tpm2_context == NULL) {
        void *made = openssl.new_context();
        tpm2_provider = made == NULL ? NULL : openssl.load_provider(made, "tpm2");
        if (tpm2_provider == NULL)
            openssl.free_context(made);
        else
            tpm2_context = made;
        openssl.clear_errors();
    }
    int is_reached = tpm2_context != NULL;
    pthread_mutex_unlock(&tpm2_lock);
    return is_reached;
}

void ccrypto_leave_tpm2(void) {
    pthread_mutex_lock(&tpm2_lock);
    if (tpm2_context != NULL) {
        openssl.unload_provider(tpm2_provider);
        openssl.free_context(tpm2_context);
        openssl.clear_errors();
    }
    tpm2_context = tpm2_provider = NULL;
    pthread_mutex_unlock(&tpm2_lock);
}

struct ccrypto_key {
    ccrypto_place place;
    void *key;
    // Kept, because finding the algorithms again takes longer than a signature.
    void *signing;
    pthread_mutex_t lock;
};

static pthread_mutex_t *lock_of(ccrypto_key *key) { return key->place == CCRYPTO_TPM2 ? &tpm2_lock : &key->lock; }

static void release(ccrypto_key *key) {
    openssl.free_key_context(key->signing);
    openssl.free_key(key->key);
    pthread_mutex_destroy(&key->lock);
    free(key);
}

/// Adopts a key of the library, with the lock of the TPM if it is there.
static ccrypto_key *adopt(ccrypto_place place, void *home, void *key) {
    char group[32];
    ccrypto_key *made = NULL;
    // Code outside of providers reads a key of the process in the TPM's context, too.
    int is_here = key != NULL && (place != CCRYPTO_TPM2 || openssl.provider_of(key) == tpm2_provider);
    if (is_here && openssl.get_name(key, "group", group, sizeof group, NULL) == 1 && strcmp(group, "prime256v1") == 0)
        made = calloc(1, sizeof *made);
    if (made != NULL) {
        made->place = place;
        made->key = key;
        made->signing = openssl.new_signing(home, key, NULL);
        pthread_mutex_init(&made->lock, NULL);
        if (made->signing == NULL || openssl.begin_sign(made->signing) != 1) {
            release(made);
            made = NULL;
        }
    } else {
        openssl.free_key(key);
    }
    openssl.clear_errors();
    return made;
}

/// Reads a key of the TPM. d2i_PrivateKey_ex() looks for two structures alone, of which none is that of a TPM's key in
/// tpm2-openssl 1.3.
static void *decode(void *home, const uint8_t *stored, size_t length) {
    void *key = NULL;
    void *decoder = openssl.new_decoder(&key, "DER", NULL, "EC", key_pair, home, NULL);
    if (decoder != NULL) (void)openssl.decode(decoder, &stored, &length);
    openssl.free_decoder(decoder);
    return key;
}

/// Reads a stored key, or draws one if there is none.
static ccrypto_key *obtain(ccrypto_place place, const uint8_t *stored, size_t length) {
    if (length > CCRYPTO_PRIVATE_KEY || !(place == CCRYPTO_TPM2 ? ccrypto_reach_tpm2() : ccrypto_load())) return NULL;
    if (place == CCRYPTO_TPM2) pthread_mutex_lock(&tpm2_lock);
    void *home = place == CCRYPTO_TPM2 ? tpm2_context : context;
    ccrypto_key *key = NULL;
    // NULL would be the library's own context, with keys of the process.
    if (home != NULL && stored == NULL)
        key = adopt(place, home, openssl.make_key(home, NULL, "EC", "prime256v1"));
    else if (home != NULL && place == CCRYPTO_TPM2)
        key = adopt(place, home, decode(home, stored, length));
    else if (home != NULL)
        key = adopt(place, home, openssl.read_key(ec_key, NULL, &stored, (long)length, home, NULL));
    if (place == CCRYPTO_TPM2) pthread_mutex_unlock(&tpm2_lock);
    return key;
}

ccrypto_key *ccrypto_make_key(ccrypto_place place) { return obtain(place, NULL, 0); }

ccrypto_key *ccrypto_read_key(ccrypto_place place, const uint8_t *stored, size_t length) {
    return stored == NULL ? NULL : obtain(place, stored, length);
}

size_t ccrypto_write_key(ccrypto_key *key, uint8_t *stored) {
    pthread_mutex_lock(lock_of(key));
    // A key of the TPM is no PKCS #8.
    void *pkcs8 = key->place == CCRYPTO_TPM2 ? NULL : openssl.to_pkcs8(key->key);
    int length = 0;
    if (key->place == CCRYPTO_TPM2)
        length = openssl.write_key(key->key, NULL);
    else if (pkcs8 != NULL)
        length = openssl.write_pkcs8(pkcs8, NULL);
    if (length < 0 || length > CCRYPTO_PRIVATE_KEY) length = 0;
    if (length > 0 && pkcs8 != NULL) openssl.write_pkcs8(pkcs8, &stored);
    if (length > 0 && pkcs8 == NULL) length = openssl.write_key(key->key, &stored);
    openssl.free_pkcs8(pkcs8);
    openssl.clear_errors();
    pthread_mutex_unlock(lock_of(key));
    return length > 0 ? (size_t)length : 0;
}

int ccrypto_public_key(ccrypto_key *key, uint8_t point[CCRYPTO_POINT]) {
    // The form of an uncompressed point: the byte 4, then both coordinates (SEC 1, section 2.3.3).
    uint8_t bytes[1 + CCRYPTO_POINT];
    size_t length = 0;
    pthread_mutex_lock(lock_of(key));
    int is_read = openssl.get_bytes(key->key, "pub", bytes, sizeof bytes, &length) == 1 && length == sizeof bytes
        && bytes[0] == 4;
    openssl.clear_errors();
    pthread_mutex_unlock(lock_of(key));
    if (is_read) memcpy(point, bytes + 1, CCRYPTO_POINT);
    return is_read;
}

void ccrypto_free_key(ccrypto_key *key) {
    int is_in_tpm2 = key->place == CCRYPTO_TPM2;
    if (is_in_tpm2) pthread_mutex_lock(&tpm2_lock);
    release(key);
    if (is_in_tpm2) pthread_mutex_unlock(&tpm2_lock);
}

int ccrypto_sign(
    ccrypto_key *key, const uint8_t *message, size_t length, uint8_t signature[CCRYPTO_SIGNATURE]
) {
    uint8_t digest[32], der[der_length];
    const uint8_t *next = der;
    size_t count = sizeof der;
    pthread_mutex_lock(lock_of(key));
    int is_signed = openssl.digest(message, length, digest, NULL, sha256, NULL) == 1
        && openssl.sign(key->signing, der, &count, digest, sizeof digest) == 1;
    pthread_mutex_unlock(lock_of(key));
    void *pair = is_signed ? openssl.read_pair(NULL, &next, (long)count) : NULL;
    is_signed = pair != NULL && openssl.write_number(openssl.pair_r(pair), signature, 32) == 32
        && openssl.write_number(openssl.pair_s(pair), signature + 32, 32) == 32;
    openssl.free_pair(pair);
    openssl.clear_errors();
    return is_signed;
}

static void *key_of_point(const uint8_t point[CCRYPTO_POINT]) {
    uint8_t bytes[1 + CCRYPTO_POINT] = {4};
    memcpy(bytes + 1, point, CCRYPTO_POINT);
    // OSSL_PARAM_UTF8_STRING is 4, OSSL_PARAM_OCTET_STRING 5; OSSL_PARAM_UNMODIFIED is the largest number.
    parameter parameters[] = {
        {"group", 4, "prime256v1", strlen("prime256v1"), (size_t)-1},
        {"pub", 5, bytes, sizeof bytes, (size_t)-1},
        {NULL, 0, NULL, 0, 0},
    };
    void *key = NULL, *making = openssl.new_key_context(context, "EC", NULL);
    // Refuses a point that is not on the curve.
    if (making != NULL && openssl.begin_from_data(making) == 1)
        (void)openssl.from_data(making, &key, public_key, parameters);
    openssl.free_key_context(making);
    return key;
}

/// Writes a signature in DER. Returns its length, or 0.
static size_t encode(const uint8_t signature[CCRYPTO_SIGNATURE], uint8_t der[der_length]) {
    void *pair = openssl.new_pair();
    void *r = openssl.read_number(signature, 32, NULL), *s = openssl.read_number(signature + 32, 32, NULL);
    size_t count = 0;
    if (pair != NULL && r != NULL && s != NULL && openssl.set_pair(pair, r, s) == 1) {
        int length = openssl.write_pair(pair, NULL);
        if (length > 0 && length <= der_length) count = (size_t)openssl.write_pair(pair, &der);
    } else {
        openssl.free_number(r);
        openssl.free_number(s);
    }
    openssl.free_pair(pair);
    return count;
}

int ccrypto_verify(
    const uint8_t point[CCRYPTO_POINT], const uint8_t *message, size_t length,
    const uint8_t signature[CCRYPTO_SIGNATURE]
) {
    if (!ccrypto_load()) return -1;
    uint8_t der[der_length];
    size_t count = encode(signature, der);
    void *key = count == 0 ? NULL : key_of_point(point), *digest = openssl.new_digest();
    int is_valid = key != NULL && digest != NULL
        && openssl.begin_verify(digest, NULL, "SHA2-256", context, NULL, key, NULL) == 1
        && openssl.verify(digest, der, count, message, length) == 1;
    openssl.free_digest(digest);
    openssl.free_key(key);
    openssl.clear_errors();
    return is_valid;
}
