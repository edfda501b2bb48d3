/*
 * print.c -- text for people; see print.h.
 */
#include "cli/print.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void print_safe(FILE *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        /* U+0080 to U+009F are control characters, too: two bytes, the first of them 0xc2. */
        bool is_c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f;
        (void)fputc(*at < 0x20 || *at == 0x7f || is_c1 ? '?' : *at, out);
        at += is_c1;
    }
}

size_t print_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

const char *print_string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "-";
}

const char *print_file(const json_t *lock)
{
    const char *path = json_string_value(json_object_get(lock, "path"));
    return path != NULL ? path : print_string(lock, "file");
}

long long print_integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

void print_number(char *ret, size_t size, const json_t *number)
{
    if (json_is_integer(number))
        (void)snprintf(ret, size, "%lld", (long long)json_integer_value(number));
    else
        (void)snprintf(ret, size, "%.0f", json_number_value(number));
}

void print_count(FILE *out, long long value)
{
    char buffer[40];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_add_count(&text, value < 0 ? 0 : (uint64_t)value);
    (void)fputs(buffer, out);
}

void print_plural(FILE *out, long long count, const char *noun)
{
    print_count(out, count);
    (void)fprintf(out, " %s%s", noun, count == 1 ? "" : "s");
}

void print_duration(FILE *out, long long seconds)
{
    if (seconds < 60)
        (void)fprintf(out, "%lld s", seconds);
    else if (seconds < 3600)
        (void)fprintf(out, "%lld min", seconds / 60);
    else if (seconds < 86400)
        (void)fprintf(out, "%lld h %lld min", seconds / 3600, seconds / 60 % 60);
    else
        (void)fprintf(out, "%lld d %lld h", seconds / 86400, seconds / 3600 % 24);
}

void print_wrapped(FILE *out, const char *text)
{
    enum { LINE_MAX_LEN = 78 };
    size_t column = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        bool is_next = column > 0 && column + 1 + len > LINE_MAX_LEN;
        (void)fprintf(out, "%s%.*s", is_next ? "\n" : column > 0 ? " " : "", (int)len, text);
        column = is_next ? len : column + len + (column > 0);
        text += len;
        text += strspn(text, " ");
    }
    (void)fputc('\n', out);
}

void print_json(const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (text != NULL)
        (void)puts(text);
    free(text);
}

char *print_safe_copy(const char *text)
{
    char *copy = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&copy, &len);
    if (out == NULL)
        return NULL;
    print_safe(out, text);
    return fclose(out) == 0 ? copy : NULL;
}

/* False: not a time of the server's. */
static bool seconds_since(const char *time, long long *ret)
{
    struct tm parts = {0};
    if (strptime(time, "%Y-%m-%dT%H:%M:%S", &parts) == NULL)
        return false;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *ret = (long long)now.tv_sec - (long long)timegm(&parts);
    return true;
}

void print_until(char *ret, size_t size, const char *time)
{
    long long seconds;
    if (!seconds_since(time, &seconds))
        (void)snprintf(ret, size, "-");
    else if (seconds >= 0)
        (void)snprintf(ret, size, "over");
    else
        (void)snprintf(ret, size, "%lld s left", -seconds);
}

void print_ago(char *ret, size_t size, const char *time)
{
    long long seconds;
    if (!seconds_since(time, &seconds))
        (void)snprintf(ret, size, "-");
    else if (seconds < 60)
        (void)snprintf(ret, size, "%lld s ago", seconds < 0 ? 0 : seconds);
    else if (seconds < 3600)
        (void)snprintf(ret, size, "%lld min ago", seconds / 60);
    else if (seconds < 2LL * 86400)
        (void)snprintf(ret, size, "%lld h ago", seconds / 3600);
    else
        (void)snprintf(ret, size, "%lld d ago", seconds / 86400);
}
