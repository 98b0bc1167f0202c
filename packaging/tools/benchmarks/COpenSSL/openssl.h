// TLS for simulated devices: ssl(7).
#include <openssl/err.h>
#include <openssl/ssl.h>
