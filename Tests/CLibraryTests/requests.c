/* Requests and their replies, with the real daemon at $IDENTITYD_SOCKET. */
#define _GNU_SOURCE
#include "expect.h"
#include <errno.h>
#include <fcntl.h>
#include <identity.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Words with every character that needs care, as labels of items and back. */
static const char *const texts[] = {
    "two words", "a\"b\\c", "é ü 😀", "*", "=", "_x=1", "a=b", "%s%n", "-N", "'", "\t\n\r\b\f/", "\x01\x1f\x7f",
    "\xc2\x80\xc2\x9f", "\xe2\x80\xa8", " ", "\\u0041",
};

static void ask_in_turn(struct identity *daemon) {
    EXPECT_TEXT(identity_line(daemon), "");
    EXPECT(identity_word(daemon, 0) == NULL && identity_field(daemon, "level") == NULL);
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("get", "device")) == IDENTITY_OK);
    EXPECT(strlen(identity_word(daemon, 0)) == 36 && identity_word(daemon, 1) == NULL);
    EXPECT_TEXT(identity_field(daemon, "level"), "device");
    EXPECT(identity_field(daemon, "leve") == NULL);
    const char *name, *value;
    size_t fields = 0;
    for (; identity_field_at(daemon, fields, &name, &value); fields++) EXPECT_TEXT(identity_field(daemon, name), value);
    EXPECT(fields >= 2);
    EXPECT(!strncmp(identity_line(daemon), "OK ", 3) && strstr(identity_line(daemon), " level=device "));
    EXPECT(identity_code(daemon) == NULL && !*identity_text(daemon));

    /* The word of the last line is an operand of the next request. */
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("check", identity_word(daemon, 0))) == IDENTITY_OK);
    EXPECT_TEXT(identity_word(daemon, 0), "valid");
    EXPECT(identity_next(daemon) == -ENODATA);

    EXPECT(identity_ask(daemon, IDENTITY_WORDS("prove", "https://vault.example.com", "nonce=a b")) == IDENTITY_OK);
    EXPECT(!strncmp(identity_word(daemon, 0), "eyJ", 3) && identity_field(daemon, "expires") != NULL);

    EXPECT(identity_ask(daemon, IDENTITY_WORDS("get", "uuid", "count=10000")) == IDENTITY_ROW);
    size_t rows = 1;
    int kind;
    while ((kind = identity_next(daemon)) == IDENTITY_ROW) rows++;
    EXPECT(kind == IDENTITY_OK && rows == 10000);
    EXPECT_TEXT(identity_word(daemon, 0), "10000");

    /* The rest of a reply is skipped. */
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("get", "uuid", "count=1000")) == IDENTITY_ROW);
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("ping")) == IDENTITY_OK && identity_word(daemon, 0) == NULL);

    EXPECT(identity_ask(daemon, IDENTITY_WORDS("item", "read", "service=none", "account=none")) == -ENOENT);
    EXPECT_TEXT(identity_code(daemon), "not-found");
    EXPECT(strlen(identity_text(daemon)) > 10);
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("get", "frob")) == -EINVAL);
    EXPECT_TEXT(identity_code(daemon), "bad-argument");
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("frob")) == -EOPNOTSUPP);
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("ping")) == IDENTITY_OK && identity_code(daemon) == NULL);

    /* The daemon closes the connection after quit: the next request connects again. */
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("quit")) == IDENTITY_OK);
    usleep(50000);
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("ping")) == IDENTITY_OK);
}

static void pass_every_word(struct identity *daemon) {
    for (size_t place = 0; place < sizeof texts / sizeof *texts; place++) {
        char label[64];
        snprintf(label, sizeof label, "label=%s", texts[place]);
        const char *put[] = {"item", "put", "service=words", "account=a", "data=eA==", label};
        EXPECT(identity_ask(daemon, put, 6) == IDENTITY_OK);
        EXPECT(identity_ask(daemon, IDENTITY_WORDS("item", "find", "service=words")) == IDENTITY_ROW);
        EXPECT_TEXT(identity_field(daemon, "label"), texts[place]);
        /* Also as an operand, which a word with this look cannot be. */
        EXPECT(identity_add(daemon, NULL, "token") == 0 && identity_add(daemon, NULL, "put") == 0);
        EXPECT(identity_add(daemon, NULL, "fcm") == 0 && identity_add(daemon, NULL, texts[place]) == 0);
        EXPECT(identity_add(daemon, "topic", texts[place]) == 0);
        EXPECT(identity_ask(daemon, NULL, 0) == IDENTITY_OK);
        EXPECT(identity_ask(daemon, IDENTITY_WORDS("token", "get", "fcm")) == IDENTITY_OK);
        EXPECT_TEXT(identity_word(daemon, 0), texts[place]);
        EXPECT_TEXT(identity_field(daemon, "topic"), texts[place]);
    }
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("check", "")) == IDENTITY_OK);
    EXPECT_TEXT(identity_word(daemon, 0), "invalid");
}

