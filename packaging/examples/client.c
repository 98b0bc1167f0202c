/* A client of identityd that uses libidentity; see identityd(3). Status: 0 OK, 1 ERR, 3 no complete answer.
 * client WORD... prints rows and the words after OK. client follow [SEQ [EPOCH]] prints events after SEQ, across
 * restarts. If the daemon no longer has them, prints the current values, and then the events that follow. */
#include <identity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(struct identity *daemon, int error) {
  const char *code = identity_code(daemon), *text = identity_text(daemon);
  fprintf(stderr, "client: %s%s%s\n", code ? code : strerror(-error), code ? " " : ": ", text);
  return code ? 1 : 3;
}

static void show(const char *text) { if (text) puts(text), fflush(stdout); }

static const char *after_first_word(const char *line) {
  const char *space = strchr(line, ' ');
  return space ? space + 1 : NULL;
}

int main(int count, char **words) {
  int follows = count > 1 && !strcmp(words[1], "follow"), kind = IDENTITY_NOTHING;
  long long since = follows && count > 2 ? atoll(words[2]) : IDENTITY_SINCE_NOW;
  struct identity *daemon;
  int result = identity_new(&daemon, NULL);
  if (result < 0) return fprintf(stderr, "client: %s\n", strerror(-result)), 3;
  if (follows) result = identity_follow(daemon, NULL, 0, since, count > 3 ? words[3] : NULL);
  else kind = identity_ask(daemon, (const char *const *)words + 1, (size_t)count - 1);
  if (result < 0) kind = result;
  while (kind >= 0 && (follows || kind != IDENTITY_OK)) {
    if (kind == IDENTITY_ROW) show(after_first_word(identity_line(daemon)));
    if (kind == IDENTITY_EVENT) show(identity_line(daemon));
    if (kind == IDENTITY_GAP) fail(daemon, 0);
    do kind = identity_next(daemon); /* waits for a daemon that is not there yet, if there is a position */
    while (kind < 0 && follows && since >= 0 && !identity_code(daemon));
  }
  if (kind >= 0) show(after_first_word(identity_line(daemon)));
  result = kind < 0 ? fail(daemon, kind) : ferror(stdout) ? 3 : 0;
  identity_free(daemon);
  return result;
}
