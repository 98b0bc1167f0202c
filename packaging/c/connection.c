/* The connection, and the lines that come over it; see identityd-protocol(7). SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "internal.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RECEIVED_BYTES = 16384 };

static const struct { const char *code; int error; } refusals[] = {
    {"syntax", EINVAL}, {"too-long", EMSGSIZE}, {"unknown-verb", EOPNOTSUPP}, {"bad-argument", EINVAL},
    {"invalid-uuid", EINVAL}, {"denied", EACCES}, {"not-found", ENOENT}, {"exists", EEXIST}, {"conflict", EBUSY},
    {"limit", EDQUOT}, {"gone", ESTALE}, {"busy", EAGAIN}, {"no-space", ENOSPC}, {"read-only", EROFS},
    {"unavailable", EAGAIN}, {"internal", EREMOTEIO}, {"unknown", EIO},
};

static int64_t now(void) { /* microseconds */
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

void restart_deadline(struct identity *handle) {
    handle->deadline = handle->pending > 0 && handle->timeout >= 0 ? now() + handle->timeout * INT64_C(1000) : 0;
}

/* Records an error, or 0, and returns it as the functions of the library do. */
int result_of(struct identity *handle, int error) {
    handle->code = NULL;
    bool is_absent = error == ENOENT || error == ECONNREFUSED;
    handle->text = error == 0            ? ""
                   : error == EBADMSG    ? "the daemon sent a line that violates the protocol"
                   : error == ECONNRESET ? "the connection ended before the reply was complete"
                   : error == ETIMEDOUT  ? "the reply did not come in time"
                   : is_absent           ? "no identityd listens at the socket; start identityd.socket"
                                         : "the error number tells why; see identityd(3)";
    return -error;
}

void forget_request(struct identity *handle) {
    drop(&handle->request.buffer, used(&handle->request.buffer));
    handle->request.words = handle->request.operands = 0;
    handle->request.fault = 0;
}

/* Queues the request that was put together, and begins the next one. */
int queue(struct identity *handle) {
    struct request *request = &handle->request;
    int fault = request->fault ? request->fault : request->words == 0 ? EINVAL : 0;
    if (IDENTITY_LINE_BYTES - handle->output.end < IDENTITY_REQUEST_BYTES) compact(&handle->output);
    if (!fault) {
        append(&handle->output, request->buffer.bytes, request->buffer.end);
        append(&handle->output, "\n", 1);
        handle->again = true;
        if (handle->pending++ == 0) restart_deadline(handle);
    }
    forget_request(handle);
    return result_of(handle, fault);
}

/* Another process can hold the socket after fork(2), so that close(2) alone would not remove it from the set. The set
 * is that of the process that made the handle, so a child leaves it alone. */
static void close_socket(struct identity *handle) {
    if (handle->socket >= 0 && handle->process == getpid())
        epoll_ctl(handle->waiter, EPOLL_CTL_DEL, handle->socket, NULL);
    if (handle->socket >= 0) close(handle->socket);
    handle->socket = -1;
}

void disconnect(struct identity *handle) {
    close_socket(handle);
    drop(&handle->input, used(&handle->input));
    drop(&handle->output, used(&handle->output));
    handle->line = handle->scanned = handle->pending = 0;
    handle->blocked = handle->again = false;
    handle->deadline = handle->retry = 0;
}

/* Sets the moment of the next attempt to connect. A part is as random as the present, so that many clients spread. */
static void pause_attempts(struct identity *handle) {
    int64_t present = now();
    handle->retry = present + handle->pause / 2 + present % (handle->pause / 2);
    handle->pause = handle->pause * 2 < LAST_PAUSE ? handle->pause * 2 : LAST_PAUSE;
}

/* Ends a connection that is of no more use. A follower that has followed connects again, and tells a loss once. */
static int broken(struct identity *handle, int error) {
    disconnect(handle);
    int result = result_of(handle, error);
    if (!handle->follows) return result;
    pause_attempts(handle);
    if (error == EBADMSG || error == EMSGSIZE || (!handle->resumes && !handle->tells_loss)) return result;
    if (!handle->tells_loss) return IDENTITY_NOTHING;
    handle->tells_loss = false;
    return IDENTITY_LOST;
}

static int subscribe(struct identity *handle) {
    struct request *request = &handle->request;
    char number[24];
    forget_request(handle); /* that of a caller who sends none to a follower */
    put_word(request, NULL, 0, "subscribe");
    for (size_t place = 0; place < handle->topics.end; place += strlen(handle->topics.bytes + place) + 1)
        put_word(request, NULL, 0, handle->topics.bytes + place);
    snprintf(number, sizeof number, "%lld", (long long)handle->last);
    if (handle->last >= 0) put_word(request, "since", 5, number);
    if (handle->last >= 0 && *handle->epoch) put_word(request, "epoch", 5, handle->epoch);
    if (handle->wants_values) put_word(request, "snapshot", 8, "yes");
    return queue(handle);
}

