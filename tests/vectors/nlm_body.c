/*
 * nlm_body.c -- the table of NLM procedures, and bodies from and to text; see nlm_body.h.
 *
 * A shape is a list of fields in the order of the wire, and a field is a key, a kind and a place in
 * struct nlm_body; parsing and printing walk the same list. Hex fields without bytes are "-".
 */
#include "nlm_body.h"

#include "vector.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct nlm_body_row nlm_body_rows[NLM_BODY_PROCEDURES] = {
    {"NULL", 0, 1, NLM_SHAPE_VOID, NLM_SHAPE_VOID},
    {"TEST", 1, 1, NLM_SHAPE_TESTARGS, NLM_SHAPE_TESTRES},
    {"LOCK", 2, 1, NLM_SHAPE_LOCKARGS, NLM_SHAPE_RES},
    {"CANCEL", 3, 1, NLM_SHAPE_CANCARGS, NLM_SHAPE_RES},
    {"UNLOCK", 4, 1, NLM_SHAPE_UNLOCKARGS, NLM_SHAPE_RES},
    {"GRANTED", 5, 1, NLM_SHAPE_TESTARGS, NLM_SHAPE_RES},
    {"TEST_MSG", 6, 1, NLM_SHAPE_TESTARGS, NLM_SHAPE_VOID},
    {"LOCK_MSG", 7, 1, NLM_SHAPE_LOCKARGS, NLM_SHAPE_VOID},
    {"CANCEL_MSG", 8, 1, NLM_SHAPE_CANCARGS, NLM_SHAPE_VOID},
    {"UNLOCK_MSG", 9, 1, NLM_SHAPE_UNLOCKARGS, NLM_SHAPE_VOID},
    {"GRANTED_MSG", 10, 1, NLM_SHAPE_TESTARGS, NLM_SHAPE_VOID},
    {"TEST_RES", 11, 1, NLM_SHAPE_TESTRES, NLM_SHAPE_VOID},
    {"LOCK_RES", 12, 1, NLM_SHAPE_RES, NLM_SHAPE_VOID},
    {"CANCEL_RES", 13, 1, NLM_SHAPE_RES, NLM_SHAPE_VOID},
    {"UNLOCK_RES", 14, 1, NLM_SHAPE_RES, NLM_SHAPE_VOID},
    {"GRANTED_RES", 15, 1, NLM_SHAPE_RES, NLM_SHAPE_VOID},
    {"SM_NOTIFY", 16, 1, NLM_SHAPE_UPCALL, NLM_SHAPE_VOID},
    {"SHARE", 20, 3, NLM_SHAPE_SHAREARGS, NLM_SHAPE_SHARERES},
    {"UNSHARE", 21, 3, NLM_SHAPE_SHAREARGS, NLM_SHAPE_SHARERES},
    {"NM_LOCK", 22, 3, NLM_SHAPE_LOCKARGS, NLM_SHAPE_RES},
    {"FREE_ALL", 23, 3, NLM_SHAPE_NOTIFY, NLM_SHAPE_VOID},
};

enum kind { STRING, HEX, PRIV, WORD, BOOLEAN, LONG, STATUS };

struct field {
    const char *key;
    enum kind kind;
    size_t place;
};

enum { FIELDS_MAX = 12 };

#define FIELD(kind, key, member)                                                                   \
    {                                                                                              \
        key, kind, offsetof(struct nlm_body, member)                                               \
    }
#define COOKIE    FIELD(HEX, "cookie", cookie)
#define BLOCK     FIELD(BOOLEAN, "block", block)
#define EXCLUSIVE FIELD(BOOLEAN, "exclusive", exclusive)
#define RECLAIM   FIELD(BOOLEAN, "reclaim", reclaim)
#define NAME      FIELD(STRING, "caller_name", name)
#define FH        FIELD(HEX, "fh", fh)
#define OH        FIELD(HEX, "oh", oh)
#define SVID      FIELD(WORD, "svid", svid)
#define OFFSET    FIELD(LONG, "offset", offset)
#define LEN       FIELD(LONG, "len", len)
#define STATE     FIELD(WORD, "state", state)
#define STAT      FIELD(STATUS, "stat", stat)
#define MODE      FIELD(WORD, "mode", mode)
#define ACCESS    FIELD(WORD, "access", access)
#define SEQUENCE  FIELD(WORD, "sequence", sequence)
#define ABOUT     FIELD(STRING, "name", name)

