/* Expectations of the test programs. A failed one ends the program with its place. */
#ifndef EXPECT_H
#define EXPECT_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

#define EXPECT_TEXT(found, wanted) \
    do { \
        const char *text = (found); \
        if (!text || strcmp(text, (wanted))) { \
            fprintf(stderr, "%s:%d: '%s', not '%s'\n", __FILE__, __LINE__, text ? text : "(none)", (wanted)); \
            exit(1); \
        } \
    } while (0)

#endif
