/* A client of identityd that uses plain sockets; see identityd-protocol(7). Status: 0 OK, 1 ERR, 3 no complete answer.
 * client WORD... prints rows and the words after OK. client follow [SEQ [EPOCH]] prints events after SEQ, across
 * restarts. If the daemon no longer has them, prints the current values, and then the events that follow. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#define NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
static void put(FILE *text, const char *word) { /* the value of NAME=, or any other word, as a JSON string */
  size_t name = isalpha((unsigned char)*word) ? strspn(word, NAME) : 0;
  if (name > 0 && word[name] == '=') word += fprintf(text, "%.*s", (int)name + 1, word);
  for (putc('"', text); *word; word++)
    fprintf(text, strchr("\"\\", *word) ? "\\%c" : iscntrl((unsigned char)*word) ? "\\u%04x" : "%c", *word);
  fputs("\" ", text);
}
int main(int count, char **words) {
  char *line = NULL, *request, *path = getenv("IDENTITYD_SOCKET"), last[24] = "", epoch[64] = "", other[64];
  size_t room = 0, length, follows = count > 1 && !strcmp(words[1], "follow"), anew = 0;
  if (follows && count > 3) snprintf(epoch, sizeof epoch, "epoch=%s", words[3]);
  for (snprintf(last, sizeof last, "%s", follows && count > 2 ? words[2] : ""); ; sleep(1)) {
    struct sockaddr_un address = {AF_UNIX, "/run/identityd/identityd.sock"};
    if (path) strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    FILE *text = open_memstream(&request, &length), *answer = fdopen(socket(AF_UNIX, SOCK_STREAM, 0), "r");
    const char *since = *last ? " since=" : anew ? " snapshot=yes" : "";
    if (follows) fprintf(text, "subscribe%s%s%s%s", since, last, *epoch ? " " : "", epoch);
    for (int word = 1; word < count && !follows; word++) put(text, words[word]);
    if (fputs("\n", text) < 0 || fclose(text) || !answer) return perror("client"), 3;
    if (!connect(fileno(answer), (void *)&address, sizeof address)) send(fileno(answer), request, length, MSG_NOSIGNAL);
    while (getline(&line, &room, answer) > 0) {
      if (!strncmp(line, "ERR ", 4)) {
        fprintf(stderr, "client: %s", line + 4);
        if (!follows || strncmp(line, "ERR gone ", 9)) return 1;
        *last = *epoch = 0, anew = 1;
        break;
      }
      if (*line == '*') fputs(line + 2, stdout), fflush(stdout);
      if (!follows && *line == 'O') return fputs(line + 3, stdout) < 0 || fflush(stdout) ? 3 : 0;
      if (sscanf(line, "EVENT %*s lag missed=%*s from=%23s", last) == 1) break;
      if (follows && *line != '*' && sscanf(line, "%*s %23s %63s", last, *line == 'O' ? epoch : other) && *line == 'E')
        fputs(line, stdout), fflush(stdout);
    }
    if (fclose(answer), free(request), !follows || (!*last && !anew)) return fputs("client: no answer\n", stderr), 3;
  }
}
