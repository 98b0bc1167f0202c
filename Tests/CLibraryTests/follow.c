/* Follows events in a loop of poll(2), and prints what identity_process() yields, one line each.
 *   follow SINCE [EPOCH [TOPIC...]]     until standard input ends */
#define _GNU_SOURCE
#include "expect.h"
#include <identity.h>
#include <poll.h>

static void print(const struct identity *daemon, int kind) {
    const char *name, *value;
    switch (kind) {
        case IDENTITY_ROW: printf("row %s", identity_word(daemon, 0)); break;
        case IDENTITY_OK: printf("ok %lld %s", (long long)identity_sequence(daemon), identity_epoch(daemon)); break;
        case IDENTITY_GAP: printf("gap %s", identity_code(daemon)); break;
        case IDENTITY_LOST: printf("lost"); break;
        case IDENTITY_EVENT:
            printf("event %lld %s", (long long)identity_sequence(daemon), identity_word(daemon, 0));
            for (size_t index = 0; identity_field_at(daemon, index, &name, &value); index++)
                if (!strcmp(name, "account")) printf(" %s", value);
            break;
        default: printf("error %d %s", -kind, identity_code(daemon) ? identity_code(daemon) : "");
    }
    printf("\n");
    fflush(stdout);
}

int main(int count, char **words) {
    struct identity *daemon;
    EXPECT(count > 1 && identity_new(&daemon, NULL) == 0);
    identity_set_timeout(daemon, 5000);
    size_t topics = count > 3 ? (size_t)count - 3 : 0;
    const char *epoch = count > 2 && *words[2] ? words[2] : NULL;
    const char *const *names = (const char *const *)words + 3;
    EXPECT(identity_follow(daemon, topics ? names : NULL, topics, atoll(words[1]), epoch) == 0);
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("ping")) < 0 && identity_add(daemon, NULL, "ping") < 0);
    struct pollfd pollers[] = {{identity_fd(daemon), 0, 0}, {0, POLLIN, 0}};
    while (!pollers[1].revents) {
        int kind = identity_process(daemon);
        if (kind != IDENTITY_NOTHING) print(daemon, kind);
        pollers[0].events = (short)identity_events(daemon);
        EXPECT(identity_fd(daemon) == pollers[0].fd && poll(pollers, 2, identity_timeout(daemon)) >= 0);
    }
    identity_free(daemon);
    return 0;
}
