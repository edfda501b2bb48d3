/*
 * store_vectors.c -- stored records of every kind and format: their bytes, their meaning, and what
 * people see of them, as the vectors of tests/vectors/store say.
 *
 * The bytes of formats 1 to 4 were written by the code of these formats. What they mean and show
 * was printed by the last code that had an encoder, a printer and a row written out for each kind.
 * So the walk over the layouts (store/record_layout.h) changed no byte of a store, of an export, or
 * of a row.
 *
 * A vector is in the file of its kind: `text` is every field of the decoded record, `more` what an
 * export has between slot and record, then the columns of PostgreSQL. What is decoded is encoded
 * again: to the same bytes if the format is today's, else to bytes with the same meaning. At the
 * end, no kind may be without a vector of any format that had it, no byte of a struct without a
 * row, and no value longer than the buffers that it is encoded into.
 */
#include "daemon/store_json.h"
#include "record_text.h"
#include "store/postgres_table.h"
#include "store/record_layout.h"
#include "vector.h"

#include <stdlib.h>

static bool has_vector[RECORD_KIND_END][RECORD_FORMAT + 1];
static struct {
    uint8_t at[RECORD_VALUE_MAX];
    uint32_t len;
} typical[RECORD_KIND_END]; /* the last typical one, in today's format */

/* ---- what is compared ---- */

static bool is_same(const char *what, const char *got, const char *expected)
{
    if (strcmp(got, expected) == 0)
        return true;
    vector_say("%s is %s", what, got);
    vector_say("and should be %s", expected);
    return false;
}

static bool means(enum record_kind kind, uint32_t slot, const union record_any *record,
                  const char *expected)
{
    char text[VECTOR_TEXT_MAX];
    FILE *out = fmemopen(text, sizeof text, "w");
    record_text_print(out, kind, slot, record);
    fclose(out);
    return is_same("the meaning", text, expected);
}

static void print_cell(FILE *out, enum postgres_type type, struct bytes bytes)
{
    switch (type) {
    case POSTGRES_INT8:
    case POSTGRES_TIME:
        fprintf(out, "%lld", (long long)load_be64(bytes.at));
        return;
    case POSTGRES_TEXT:
        record_text_name(out, bytes);
        return;
    case POSTGRES_BYTEA:
        record_text_hex(out, bytes);
        return;
    case POSTGRES_INT4:
    case POSTGRES_TYPE_END:
        break;
    }
    UNREACHABLE();
}

/* The columns between slot and record. */
static void print_row(FILE *out, enum record_kind kind, uint32_t slot, struct bytes value)
{
    static struct postgres_scratch scratch;
    struct postgres_column columns[POSTGRES_COLUMNS_MAX];
    struct postgres_cell cells[POSTGRES_COLUMNS_MAX];
    uint32_t width = postgres_table_columns(kind, columns);
    CHECK(postgres_table_fill(kind, slot, value, &scratch, cells) == width);
    CHECK(load_be32(cells[0].bytes.at) == slot && cells[width - 1].bytes.at == value.at);
    for (uint32_t i = 1; i < width - 1; i++) {
        fprintf(out, " %s=", columns[i].name);
        print_cell(out, columns[i].type, cells[i].bytes);
    }
}

/* What people see: {"id": 17} | client_id=17 */
static bool is_shown(enum record_kind kind, uint32_t slot, struct bytes value, const char *expected)
{
    static char line[STORE_JSON_LINE_MAX], hex[2 * RECORD_VALUE_MAX + 1];
    char start[64], shown[VECTOR_TEXT_MAX];
    struct text text;
    if (!store_json_put(line, kind, slot, value))
        return is_same("the line", "of a bad record", expected);
    text_init(&text, hex, sizeof hex);
    text_add_hex(&text, value);
    int start_len = snprintf(start, sizeof start, "{\"kind\": \"%s\", \"slot\": %u, ",
                             record_kind_name(kind), slot);
    char *end = strstr(line, ", \"record\": \"");
    if (strncmp(line, start, (size_t)start_len) != 0 || end == NULL ||
        strncmp(end + 13, hex, strlen(hex)) != 0 || strcmp(end + 13 + strlen(hex), "\"}") != 0)
        return is_same("the line", line, expected);
    FILE *out = fmemopen(shown, sizeof shown, "w");
    fprintf(out, "{%.*s} |", (int)(end - line) - start_len, line + start_len);
    if (kind != RECORD_SERVER)
        print_row(out, kind, slot, value);
    fclose(out);
    return is_same("what is shown", shown, expected);
}

/* A line that was exported is read back. */
static bool comes_back(enum record_kind kind, uint32_t slot, struct bytes value)
{
    static char line[STORE_JSON_LINE_MAX];
    uint8_t buffer[RECORD_VALUE_MAX];
    char why[256];
    struct text cause;
    struct record_change change;
    struct digest end;
    text_init(&cause, why, sizeof why);
    if (!store_json_put(line, kind, slot, value))
        return false;
    if (slot >= RECORD_SLOT_MAX) /* which no store has */
        return store_json_get(line, buffer, &change, &end, &cause) != 0;
    if (store_json_get(line, buffer, &change, &end, &cause) != 0)
        return is_same("the import", why, "accepted");
    return change.kind == kind && change.slot == slot && bytes_equal(change.value, value);
}

