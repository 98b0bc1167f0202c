/* Client library of identityd; see identityd(3). SPDX-License-Identifier: MIT
 *
 * A handle is one connection, for one thread at a time. Functions that return an int return a negative errno value
 * after a failure. Texts belong to the handle, and are valid until the next call with it that can change it. */
#ifndef IDENTITY_H
#define IDENTITY_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct identity; /* a handle */

#define IDENTITY_REQUEST_BYTES 98304 /* the largest request, its line end included */
#define IDENTITY_REQUEST_WORDS 256
#define IDENTITY_LINE_BYTES 524288 /* the largest line of a reply; the most bytes of requests that wait to be sent */
#define IDENTITY_SINCE_NOW (-1)    /* follow events that happen from now on */
#define IDENTITY_SINCE_VALUES (-2) /* get rows with all current values, and follow the events after them */

/* The kinds of lines. */
enum {
    IDENTITY_NOTHING = 0, /* no line yet, only from identity_process() */
    IDENTITY_ROW = 1,     /* a row of a reply, or a current value */
    IDENTITY_OK = 2,      /* the end of a reply, or the position after which events follow */
    IDENTITY_EVENT = 3,   /* an event */
    IDENTITY_GAP = 4,     /* events are gone for good; rows with all current values follow, and then IDENTITY_OK */
    IDENTITY_LOST = 5     /* the daemon is gone; IDENTITY_OK tells when events follow again */
};

/* Creates a handle, which connects at its first request. path: NULL for $IDENTITYD_SOCKET, else the system's socket.
 * Returns 0, -ENAMETOOLONG, or an error of mmap(2) or epoll_create1(2). */
int identity_new(struct identity **handle, const char *path);
/* Closes, wipes and frees a handle, which may be NULL. */
void identity_free(struct identity *handle);
/* Limits the wait for a reply, and for each of its lines. Milliseconds, 60,000 at first; negative for no limit. */
void identity_set_timeout(struct identity *handle, int milliseconds);

/* Adds a word to the next request: an attribute, or with name NULL a positional word. A failure stays until the
 * request is sent. Returns 0, -EINVAL (a wrong name, or subscribe), -E2BIG, -EMSGSIZE, or -EBUSY (the handle follows
 * events). */
int identity_add(struct identity *handle, const char *name, const char *value);
/* Adds an attribute with the bytes in Base64. */
int identity_add_data(struct identity *handle, const char *name, const void *bytes, size_t length);
/* Queues the next request after these words, which may be none: a word that begins with NAME= is an attribute. Returns
 * 0, an error of identity_add(), -EINVAL (no word), or -EAGAIN (too much waits to be sent). */
int identity_send(struct identity *handle, const char *const *words, size_t count);
/* Sends the next request, and waits for the first line of its reply. Skips what is left of earlier replies. Returns
 * IDENTITY_ROW, IDENTITY_OK, or an error of identity_send() or identity_process(). */
int identity_ask(struct identity *handle, const char *const *words, size_t count);
/* Waits for the next line. Returns its kind, an error of identity_process(), or -ENODATA (none is awaited). */
int identity_next(struct identity *handle);
#ifndef __cplusplus /* which has no compound literals */
#define IDENTITY_WORDS(...) \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)
#endif

/* Follows events from now on, instead of requests. topics: none for all. since: a number of identity_sequence(), with
 * its epoch or NULL, or IDENTITY_SINCE_…. Returns 0, -EINVAL, -EMSGSIZE, or -EBUSY (requests were sent or added). */
int identity_follow(struct identity *handle, const char *const *topics, size_t count, int64_t since, const char *epoch);
/* The number of the last event or of the position; negative while unknown. */
int64_t identity_sequence(const struct identity *handle);
/* The epoch of the number; NULL while unknown. */
const char *identity_epoch(const struct identity *handle);

/* The descriptor to wait for, always the same, and the poll(2) events to wait for. */
int identity_fd(const struct identity *handle);
int identity_events(const struct identity *handle);
/* Milliseconds until identity_process() is due even if the descriptor is not ready: 0 for now, -1 for never. */
int identity_timeout(const struct identity *handle);
/* Connects, sends and receives as far as possible without a wait. Returns the kind of the next line, or an error: if
 * identity_code() is not NULL, the daemon refused a request. Else the connection ended, with all requests that have no
 * reply: -ENOENT, -ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -EBADMSG (no line of the protocol), -EMSGSIZE (too long)… */
int identity_process(struct identity *handle);

/* The code of the refusal, such as "not-found"; NULL if the last result was none. */
const char *identity_code(const struct identity *handle);
/* The reason of the last error, for people. */
const char *identity_text(const struct identity *handle);
/* The last line as received, without its end; "" if there is none. */
const char *identity_line(const struct identity *handle);
/* A positional word of the last line after *, OK, or EVENT and its number; NULL if there are not so many. */
const char *identity_word(const struct identity *handle, size_t index);
/* The value of a field of the last line; NULL if there is none. */
const char *identity_field(const struct identity *handle, const char *name);
/* The field at an index. Returns 1, or 0 if there are not so many. */
int identity_field_at(const struct identity *handle, size_t index, const char **name, const char **value);
/* The bytes of a field in Base64, or with bytes NULL only their number. Returns the number, -ENOENT, -ENOSPC or
 * -EBADMSG. */
int identity_data(const struct identity *handle, const char *name, void *bytes, size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
