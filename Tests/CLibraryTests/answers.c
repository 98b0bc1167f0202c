/* Prints what identity_next() yields for two requests to a server that may send anything, until both are over.
 *   answers MILLISECONDS          the limit for a reply
 *   answers MILLISECONDS COUNT    queues so many large requests together instead */
#define _GNU_SOURCE
#include "expect.h"
#include <errno.h>
#include <identity.h>

static int print(const struct identity *daemon, int kind) {
    const char *name, *value;
    if (kind < 0 && identity_code(daemon)) printf("%s %s\n", identity_code(daemon), identity_text(daemon));
    else if (kind < 0) printf("%s\n", strerrorname_np(-kind));
    else {
        printf(kind == IDENTITY_ROW ? "row" : "ok");
        for (size_t index = 0; identity_word(daemon, index); index++) printf(" [%s]", identity_word(daemon, index));
        for (size_t index = 0; identity_field_at(daemon, index, &name, &value); index++)
            printf(" %s=[%s]", name, value);
        printf("\n");
    }
    return kind;
}

int main(int count, char **words) {
    struct identity *daemon;
    EXPECT(count >= 2 && identity_new(&daemon, NULL) == 0);
    identity_set_timeout(daemon, atoi(words[1]));
    if (count == 3) {
        static char large[60000];
        memset(large, 'x', sizeof large - 1);
        int requests = atoi(words[2]);
        for (int request = 0; request < requests; request++)
            EXPECT(identity_send(daemon, IDENTITY_WORDS("check", large)) == 0);
        for (int request = 0; request < requests; request++) print(daemon, identity_next(daemon));
        identity_free(daemon);
        return 0;
    }
    for (int request = 0; request < 2; request++) {
        int kind = print(daemon, identity_ask(daemon, IDENTITY_WORDS("ping")));
        while (kind == IDENTITY_ROW) kind = print(daemon, identity_next(daemon));
    }
    identity_free(daemon);
    return 0;
}
