/* The parts of the library that its files share. SPDX-License-Identifier: MIT */
#include "identity.h"
#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

enum { FIRST_PAUSE = 20000, LAST_PAUSE = 1000000, EPOCH_BYTES = 256 };

/* The bytes in use of a buffer. All others are zero, because they may have been a secret. */
struct buffer { size_t start, end; char bytes[IDENTITY_LINE_BYTES]; };
/* A request under construction. fault: why it cannot be sent, or 0. */
struct request { struct buffer buffer; size_t words, operands; int fault; };
/* Decoded texts, each with a NUL: positional words, and then fields, each with its name before its value. */
struct words { struct buffer buffer; size_t positional, fields; };

struct identity {
    struct sockaddr_un address;
    int socket, waiter, timeout; /* the connection, or -1; the epoll set that holds it; milliseconds */
    pid_t process; /* that made the handle */
    struct request request;
    struct words words; /* of the last line */
    struct buffer output, input, topics;
    size_t line, scanned, pending; /* of input: the last line, what has no line end; requests without a reply */
    int64_t deadline, retry, pause; /* moments of the next line and the next connection, 0 for none; microseconds */
    bool again, blocked; /* identity_process() may have more to do; the socket takes no output now */
    bool follows, resumes, tells_loss, wants_values;
    int64_t last; /* the position in the events */
    char epoch[EPOCH_BYTES];
    const char *code, *text;
};

/* words.c: buffers and words, without a connection */
static inline size_t used(const struct buffer *buffer) { return buffer->end - buffer->start; }
void drop(struct buffer *buffer, size_t count);
void compact(struct buffer *buffer);
void append(struct buffer *buffer, const char *bytes, size_t length);
size_t name_length(const char *text, char end);
void put_word(struct request *request, const char *name, size_t length, const char *value);
void put_data(struct request *request, const unsigned char *data, size_t length);
bool decode_words(struct words *words, const char *text);
int decode_data(const char *text, unsigned char *data, size_t size);
int64_t decimal(const char *text);

/* connection.c */
int result_of(struct identity *handle, int error);
void restart_deadline(struct identity *handle);
void forget_request(struct identity *handle);
int queue(struct identity *handle);
void disconnect(struct identity *handle);
void forget_line(struct identity *handle);