/* Each list ends where its key is NULL. */
static const struct field shapes[][FIELDS_MAX] = {
    [NLM_SHAPE_VOID] = {{0}},
    [NLM_SHAPE_TESTARGS] = {COOKIE, EXCLUSIVE, NAME, FH, OH, SVID, OFFSET, LEN},
    [NLM_SHAPE_LOCKARGS] = {COOKIE, BLOCK, EXCLUSIVE, NAME, FH, OH, SVID, OFFSET, LEN, RECLAIM,
                            STATE},
    [NLM_SHAPE_CANCARGS] = {COOKIE, BLOCK, EXCLUSIVE, NAME, FH, OH, SVID, OFFSET, LEN},
    [NLM_SHAPE_UNLOCKARGS] = {COOKIE, NAME, FH, OH, SVID, OFFSET, LEN},
    [NLM_SHAPE_SHAREARGS] = {COOKIE, NAME, FH, OH, MODE, ACCESS, RECLAIM},
    [NLM_SHAPE_RES] = {COOKIE, STAT},
    [NLM_SHAPE_TESTRES] = {COOKIE, STAT},
    [NLM_SHAPE_SHARERES] = {COOKIE, STAT, SEQUENCE},
    [NLM_SHAPE_NOTIFY] = {ABOUT, STATE},
    [NLM_SHAPE_UPCALL] = {ABOUT, STATE, FIELD(PRIV, "priv", priv)},
};
static const struct field holder[FIELDS_MAX] = {EXCLUSIVE, SVID, OH, OFFSET, LEN};

enum { DENIED = 1 };
static const char *const stats[] = {
    "GRANTED", "DENIED", "DENIED_NOLOCKS", "BLOCKED", "DENIED_GRACE_PERIOD",
    "DEADLCK", "ROFS",   "STALE_FH",       "FBIG",    "FAILED",
};
enum { STAT_COUNT = sizeof stats / sizeof stats[0] };

const struct nlm_body_row *nlm_body_row_of_file(const char *file)
{
    static const char start[] = "nlm_", end[] = ".txt";
    if (strncmp(file, start, strlen(start)) != 0)
        return NULL;
    file += strlen(start);
    for (size_t i = 0; i < NLM_BODY_PROCEDURES; i++) {
        const char *name = nlm_body_rows[i].name;
        size_t same = 0;
        while (name[same] != '\0' && toupper((unsigned char)file[same]) == name[same])
            same++;
        if (name[same] == '\0' && strcmp(file + same, end) == 0)
            return &nlm_body_rows[i];
    }
    return NULL;
}

