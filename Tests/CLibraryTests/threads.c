/* A hundred threads, each with a handle of its own: requests, and events of the own changes in another handle. */
#define _GNU_SOURCE
#include "expect.h"
#include <identity.h>
#include <pthread.h>

enum { THREADS = 100, CHANGES = 20 };

static void *work(void *argument) {
    char account[32];
    struct identity *daemon, *follower;
    const char *topic = "item";
    snprintf(account, sizeof account, "account=thread-%d", *(int *)argument);
    EXPECT(identity_new(&daemon, NULL) == 0 && identity_new(&follower, NULL) == 0);
    EXPECT(identity_follow(follower, &topic, 1, IDENTITY_SINCE_NOW, NULL) == 0);
    EXPECT(identity_next(follower) == IDENTITY_OK);
    for (int change = 0; change < CHANGES; change++) {
        EXPECT(identity_add_data(daemon, "data", &change, sizeof change) == 0);
        EXPECT(identity_ask(daemon, IDENTITY_WORDS("item", "put", "service=threads", account)) == IDENTITY_OK);
    }
    for (int seen = 0; seen < CHANGES;) {
        EXPECT(identity_next(follower) == IDENTITY_EVENT);
        if (!strcmp(identity_field(follower, "account"), account + 8)) seen++;
    }
    EXPECT(identity_ask(daemon, IDENTITY_WORDS("item", "read", "service=threads", account)) == IDENTITY_OK);
    int last = 0;
    EXPECT(identity_data(daemon, "data", &last, sizeof last) == sizeof last && last == CHANGES - 1);
    identity_free(follower);
    identity_free(daemon);
    return NULL;
}

int main(void) {
    static pthread_t threads[THREADS];
    static int numbers[THREADS];
    for (int place = 0; place < THREADS; place++) {
        numbers[place] = place;
        EXPECT(pthread_create(&threads[place], NULL, work, &numbers[place]) == 0);
    }
    for (int place = 0; place < THREADS; place++) EXPECT(pthread_join(threads[place], NULL) == 0);
    return 0;
}