static void keep_secrets(struct identity *daemon) {
    static unsigned char secret[65536], read[65536];
    for (size_t place = 0; place < sizeof secret; place++) secret[place] = (unsigned char)(place * 7 + place / 256);
    const size_t lengths[] = {0, 1, 2, 3, 4, 5, 255, 65535, 65536};
    for (size_t place = 0; place < sizeof lengths / sizeof *lengths; place++) {
        size_t length = lengths[place];
        EXPECT(identity_add_data(daemon, "data", secret, length) == 0);
        EXPECT(identity_ask(daemon, IDENTITY_WORDS("item", "put", "service=secrets", "account=a")) == IDENTITY_OK);
        EXPECT(identity_ask(daemon, IDENTITY_WORDS("item", "read", "service=secrets", "account=a")) == IDENTITY_OK);
        EXPECT(identity_data(daemon, "data", NULL, 0) == (int)length);
        if (length > 0) EXPECT(identity_data(daemon, "data", read, length - 1) == -ENOSPC);
        memset(read, 0xaa, sizeof read);
        EXPECT(identity_data(daemon, "data", read, sizeof read) == (int)length && !memcmp(secret, read, length));
        EXPECT(length == sizeof read || read[length] == 0xaa);
        EXPECT(identity_data(daemon, "label", read, sizeof read) == -ENOENT);
        EXPECT(identity_data(daemon, "created", read, sizeof read) == -EBADMSG);
    }
}

static void refuse_at_once(struct identity *daemon) {
    static char large[IDENTITY_REQUEST_BYTES + 1], words[IDENTITY_REQUEST_WORDS + 1][16];
    const char *many[IDENTITY_REQUEST_WORDS + 1];
    EXPECT(identity_ask(daemon, NULL, 0) == -EINVAL);
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("Subscribe")) == -EINVAL);
    EXPECT(identity_send(daemon, IDENTITY_WORDS("a=b", "unsubscribe")) == -EINVAL);
    EXPECT(identity_add(daemon, "no name", "x") == -EINVAL && identity_add(daemon, "1", "x") == -EINVAL);
    EXPECT(identity_add_data(daemon, "", "x", 1) == -EINVAL && identity_add_data(daemon, NULL, "x", 1) == -EINVAL);
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("ping")) == -EINVAL);
    EXPECT(identity_code(daemon) == NULL && *identity_text(daemon));
    /* A refused request leaves nothing behind. */
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("ping")) == IDENTITY_OK);

    /* "check" "…" LF has eleven bytes more than its operand. The daemon takes the longest line. */
    memset(large, 'x', sizeof large - 1);
    large[IDENTITY_REQUEST_BYTES - 11] = '\0';
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("check", large)) == IDENTITY_OK);
    large[IDENTITY_REQUEST_BYTES - 11] = 'x';
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("check", large)) == -EMSGSIZE && identity_code(daemon) == NULL);
    EXPECT(identity_add_data(daemon, "data", large, 75000) == -EMSGSIZE);
    EXPECT(identity_send(daemon, NULL, 0) == -EMSGSIZE);

    for (size_t place = 0; place <= IDENTITY_REQUEST_WORDS; place++) {
        snprintf(words[place], sizeof *words, place ? "a%zu=1" : "ping", place);
        many[place] = words[place];
    }
    EXPECT(identity_ask(daemon, many, IDENTITY_REQUEST_WORDS) == -EINVAL);
    EXPECT_TEXT(identity_code(daemon), "bad-argument");
    EXPECT(identity_ask(daemon, many, IDENTITY_REQUEST_WORDS + 1) == -E2BIG && identity_code(daemon) == NULL);
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("check", "\xff")) == -EINVAL);
    EXPECT_TEXT(identity_code(daemon), "syntax");
}

/* Many requests at once in a loop of poll(2). Their replies take more than the daemon keeps for a client. */
static void ask_in_loop(struct identity *daemon) {
    size_t sent = 0, answered = 0, rows = 0, refused = 0;
    while (answered < 300) {
        while (sent < 300) {
            int result = sent % 3 == 0 ? identity_send(daemon, IDENTITY_WORDS("get", "uuid", "count=100"))
                                  : sent % 3 == 1 ? identity_send(daemon, IDENTITY_WORDS("frob")) : 0;
            if (sent % 3 == 2) {
                static char large[60000];
                memset(large, 'x', sizeof large - 1);
                result = identity_send(daemon, IDENTITY_WORDS("check", large));
            }
            if (result == -EAGAIN) break;
            EXPECT(result == 0);
            sent++;
        }
        int kind = identity_process(daemon);
        if (kind == IDENTITY_ROW) rows++;
        else if (kind == IDENTITY_OK) answered++;
        else if (kind < 0) {
            EXPECT_TEXT(identity_code(daemon), "unknown-verb");
            answered++, refused++;
        } else {
            struct pollfd poller = {identity_fd(daemon), (short)identity_events(daemon), 0};
            EXPECT(poll(&poller, 1, identity_timeout(daemon)) >= 0 || errno == EINTR);
        }
    }
    EXPECT(rows == 10000 && refused == 100);
    EXPECT(identity_process(daemon) == IDENTITY_NOTHING && identity_timeout(daemon) == -1);
}

