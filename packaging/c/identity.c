/* Client library of identityd; see identity.h and identityd(3). SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "internal.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void add(struct identity *handle, const char *name, size_t length, const char *value) {
    struct request *request = &handle->request;
    bool is_verb = length == 0 && request->operands++ == 0;
    bool subscribes = is_verb && (!strcasecmp(value, "subscribe") || !strcasecmp(value, "unsubscribe"));
    if (!request->fault) request->fault = handle->follows ? EBUSY : subscribes ? EINVAL : 0;
    if (!request->fault) put_word(request, name, length, value);
}

int identity_add(struct identity *handle, const char *name, const char *value) {
    size_t length = name ? name_length(name, '\0') : 0;
    if (name && length == 0 && !handle->request.fault) handle->request.fault = EINVAL;
    add(handle, name, length, value);
    return result_of(handle, handle->request.fault);
}

int identity_add_data(struct identity *handle, const char *name, const void *bytes, size_t length) {
    int result = identity_add(handle, name ? name : "", "");
    if (result < 0 || length == 0) return result;
    put_data(&handle->request, bytes, length);
    return result_of(handle, handle->request.fault);
}

static void add_words(struct identity *handle, const char *const *words, size_t count) {
    for (size_t place = 0; place < count; place++) {
        size_t name = name_length(words[place], '=');
        add(handle, words[place], name, words[place] + (name ? name + 1 : 0));
    }
}

int identity_send(struct identity *handle, const char *const *words, size_t count) {
    char byte;
    if (IDENTITY_LINE_BYTES - used(&handle->output) < IDENTITY_REQUEST_BYTES) return result_of(handle, EAGAIN);
    add_words(handle, words, count);
    /* A connection takes no request if it has ended meanwhile, or if the daemon says why it is about to end it. */
    if (handle->socket >= 0 && !handle->follows && handle->pending == 0 &&
            (used(&handle->input) > handle->line || recv(handle->socket, &byte, 1, MSG_PEEK) >= 0 || errno != EAGAIN))
        disconnect(handle);
    return queue(handle);
}

int identity_ask(struct identity *handle, const char *const *words, size_t count) {
    add_words(handle, words, count); /* before the replies, because the words may be those of the last line */
    while (!handle->follows && handle->pending > 0) identity_next(handle);
    int result = identity_send(handle, NULL, 0);
    return result < 0 ? result : identity_next(handle);
}

int identity_follow(
        struct identity *handle, const char *const *topics, size_t count, int64_t since, const char *epoch) {
    if (handle->follows || handle->pending > 0 || handle->request.words > 0) return result_of(handle, EBUSY);
    if (since < IDENTITY_SINCE_VALUES || (epoch && strlen(epoch) >= EPOCH_BYTES)) return result_of(handle, EINVAL);
    drop(&handle->topics, used(&handle->topics));
    for (size_t place = 0; place < count; place++) {
        size_t length = strlen(topics[place]) + 1;
        if (length > IDENTITY_REQUEST_BYTES - handle->topics.end) return result_of(handle, EMSGSIZE);
        append(&handle->topics, topics[place], length);
    }
    disconnect(handle);
    strcpy(handle->epoch, epoch ? epoch : "");
    handle->last = since;
    handle->wants_values = since == IDENTITY_SINCE_VALUES;
    handle->follows = handle->again = true;
    return result_of(handle, 0);
}

int identity_new(struct identity **result, const char *path) {
    /* Not with calloc(), which can return memory that it has to clear. Core files do not get the secrets. */
    struct identity *handle = mmap(NULL, sizeof *handle, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *result = NULL;
    if (handle == MAP_FAILED) return -errno;
    madvise(handle, sizeof *handle, MADV_DONTDUMP);
    if (!path) path = secure_getenv("IDENTITYD_SOCKET");
    if (!path) path = "/run/identityd/identityd.sock";
    handle->address.sun_family = AF_UNIX;
    handle->process = getpid();
    handle->socket = -1;
    handle->last = IDENTITY_SINCE_NOW;
    handle->timeout = 60000;
    handle->pause = FIRST_PAUSE;
    handle->text = "";
    handle->waiter = epoll_create1(EPOLL_CLOEXEC);
    int error = handle->waiter < 0 ? errno : strlen(path) >= sizeof handle->address.sun_path ? ENAMETOOLONG : 0;
    if (error) return identity_free(handle), -error;
    strcpy(handle->address.sun_path, path);
    *result = handle;
    return 0;
}

void identity_free(struct identity *handle) {
    if (!handle) return;
    forget_line(handle);
    disconnect(handle);
    forget_request(handle);
    if (handle->waiter >= 0) close(handle->waiter);
    munmap(handle, sizeof *handle);
}

void identity_set_timeout(struct identity *handle, int milliseconds) {
    handle->timeout = milliseconds;
    restart_deadline(handle);
}

int identity_fd(const struct identity *handle) { return handle->waiter; }
int identity_events(const struct identity *handle) { return (void)handle, POLLIN; }
int64_t identity_sequence(const struct identity *handle) { return handle->last; }
const char *identity_epoch(const struct identity *handle) { return *handle->epoch ? handle->epoch : NULL; }
const char *identity_code(const struct identity *handle) { return handle->code; }
const char *identity_text(const struct identity *handle) { return handle->text; }

const char *identity_line(const struct identity *handle) {
    return handle->line > 0 ? handle->input.bytes + handle->input.start : "";
}

static const char *text_at(const struct words *words, size_t index) {
    const char *text = words->buffer.bytes;
    while (index-- > 0) text += strlen(text) + 1;
    return text;
}

const char *identity_word(const struct identity *handle, size_t index) {
    return index < handle->words.positional ? text_at(&handle->words, index) : NULL;
}

int identity_field_at(const struct identity *handle, size_t index, const char **name, const char **value) {
    if (index >= handle->words.fields) return 0;
    *name = text_at(&handle->words, handle->words.positional + 2 * index);
    *value = *name + strlen(*name) + 1;
    return 1;
}

const char *identity_field(const struct identity *handle, const char *name) {
    const char *found, *value;
    for (size_t index = 0; identity_field_at(handle, index, &found, &value); index++)
        if (!strcmp(found, name)) return value;
    return NULL;
}

int identity_data(const struct identity *handle, const char *name, void *bytes, size_t size) {
    const char *text = identity_field(handle, name);
    return text ? decode_data(text, bytes, size) : -ENOENT;
}
