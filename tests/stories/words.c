/*
 * words.c -- see words.h.
 */
#include "stories/words.h"

#include "stories/script.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 32 };

/* The line that is read. */
static struct {
    const char *file;
    uint32_t number;
    char text[SCRIPT_LINE_MAX], split[SCRIPT_LINE_MAX];
    char *words[WORDS_MAX];
    uint32_t count, next;
} line;

void words_of_file(const char *file)
{
    line.file = file;
    line.number = 0;
}

const char *words_file(void)
{
    return line.file;
}

void words_next_line(const char *text)
{
    line.number++;
    size_t len = strlen(text);
    snprintf(line.text, sizeof(line.text), "%s", text);
    if (len == 0 || text[len - 1] != '\n')
        words_refuse("the line is too long, or does not end");
    line.text[len - 1] = '\0';
}

uint32_t words_line(void)
{
    return line.number;
}

const char *words_text(void)
{
    return line.text;
}

void words_refuse(const char *format, ...)
{
    va_list list;
    fprintf(stderr, "%s:%u: %s\n%s:%u: ", line.file, line.number, line.text, line.file,
            line.number);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    exit(1);
}

void words_split(const char *text)
{
    snprintf(line.split, sizeof(line.split), "%s", text);
    line.count = line.next = 0;
    for (char *at = line.split; *at != '\0';) {
        while (*at == ' ')
            *at++ = '\0';
        if (*at == '\0')
            break;
        if (line.count == WORDS_MAX)
            words_refuse("more than %d words", WORDS_MAX);
        line.words[line.count++] = at;
        while (*at != ' ' && *at != '\0')
            at++;
    }
}

uint32_t words_count(void)
{
    return line.count;
}

uint32_t words_left(void)
{
    return line.count - line.next;
}

void words_skip(void)
{
    line.next = line.count;
}

const char *words_peek(void)
{
    return line.next < line.count ? line.words[line.next] : "";
}

bool words_take(const char *words)
{
    uint32_t next = line.next;
    for (const char *at = words; *at != '\0';) {
        size_t len = strcspn(at, " ");
        if (next == line.count || strlen(line.words[next]) != len ||
            memcmp(line.words[next], at, len) != 0)
            return false;
        next++;
        at += at[len] == ' ' ? len + 1 : len;
    }
    line.next = next;
    return true;
}

const char *words_any(const char *what)
{
    if (line.next == line.count)
        words_refuse("here is missing: %s", what);
    return line.words[line.next++];
}

bool words_is_number(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 0);
    if (end == text || errno != 0 || *text == '-')
        return false;
    if (*end == '^') {
        value = UINT64_C(1) << (strtoull(end + 1, &end, 10) & 63);
        if (*end == '-')
            value -= strtoull(end + 1, &end, 10);
    }
    if (*end != '\0')
        return false;
    *ret = value;
    return true;
}

uint64_t words_number(const char *what)
{
    uint64_t value;
    const char *text = words_any(what);
    if (!words_is_number(text, &value))
        words_refuse("\"%s\" is no number: %s", text, what);
    return value;
}

uint32_t words_choice(const char *const *list, const char *what)
{
    const char *text = words_any(what);
    for (uint32_t i = 0; list[i] != NULL; i++)
        if (strcmp(list[i], text) == 0)
            return i;
    words_refuse("\"%s\" is no %s", text, what);
}