unsigned nlm_body_versions(const char *more, uint32_t ret[static NLM_BODY_VERSIONS])
{
    static const struct {
        const char *word;
        unsigned count;
        uint32_t versions[NLM_BODY_VERSIONS];
    } rows[] = {
        {"1,3", 2, {1, 3}}, {"3", 1, {3}},           {"4", 1, {4}},
        {"3,4", 2, {3, 4}}, {"1,3,4", 3, {1, 3, 4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (vector_is(more, "vers", rows[i].word)) {
            memcpy(ret, rows[i].versions, sizeof rows[i].versions);
            return rows[i].count;
        }
    }
    return 0;
}

static _Noreturn void give_up(const char *key, const char *text)
{
    printf("Bail out! no good value for %s in: %s\n", key, text);
    exit(99);
}

/* A field without blanks in it, as a string of its own. */
static const char *word_of(const char *key, const char *text)
{
    static char word[NLM_BODY_TEXT_MAX];
    const char *value = vector_field(text, key);
    size_t len = value != NULL ? strcspn(value, " ") : 0;
    if (len == 0 || len >= sizeof word)
        give_up(key, text);
    memcpy(word, value, len);
    word[len] = '\0';
    return word;
}

static uint64_t number_of(const char *key, const char *text, uint64_t max)
{
    const char *word = word_of(key, text);
    char *end;
    unsigned long long number = strtoull(word, &end, 10);
    if (!isdigit((unsigned char)*word) || *end != '\0' || number > max)
        give_up(key, text);
    return number;
}

static uint32_t stat_of(const char *text)
{
    const char *word = word_of("stat", text);
    for (uint32_t i = 0; i < STAT_COUNT; i++)
        if (strcmp(word, stats[i]) == 0)
            return i;
    return (uint32_t)number_of("stat", text, UINT32_MAX);
}

static uint32_t hex_of(const char *key, const char *text, uint8_t *ret, size_t size)
{
    const char *word = word_of(key, text);
    size_t len = strcmp(word, "-") != 0 ? vector_hex(word, ret, size) : 0;
    if (len == SIZE_MAX)
        give_up(key, text);
    return (uint32_t)len;
}

static void parse_field(const struct field *field, const char *text, struct nlm_body *body)
{
    void *place = (char *)body + field->place;
    struct nlm_body_bytes *bytes = place;
    switch (field->kind) {
    case STRING:
        bytes->len = (uint32_t)vector_string(text, field->key, bytes->at, NLM_BODY_BYTES_MAX);
        break;
    case HEX:
        bytes->len = hex_of(field->key, text, bytes->at, NLM_BODY_BYTES_MAX);
        break;
    case PRIV:
        if (hex_of(field->key, text, place, sizeof body->priv) != sizeof body->priv)
            give_up(field->key, text);
        break;
    case WORD:
        *(uint32_t *)place = (uint32_t)number_of(field->key, text, UINT32_MAX);
        break;
    case BOOLEAN:
        *(uint32_t *)place = (uint32_t)number_of(field->key, text, 1);
        break;
    case LONG:
        *(uint64_t *)place = number_of(field->key, text, UINT64_MAX);
        break;
    case STATUS:
        *(uint32_t *)place = stat_of(text);
        break;
    }
}

void nlm_body_parse(enum nlm_shape shape, const char *text, const char *holder_text,
                    struct nlm_body *ret)
{
    memset(ret, 0, sizeof *ret);
    for (const struct field *field = shapes[shape]; field->key != NULL; field++)
        parse_field(field, text, ret);
    if (shape == NLM_SHAPE_TESTRES && ret->stat == DENIED)
        for (const struct field *field = holder; field->key != NULL; field++)
            parse_field(field, holder_text, ret);
}

static void print_hex(FILE *out, const uint8_t *bytes, uint32_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < len; i++) {
        fputc(digits[bytes[i] >> 4], out);
        fputc(digits[bytes[i] & 15], out);
    }
    if (len == 0)
        fputc('-', out);
}

static void print_string(FILE *out, const struct nlm_body_bytes *bytes)
{
    fputc('"', out);
    for (uint32_t i = 0; i < bytes->len; i++) {
        uint8_t c = bytes->at[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\')
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void print_field(FILE *out, const struct field *field, const struct nlm_body *body)
{
    const void *place = (const char *)body + field->place;
    const struct nlm_body_bytes *bytes = place;
    const uint32_t *word = place;
    fprintf(out, "%s=", field->key);
    switch (field->kind) {
    case STRING:
        print_string(out, bytes);
        break;
    case HEX:
        print_hex(out, bytes->at, bytes->len);
        break;
    case PRIV:
        print_hex(out, place, sizeof body->priv);
        break;
    case WORD:
    case BOOLEAN:
        fprintf(out, "%u", *word);
        break;
    case LONG:
        fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)place);
        break;
    case STATUS:
        if (*word < STAT_COUNT)
            fputs(stats[*word], out);
        else
            fprintf(out, "%u", *word);
        break;
    }
}

void nlm_body_print(enum nlm_shape shape, const struct nlm_body *body, bool with_holder,
                    char ret[static NLM_BODY_TEXT_MAX])
{
    FILE *out = fmemopen(ret, NLM_BODY_TEXT_MAX, "w");
    if (out == NULL)
        abort();
    if (shape == NLM_SHAPE_VOID)
        fputs("void", out);
    const char *blank = "";
    for (const struct field *field = shapes[shape]; field->key != NULL; field++, blank = " ") {
        fputs(blank, out);
        print_field(out, field, body);
    }
    if (shape == NLM_SHAPE_TESTRES && body->stat == DENIED && with_holder) {
        for (const struct field *field = holder; field->key != NULL; field++) {
            fputc(' ', out);
            print_field(out, field, body);
        }
    }
    fputc('\0', out);
    if (fclose(out) != 0)
        abort();
}