/* ---- the check of a vector ---- */

static enum record_kind kind_of_file(const char *file)
{
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        const char *name = record_kind_name((enum record_kind)kind);
        if (strncmp(file, name, strlen(name)) == 0 && strcmp(file + strlen(name), ".txt") == 0)
            return (enum record_kind)kind;
    }
    return RECORD_KIND_END;
}

static enum vector_verdict check(const char *file, const struct vector *vector)
{
    enum record_kind kind = kind_of_file(file);
    uint32_t slot = vector_number(vector->text, "slot");
    struct bytes value = {vector->bytes, (uint32_t)vector->len};
    uint8_t again[RECORD_VALUE_MAX];
    union record_any record;
    if (kind == RECORD_KIND_END || vector->kind != VECTOR_ARGS) {
        vector_say("no such kind of record, or not kind: args");
        return VECTOR_BAD;
    }
    if (record_get(value, kind, slot, &record) != RECORD_GOOD) {
        vector_say("the record is refused");
        return VECTOR_BAD;
    }
    has_vector[kind][value.at[3]] = true;
    bool good = means(kind, slot, &record, vector->text);
    good &= is_shown(kind, slot, value, vector->more) && comes_back(kind, slot, value);
    struct bytes today = {again, record_put(again, kind, slot, &record)};
    if (value.at[3] == RECORD_FORMAT)
        good &= bytes_equal(today, value);
    if (strncmp(vector->name, "typical", 7) == 0) {
        memcpy(typical[kind].at, today.at, today.len);
        typical[kind].len = today.len;
    }
    good &= record_get(today, kind, slot, &record) == RECORD_GOOD &&
            means(kind, slot, &record, vector->text);
    return good ? VECTOR_GOOD : VECTOR_BAD;
}

/* ---- what must not be missing ---- */

/* What a field has in its struct, and at most as bytes. */
static const struct {
    size_t size;
    uint32_t len_max;
} extents[] = {
    [FIELD_U32] = {4, 4},
    [FIELD_U64] = {8, 8},
    [FIELD_TIME] = {8, 8},
    [FIELD_ADDRESS] = {sizeof(struct address), 1 + 16 + 4 + ADDRESS_ZONE_LEN_MAX},
    [FIELD_NAME] = {sizeof(struct bytes), 2 + RECORD_NAME_MAX},
    [FIELD_HANDLE] = {sizeof(struct bytes), 1 + RECORD_FH_MAX},
    [FIELD_WORD] = {sizeof(struct bytes), 1 + RECORD_PROTOCOL_MAX},
    [FIELD_PRIV] = {RECORD_PRIV_LEN, RECORD_PRIV_LEN},
};

/* The encoder measures nothing on its way. */
static bool longest_value_fits(const struct record_layout *layout)
{
    uint32_t len = 8;
    for (uint32_t i = 0; i < layout->count; i++)
        len += extents[layout->fields[i].type].len_max;
    return len <= RECORD_VALUE_MAX || is_same(layout->name, "too long", "RECORD_VALUE_MAX at most");
}

/* No gap that could be a member, and no byte that two rows have. Members are 4 bytes or more; a gap
 * of 4 is padding where the next member, or the end, is at a multiple of 8. */
static bool rows_cover_struct(const struct record_layout *layout)
{
    bool has_row[sizeof(union record_any)] = {false};
    for (uint32_t i = 0; i < layout->count; i++)
        for (size_t at = 0; at < extents[layout->fields[i].type].size; at++) {
            bool *byte = &has_row[layout->fields[i].offset + at];
            if (*byte)
                return is_same(layout->fields[i].name, "in two rows", "in one");
            *byte = true;
        }
    size_t gap = 0;
    for (size_t at = 0; at <= layout->size; at++) {
        if (at < layout->size && !has_row[at]) {
            gap++;
            continue;
        }
        if (gap > 4 || (gap > 0 && at % 8 != 0))
            return is_same(layout->name, "a struct with members that have no row", "covered");
        gap = 0;
    }
    return true;
}

static bool nothing_is_missing(void)
{
    bool good = true;
    for (int kind = RECORD_SERVER; kind < RECORD_KIND_END; kind++) {
        const struct record_layout *layout = record_layout_of((enum record_kind)kind);
        good &= longest_value_fits(layout) && rows_cover_struct(layout);
        for (uint32_t format = layout->since; format <= RECORD_FORMAT; format++) {
            if (has_vector[kind][format])
                continue;
            vector_say("%s has no vector of format %u; a typical one today:", layout->name, format);
            fputs("# ", stdout);
            record_text_hex(stdout, (struct bytes){typical[kind].at, typical[kind].len});
            putchar('\n');
            good = false;
        }
    }
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: store_vectors DIRECTORY\n");
        return 2;
    }
    return vector_run_directory(argv[1], check, nothing_is_missing);
}
