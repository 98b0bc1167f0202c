#include "CLinux.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// From libunistring's unistr.h and uninorm.h. The program loads the library at run time and does not link to it: few
// passphrases need it, and its name differs from release to release.
static const uint8_t *(*first_invalid)(const uint8_t *text, size_t length);
static uint8_t *(*normalize)(const void *form, const uint8_t *text, size_t length, uint8_t *result, size_t *room);
static const void *composed;

static void load_libunistring(void) {
    void *library = dlopen("libunistring.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) library = dlopen("libunistring.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    composed = dlsym(library, "uninorm_nfc");
    *(void **)&first_invalid = dlsym(library, "u8_check");
    if (composed != NULL && first_invalid != NULL) *(void **)&normalize = dlsym(library, "u8_normalize");
}

ssize_t clinux_compose(const uint8_t *text, size_t length, uint8_t *result, size_t room) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_libunistring);
    if (normalize == NULL) {
        errno = ENOSYS;
        return -1;
    }
    // In other bytes than UTF-8, the library would replace each invalid one by the same character.
    if (first_invalid(text, length) != NULL) {
        errno = EILSEQ;
        return -1;
    }
    size_t count = room;
    uint8_t *found = normalize(composed, text, length, result, &count);
    if (found == NULL) return -1;
    if (found == result) return (ssize_t)count;
    explicit_bzero(found, count);
    free(found);
    errno = ERANGE;
    return -1;
}