static void close_on_exec(struct identity *daemon) {
    EXPECT(fcntl(identity_fd(daemon), F_GETFD) == FD_CLOEXEC);
    for (int number = 3; number < 64; number++) {
        int flags = fcntl(number, F_GETFD);
        EXPECT(flags < 0 || flags == FD_CLOEXEC);
    }
}

static void ignore_signal(int number) { (void)number; }

/* Interrupts system calls a thousand times a second, without a restart. */
static void interrupt_calls(void) {
    struct sigaction action = {.sa_handler = ignore_signal};
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    EXPECT(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

/* The size of the program in pages. */
static long size_in_pages(void) {
    long size = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file && fscanf(file, "%ld", &size) == 1);
    fclose(file);
    return size;
}

/* The sanitizer does not count mappings and descriptors. */
static void leave_nothing(void) {
    struct identity *handle;
    long before = 0;
    int descriptor = -1;
    for (int round = 0; round < 200; round++) {
        EXPECT(identity_new(&handle, NULL) == 0);
        EXPECT(identity_ask(handle, IDENTITY_WORDS("get", "device")) == IDENTITY_OK);
        EXPECT(round == 0 || identity_fd(handle) == descriptor);
        descriptor = identity_fd(handle);
        identity_free(handle);
        if (round == 100) before = size_in_pages();
    }
    EXPECT(size_in_pages() < before + 1000); /* two handles */
}

/* A child that frees the handle takes nothing from its parent, whose loop still wakes up. */
static void free_in_child(struct identity *daemon) {
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("check", "x")) == IDENTITY_OK);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) identity_free(daemon), _exit(0);
    int status = 1;
    pid_t ended;
    do ended = waitpid(child, &status, 0); while (ended < 0 && errno == EINTR);
    EXPECT(ended == child && status == 0);
    EXPECT(identity_send(daemon, IDENTITY_WORDS("check", "x")) == 0);
    int kind;
    while ((kind = identity_process(daemon)) == IDENTITY_NOTHING) {
        struct pollfd poller = {identity_fd(daemon), (short)identity_events(daemon), 0};
        int ready;
        do ready = poll(&poller, 1, 30000); while (ready < 0 && errno == EINTR);
        EXPECT(ready == 1);
    }
    EXPECT(kind == IDENTITY_OK);
}

int main(void) {
    struct identity *daemon, *other;
    char path[200];
    memset(path, 'x', sizeof path);
    path[199] = '\0';
    EXPECT(identity_new(&daemon, path) == -ENAMETOOLONG && daemon == NULL);
    identity_free(NULL);
    EXPECT(identity_new(&other, "/nonexistent/socket") == 0);
    EXPECT(identity_ask(other, IDENTITY_WORDS("ping")) == -ENOENT);
    EXPECT(identity_code(other) == NULL && *identity_text(other));
    identity_free(other);
    EXPECT(identity_new(&other, NULL) == 0 && identity_next(other) == -ENODATA);
    identity_free(other);

    EXPECT(identity_new(&daemon, NULL) == 0);
    int descriptor = identity_fd(daemon);
    EXPECT(identity_timeout(daemon) == -1 && identity_process(daemon) == IDENTITY_NOTHING);
    EXPECT(identity_sequence(daemon) < 0 && identity_epoch(daemon) == NULL);
    identity_set_timeout(daemon, 30000);
    ask_in_turn(daemon);
    interrupt_calls();
    pass_every_word(daemon);
    keep_secrets(daemon);
    refuse_at_once(daemon);
    ask_in_loop(daemon);
    close_on_exec(daemon);
    free_in_child(daemon);
    EXPECT(identity_fd(daemon) == descriptor);
    /* A handle with requests in every state is freed. */
    EXPECT(identity_send(daemon, IDENTITY_WORDS("get", "uuid", "count=10")) == 0);
    EXPECT(identity_follow(daemon, NULL, 0, IDENTITY_SINCE_NOW, NULL) == -EBUSY);
    EXPECT(identity_add_data(daemon, "data", "secret", 6) == 0);
    identity_free(daemon);
    leave_nothing();
    return 0;
}