/* Returns -EAGAIN if the queue of the daemon's socket is full. */
static int connect_socket(struct identity *handle) {
    struct epoll_event event = {.events = EPOLLIN};
    handle->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (handle->socket < 0 || epoll_ctl(handle->waiter, EPOLL_CTL_ADD, handle->socket, &event) < 0) return -errno;
    return connect(handle->socket, (struct sockaddr *)&handle->address, sizeof handle->address) < 0 ? -errno : 0;
}

static void send_output(struct identity *handle) {
    struct buffer *output = &handle->output;
    bool was_blocked = handle->blocked;
    handle->blocked = false;
    while (used(output) > 0 && !handle->blocked) {
        ssize_t count = send(handle->socket, output->bytes + output->start, used(output), MSG_NOSIGNAL);
        if (count >= 0) drop(output, (size_t)count);
        else if (errno == EAGAIN) handle->blocked = true;
        else if (errno != EINTR) drop(output, used(output)); /* a refusal can still be read */
    }
    struct epoll_event event = {.events = handle->blocked ? EPOLLIN | EPOLLOUT : EPOLLIN};
    if (handle->blocked != was_blocked) epoll_ctl(handle->waiter, EPOLL_CTL_MOD, handle->socket, &event);
}

/* Returns 1 for bytes, 0 for none yet, -ECONNRESET at the end. */
static int receive(struct identity *handle) {
    struct buffer *input = &handle->input;
    ssize_t count;
    if (IDENTITY_LINE_BYTES - input->end < RECEIVED_BYTES) compact(input);
    size_t room = IDENTITY_LINE_BYTES - input->end;
    do count = recv(handle->socket, input->bytes + input->end, room < RECEIVED_BYTES ? room : RECEIVED_BYTES, 0);
    while (count < 0 && errno == EINTR);
    if (count > 0) input->end += (size_t)count;
    return count > 0 ? 1 : count < 0 && errno == EAGAIN ? 0 : -ECONNRESET;
}

static int begin_following(struct identity *handle) {
    const char *epoch = identity_field(handle, "epoch");
    int64_t number = decimal(identity_word(handle, 0));
    if (number < 0 || (epoch && strlen(epoch) >= EPOCH_BYTES)) return broken(handle, EBADMSG);
    if (handle->last < 0) handle->last = number; /* after since=, only events move the position */
    strcpy(handle->epoch, epoch ? epoch : "");
    handle->resumes = true;
    handle->wants_values = false;
    return IDENTITY_OK;
}

static int refused(struct identity *handle, char *text) {
    char *end = strchr(text, ' '), *code = handle->words.buffer.bytes;
    int error = EREMOTEIO;
    if (!end || end == text) return broken(handle, EBADMSG);
    append(&handle->words.buffer, text, strlen(text) + 1);
    code[end - text] = '\0';
    for (size_t row = 0; row < sizeof refusals / sizeof *refusals; row++)
        if (!strcmp(refusals[row].code, code)) error = refusals[row].error;
    bool is_gone = !strcmp(code, "gone") || (handle->resumes && !strcmp(code, "bad-argument"));
    bool ends = !strcmp(code, "busy") || !strcmp(code, "too-long"); /* the daemon closes the connection */
    bool passes = handle->follows && handle->resumes && !strcmp(code, "unavailable");
    int result = -error;
    if (handle->pending == 0 || ends || passes) result = broken(handle, error);
    else if (handle->follows && is_gone && handle->last >= 0) {
        handle->pending = 0;
        handle->last = IDENTITY_SINCE_VALUES;
        *handle->epoch = '\0';
        handle->wants_values = true;
        subscribe(handle);
        result = IDENTITY_GAP;
    } else if (handle->follows) broken(handle, error);
    else handle->pending--, restart_deadline(handle);
    if (result == IDENTITY_NOTHING) return result;
    handle->code = code;
    handle->text = code + (end - text) + 1;
    return result;
}

static int take_event(struct identity *handle, int64_t number) {
    const char *topic = identity_word(handle, 0);
    bool is_lag = topic && !strcmp(topic, "lag");
    int64_t moved = is_lag ? decimal(identity_field(handle, "from")) : number;
    if (!handle->follows || handle->pending > 0 || number < 0 || !topic || moved < 0) return broken(handle, EBADMSG);
    bool is_new = moved > handle->last;
    if (is_new) handle->last = moved;
    if (is_new && !is_lag) handle->pause = FIRST_PAUSE;
    if (is_lag) disconnect(handle), pause_attempts(handle); /* a new connection brings the missing events first */
    return is_new && !is_lag ? IDENTITY_EVENT : IDENTITY_NOTHING;
}

