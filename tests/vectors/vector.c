/*
 * vector.c -- reading vector files and running a check over them; see vector.h.
 *
 * The reader is strict: an unknown line, a vector without a comment, name, kind, text or hex, or a
 * name used twice ends the program, because a vector that is silently skipped proves nothing.
 */
#include "vector.h"

#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_LEN = 8192, FILES_MAX = 64, NAMES_MAX = 64 };

struct reader {
    const char *file;
    unsigned line;
    char last_key[16];
    bool commented, named, kinded, texted, hexed;
    char names[NAMES_MAX][VECTOR_NAME_MAX];
    unsigned name_count;
};

static unsigned test_count, failure_count;

void vector_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("# ", stdout);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

__attribute__((format(printf, 1, 2))) static _Noreturn void give_up(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("Bail out! ", stdout);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
    exit(99);
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

const char *vector_field(const char *text, const char *key)
{
    size_t key_len = strlen(key);
    bool quoted = false, at_start = true;
    for (const char *at = text; *at != '\0'; at++) {
        if (at_start && !quoted && strncmp(at, key, key_len) == 0 && at[key_len] == '=')
            return at + key_len + 1;
        if (*at == '"')
            quoted = !quoted;
        at_start = *at == ' ';
    }
    return NULL;
}

bool vector_is(const char *text, const char *key, const char *word)
{
    const char *value = vector_field(text, key);
    if (value == NULL || !starts_with(value, word))
        return false;
    char end = value[strlen(word)];
    return end == '\0' || end == ' ';
}

uint32_t vector_number(const char *text, const char *key)
{
    const char *value = vector_field(text, key);
    char *end = NULL;
    unsigned long long number = value != NULL ? strtoull(value, &end, 10) : 0;
    if (value == NULL || !isdigit((unsigned char)*value) || (*end != '\0' && *end != ' ') ||
        number > UINT32_MAX)
        give_up("no number %s in: %s", key, text);
    return (uint32_t)number;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t vector_hex(const char *text, uint8_t *ret_bytes, size_t size)
{
    size_t len = 0;
    for (; *text != '\0'; text++) {
        if (*text == ' ')
            continue;
        int high = hex_value(text[0]), low = high >= 0 ? hex_value(text[1]) : -1;
        if (low < 0 || len == size)
            return SIZE_MAX;
        ret_bytes[len++] = (uint8_t)(high << 4 | low);
        text++;
    }
    return len;
}

size_t vector_string(const char *text, const char *key, uint8_t *ret_bytes, size_t size)
{
    const char *value = vector_field(text, key);
    if (value == NULL || *value != '"')
        give_up("no string %s in: %s", key, text);
    size_t len = 0;
    for (value++; *value != '"'; value++) {
        if (len == size || *value == '\0')
            give_up("string %s does not end, or is longer than %zu, in: %s", key, size, text);
        if (*value != '\\') {
            ret_bytes[len++] = (uint8_t)*value;
            continue;
        }
        int high = value[1] == 'x' ? hex_value(value[2]) : -1;
        int low = high >= 0 ? hex_value(value[3]) : -1;
        if (low < 0)
            give_up("string %s has an escape that is not \\xNN in: %s", key, text);
        ret_bytes[len++] = (uint8_t)(high << 4 | low);
        value += 3;
    }
    return len;
}

static void copy_text(struct reader *reader, char *target, size_t size, const char *value)
{
    if (strlen(value) >= size)
        give_up("%s:%u: longer than %zu characters", reader->file, reader->line, size - 1);
    memcpy(target, value, strlen(value) + 1);
}

static enum vector_kind kind_of(struct reader *reader, const char *word)
{
    static const char *const kinds[] = {
        [VECTOR_ARGS] = "args",     [VECTOR_GARBAGE] = "garbage",
        [VECTOR_RESULT] = "result", [VECTOR_BAD_RESULT] = "bad_result",
        [VECTOR_CALL] = "call",     [VECTOR_REFUSED] = "refused",
        [VECTOR_REPLY] = "reply",
    };
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(word, kinds[i]) == 0)
            return (enum vector_kind)i;
    give_up("%s:%u: no such kind: %s", reader->file, reader->line, word);
}

static void set_name(struct reader *reader, struct vector *vector, const char *value)
{
    copy_text(reader, vector->name, sizeof vector->name, value);
    for (unsigned i = 0; i < reader->name_count; i++)
        if (strcmp(reader->names[i], value) == 0)
            give_up("%s:%u: the name %s is used twice", reader->file, reader->line, value);
    if (reader->name_count == NAMES_MAX)
        give_up("%s:%u: more than %d vectors", reader->file, reader->line, (int)NAMES_MAX);
    memcpy(reader->names[reader->name_count++], vector->name, sizeof vector->name);
    reader->named = true;
}

static void add_hex(struct reader *reader, struct vector *vector, const char *value)
{
    size_t len = vector_hex(value, vector->bytes + vector->len, VECTOR_BYTES_MAX - vector->len);
    if (len == SIZE_MAX)
        give_up("%s:%u: not hex, or more than %d bytes", reader->file, reader->line,
                (int)VECTOR_BYTES_MAX);
    vector->len += len;
    reader->hexed = true;
}

static void set_oracle(struct reader *reader, struct vector *vector, const char *value)
{
    if (starts_with(value, "decode, because "))
        vector->oracle = VECTOR_DECODE_ONLY;
    else if (starts_with(value, "none, because "))
        vector->oracle = VECTOR_NO_ORACLE;
    else
        give_up("%s:%u: write 'decode, because ...' or 'none, because ...'", reader->file,
                reader->line);
}

static void read_line(struct reader *reader, struct vector *vector, const char *line)
{
    if (*line == '#') {
        reader->commented = true;
        return;
    }
    if (*line == ' ') { /* goes on with the line before */
        if (strcmp(reader->last_key, "hex") == 0)
            add_hex(reader, vector, line);
        else if (strcmp(reader->last_key, "oracle") != 0)
            give_up("%s:%u: only hex and oracle go on over lines", reader->file, reader->line);
        return;
    }
    const char *colon = strchr(line, ':');
    if (colon == NULL || (size_t)(colon - line) >= sizeof reader->last_key)
        give_up("%s:%u: not 'key: value'", reader->file, reader->line);
    memset(reader->last_key, 0, sizeof reader->last_key);
    memcpy(reader->last_key, line, (size_t)(colon - line));
    const char *value = colon[1] == ' ' ? colon + 2 : colon + 1;
    if (strcmp(reader->last_key, "name") == 0) {
        set_name(reader, vector, value);
    } else if (strcmp(reader->last_key, "kind") == 0) {
        vector->kind = kind_of(reader, value);
        reader->kinded = true;
    } else if (strcmp(reader->last_key, "text") == 0) {
        copy_text(reader, vector->text, sizeof vector->text, value);
        reader->texted = true;
    } else if (strcmp(reader->last_key, "more") == 0) {
        copy_text(reader, vector->more, sizeof vector->more, value);
    } else if (strcmp(reader->last_key, "hex") == 0) {
        add_hex(reader, vector, value);
    } else if (strcmp(reader->last_key, "oracle") == 0) {
        set_oracle(reader, vector, value);
    } else {
        give_up("%s:%u: unknown key %s", reader->file, reader->line, reader->last_key);
    }
}

static void report(bool good, const char *file, const char *name)
{
    test_count++;
    failure_count += !good;
    printf("%s %u - %s: %s\n", good ? "ok" : "not ok", test_count, file, name);
}

static void end_vector(struct reader *reader, struct vector *vector, vector_fn check)
{
    if (reader->named || reader->hexed || reader->texted || reader->kinded) {
        if (!reader->commented || !reader->named || !reader->hexed || !reader->texted ||
            !reader->kinded)
            give_up("%s:%u: a vector needs a comment, name, kind, text and hex", reader->file,
                    reader->line);
        enum vector_verdict verdict = check(reader->file, vector);
        if (verdict == VECTOR_NOT_ASKED)
            vector_say("%s: %s: not asked, see its oracle line", reader->file, vector->name);
        else
            report(verdict == VECTOR_GOOD, reader->file, vector->name);
    }
    reader->commented = reader->named = reader->hexed = reader->texted = reader->kinded = false;
    memset(reader->last_key, 0, sizeof reader->last_key);
    memset(vector, 0, sizeof *vector);
}

static void run_file(const char *directory, const char *name, vector_fn check)
{
    static char line[LINE_MAX_LEN], path[LINE_MAX_LEN];
    static struct vector vector;
    static struct reader reader;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        give_up("cannot open %s", path);
    memset(&vector, 0, sizeof vector);
    memset(&reader, 0, sizeof reader);
    reader.file = name;
    while (fgets(line, sizeof line, file) != NULL) {
        reader.line++;
        size_t len = strlen(line);
        if (len == 0 || line[len - 1] != '\n')
            give_up("%s:%u: line too long, or no newline at the end", name, reader.line);
        line[len - 1] = '\0';
        if (line[0] == '\0')
            end_vector(&reader, &vector, check);
        else
            read_line(&reader, &vector, line);
    }
    end_vector(&reader, &vector, check);
    fclose(file);
    if (reader.name_count == 0)
        give_up("%s holds no vector", path);
}

static int is_vector_file(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 4 && strcmp(entry->d_name + len - 4, ".txt") == 0;
}

int vector_run_directory(const char *directory, vector_fn check, bool (*at_end)(void))
{
    struct dirent **entries;
    int count = scandir(directory, &entries, is_vector_file, alphasort);
    if (count <= 0)
        give_up("no vector files in %s: give the directory that holds them", directory);
    for (int i = 0; i < count; i++) {
        run_file(directory, entries[i]->d_name, check);
        free(entries[i]);
    }
    free(entries);
    if (at_end != NULL)
        report(at_end(), directory, "nothing is without vectors");
    printf("1..%u\n", test_count);
    return failure_count == 0 ? 0 : 1;
}
