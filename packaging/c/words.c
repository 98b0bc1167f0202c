/* The words of requests and of received lines; see identityd-protocol(7). SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE
#include "internal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "._-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void drop(struct buffer *buffer, size_t count) {
    explicit_bzero(buffer->bytes + buffer->start, count);
    buffer->start += count;
    if (buffer->start == buffer->end) buffer->start = buffer->end = 0;
}

void compact(struct buffer *buffer) {
    size_t start = buffer->start;
    memmove(buffer->bytes, buffer->bytes + start, used(buffer));
    buffer->end -= start;
    buffer->start = 0;
    explicit_bzero(buffer->bytes + buffer->end, start);
}

void append(struct buffer *buffer, const char *bytes, size_t length) {
    memcpy(buffer->bytes + buffer->end, bytes, length);
    buffer->end += length;
}

/* --- Requests --- */

/* The length of the attribute's name at the beginning of a text; 0 for none. end: the byte after a name. */
size_t name_length(const char *text, char end) {
    size_t length = strspn(text, letters), marks = strspn(text, "._-0123456789");
    return length > 0 && marks == 0 && text[length] == end ? length : 0;
}

/* The length of the control character at the beginning of a text; 0 for none. U+0080 to U+009F have two bytes. */
static size_t control_length(const char *text) {
    unsigned char first = (unsigned char)text[0];
    if (first < 0x20 || first == 0x7f) return 1;
    return first == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] <= 0x9f ? 2 : 0;
}

/* Leaves room for the end of the line. */
static void put(struct request *request, const char *bytes, size_t length) {
    if (length < IDENTITY_REQUEST_BYTES - request->buffer.end) append(&request->buffer, bytes, length);
    else if (!request->fault) request->fault = EMSGSIZE;
}

/* Puts a word, its value as a JSON string. length: that of the name, 0 for a positional word. */
void put_word(struct request *request, const char *name, size_t length, const char *value) {
    if (request->words++ >= IDENTITY_REQUEST_WORDS && !request->fault) request->fault = E2BIG;
    if (request->buffer.end > 0) put(request, " ", 1);
    if (length > 0) put(request, name, length), put(request, "=", 1);
    put(request, "\"", 1);
    for (size_t control; *value && !request->fault; value += control ? control : 1) {
        char escape[8];
        control = control_length(value);
        unsigned code = (unsigned char)value[control == 2];
        if (*value == '"' || *value == '\\') put(request, "\\", 1);
        if (!control) put(request, value, 1);
        else put(request, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", code));
    }
    put(request, "\"", 1);
}

/* Puts bytes in Base64 in the place of the empty value at the end. */
void put_data(struct request *request, const unsigned char *data, size_t length) {
    request->buffer.end -= 2;
    for (size_t digit = 0; digit * 6 < length * 8 && !request->fault; digit++) {
        size_t place = digit * 6 / 8;
        unsigned two = (unsigned)data[place] << 8 | (place + 1 < length ? data[place + 1] : 0);
        put(request, &digits[two >> (10 - digit * 6 % 8) & 63], 1);
    }
    put(request, "==", (3 - length % 3) % 3);
}

/* --- Received lines --- */

/* The number of a \u escape; -1 if the text is none. */
static long decode_unit(const char *text) {
    char number[5] = {0};
    if (text[0] != '\\' || text[1] != 'u') return -1;
    memcpy(number, text + 2, strnlen(text + 2, 4));
    return strspn(number, "0123456789abcdefABCDEF") == 4 ? strtol(number, NULL, 16) : -1;
}

/* Appends the character of one or two \u escapes. Returns the length of their text; 0 if they are broken. */
static size_t decode_character(const char *text, struct buffer *buffer) {
    long code = decode_unit(text), second = code >> 10 == 0x36 ? decode_unit(text + 6) : 0;
    bool is_pair = second >> 10 == 0x37;
    if (code <= 0 || (code >> 11 == 0x1b && !is_pair)) return 0;
    if (is_pair) code = 0x10000 + ((code & 0x3ff) << 10) + (second & 0x3ff);
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    char bytes[4];
    for (size_t place = length - 1; place > 0; place--, code >>= 6) bytes[place] = (char)(0x80 | (code & 0x3f));
    bytes[0] = (char)(length == 1 ? code : code | (0xf00 >> length & 0xff));
    append(buffer, bytes, length);
    return is_pair ? 12 : 6;
}

/* Appends a decoded value with a NUL. Returns the byte after its text; NULL if it is broken. */
static const char *decode_value(const char *text, struct buffer *buffer) {
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    bool is_quoted = *text == '"';
    if (!*text || *text == ' ') return NULL;
    for (text += is_quoted; *text && *text != '"' && (is_quoted || *text != ' ');) {
        const char *escape = *text == '\\' && is_quoted && text[1] ? escapes : NULL;
        size_t length = escape ? 2 : 1;
        while (escape && *escape && *escape != text[1]) escape += 2;
        if (!escape && (*text == '\\' || control_length(text))) return NULL;
        if (!escape) append(buffer, text, 1);
        else if (*escape) append(buffer, escape + 1, 1);
        else length = decode_character(text, buffer);
        if (length == 0) return NULL;
        text += length;
    }
    if (is_quoted && *text++ != '"') return NULL;
    append(buffer, "", 1);
    return *text == ' ' || !*text ? text : NULL;
}

/* Returns false if the words are broken. They take no more bytes than their text with its end. */
bool decode_words(struct words *words, const char *text) {
    while (text && *text) {
        while (*text == ' ') text++;
        size_t name = name_length(text, '=');
        if (!*text) break;
        if (name == 0 && words->fields > 0) return false;
        if (name > 0) append(&words->buffer, text, name), append(&words->buffer, "", 1);
        if (name > 0) words->fields++, text += name + 1;
        else words->positional++;
        text = decode_value(text, &words->buffer);
    }
    return text != NULL;
}

/* Decodes Base64. data may be NULL. Returns the number of bytes, -ENOSPC or -EBADMSG. */
int decode_data(const char *text, unsigned char *data, size_t size) {
    size_t length = strlen(text), number = strspn(text, digits), count = number * 3 / 4;
    unsigned bits = 0;
    if (length % 4 || length - number > 2 || strspn(text + number, "=") != length - number) return -EBADMSG;
    if (data && size < count) return -ENOSPC;
    for (size_t place = 0; data && place < number; place++) {
        bits = bits << 6 | (unsigned)(strchr(digits, text[place]) - digits);
        if (place % 4 > 0) *data++ = (unsigned char)(bits >> (6 - 2 * (place % 4)));
    }
    return (int)count;
}

/* A number up to the end of the text or a space; -1 for none. */
int64_t decimal(const char *text) {
    size_t length = text ? strspn(text, "0123456789") : 0;
    return length > 0 && length < 19 && (!text[length] || text[length] == ' ') ? strtoll(text, NULL, 10) : -1;
}