/* Interprets the last line. Returns its kind, IDENTITY_NOTHING to skip it, or an error. */
static int interpret(struct identity *handle) {
    char *line = handle->input.bytes + handle->input.start;
    line[handle->line - 1] = '\0';
    if (strlen(line) + 1 != handle->line) return broken(handle, EBADMSG); /* a NUL */
    if (!strncmp(line, "ERR ", 4)) return refused(handle, line + 4);
    size_t prefix = *line == '*' ? 1 : !strncmp(line, "OK", 2) ? 2 : !strncmp(line, "EVENT ", 6) ? 5 : 0;
    char *words = line + prefix;
    if (prefix == 0 || (*words && *words != ' ')) return broken(handle, EBADMSG);
    int64_t number = prefix == 5 ? decimal(++words) : 0;
    if (prefix == 5) words += strcspn(words, " ");
    if (!decode_words(&handle->words, words)) return broken(handle, EBADMSG);
    if (prefix == 5) return take_event(handle, number);
    if (handle->pending == 0) return broken(handle, EBADMSG);
    if (prefix == 2) handle->pending--;
    restart_deadline(handle);
    handle->tells_loss = handle->follows;
    return prefix == 1 ? IDENTITY_ROW : handle->follows ? begin_following(handle) : IDENTITY_OK;
}

void forget_line(struct identity *handle) {
    drop(&handle->input, handle->line);
    drop(&handle->words.buffer, used(&handle->words.buffer));
    if (handle->line > 0) handle->scanned = 0;
    handle->line = handle->words.positional = handle->words.fields = 0;
}

/* Takes the next line that concerns the caller. */
static int take_line(struct identity *handle) {
    for (;;) {
        const char *start = handle->input.bytes + handle->input.start;
        const char *end = memchr(start + handle->scanned, '\n', used(&handle->input) - handle->scanned);
        handle->scanned = used(&handle->input);
        if (!end) return handle->scanned < IDENTITY_LINE_BYTES ? IDENTITY_NOTHING : broken(handle, EMSGSIZE);
        handle->line = (size_t)(end - start) + 1;
        int result = interpret(handle);
        if (result != IDENTITY_NOTHING) return result;
        forget_line(handle);
    }
}

static bool wants_connection(const struct identity *handle) { return handle->follows || used(&handle->output) > 0; }

int identity_process(struct identity *handle) {
    int result = IDENTITY_NOTHING, received = 0;
    forget_line(handle);
    result_of(handle, 0);
    handle->again = false;
    if (handle->socket < 0 && wants_connection(handle) && now() >= handle->retry) {
        result = connect_socket(handle);
        if (result == 0 && handle->follows) result = subscribe(handle);
        if (result < 0 && (result != -EAGAIN || handle->follows)) return broken(handle, -result);
        if (result < 0) result = IDENTITY_NOTHING, close_socket(handle), pause_attempts(handle);
    }
    if (handle->socket >= 0) {
        send_output(handle);
        result = take_line(handle);
        if (result == IDENTITY_NOTHING && handle->socket >= 0) received = receive(handle);
        if (received > 0) result = take_line(handle);
        if (received < 0 && !handle->follows && handle->pending == 0) disconnect(handle);
        else if (received < 0) result = broken(handle, -received);
        handle->again = result != IDENTITY_NOTHING || received > 0;
    }
    bool is_late = handle->deadline && now() >= handle->deadline;
    return result == IDENTITY_NOTHING && is_late ? broken(handle, ETIMEDOUT) : result;
}

int identity_timeout(const struct identity *handle) {
    int64_t moment = handle->socket < 0 && wants_connection(handle) ? handle->retry : INT64_MAX;
    if (handle->deadline && handle->deadline < moment) moment = handle->deadline;
    if (handle->again) return 0;
    return moment == INT64_MAX ? -1 : moment < now() ? 0 : (int)((moment - now()) / 1000 + 1);
}

int identity_next(struct identity *handle) {
    restart_deadline(handle);
    for (;;) {
        int result = identity_process(handle);
        struct pollfd poller = {handle->waiter, POLLIN, 0};
        if (result != IDENTITY_NOTHING) return result;
        if (!handle->follows && handle->pending == 0) return result_of(handle, ENODATA);
        if (poll(&poller, 1, identity_timeout(handle)) < 0 && errno != EINTR) return broken(handle, errno);
    }
}
