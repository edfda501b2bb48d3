/*
 * record_layout.h -- what a record is made of: the rows of record.c, which everything walks.
 *
 * record.c has a row for each field of each kind, in the order of their bytes. Both codecs in every
 * format, the check of stored values, the columns of PostgreSQL (postgres_table.c), the lines of
 * `holdfast store export` (daemon/store_json.c) and the tests walk these rows; none of them knows a
 * kind.
 *
 * To add a field: a member in record.h and its row in record.c, with SINCE, which says what records
 * of older formats have in its place. Raise RECORD_FORMAT. A row with COLUMN needs a migration
 * (src/store/sql). In tests/vectors/store the old vectors of its kind say what it is in them, and
 * each kind gets a vector of the new format; the test prints both. Write down what it may be in
 * test_record_rules.c.
 *
 * To add a kind: its number and struct in record.h, and there its codecs; its rows and its layout
 * in record.c; a migration with its table; a file of vectors. Then the core must load and write it
 * (core/recover.c, core/write.c).
 *
 * Always true:
 *  (1) The rows of a kind cover its struct. A member without a row would not come back.
 *  (2) A stored field keeps its place and type: rows are added at the end, never moved.
 *  (3) Columns and keys of JSON are for people. Nothing is read back from them.
 */
#ifndef STORE_RECORD_LAYOUT_H
#define STORE_RECORD_LAYOUT_H

#include "base/check.h"
#include "store/record.h"

/* What a field is in the struct, in its bytes, as a column, and as JSON. */
enum record_type {
    FIELD_U32,     /* uint32_t: 4 bytes; bigint; a number */
    FIELD_U64,     /* uint64_t: 8 bytes; bigint; a number */
    FIELD_TIME,    /* uint64_t, nanoseconds since 1970: 8 bytes; timestamptz; a number */
    FIELD_ADDRESS, /* struct address: family, bytes and zone; text; a string */
    FIELD_NAME,    /* struct bytes: length 2, up to RECORD_NAME_MAX of any; text; a string */
    FIELD_HANDLE,  /* struct bytes: length 1, 1 to RECORD_FH_MAX; bytea; hexadecimal */
    FIELD_WORD,    /* struct bytes: length 1, as record_is_protocol says; text; a string */
    FIELD_PRIV,    /* uint8_t[]: RECORD_PRIV_LEN bytes; bytea; hexadecimal */
};

/* Which numbers an encoder writes. A decoder refuses all others, so the core may rely on what it
 * loads as on what it made itself. */
enum record_rule {
    RULE_ANY,
    RULE_ODD,
    RULE_NOT_ZERO,
    RULE_ONE_OF,       /* a bit of `known` for each value, all of them below 64 */
    RULE_FLAGS,        /* none but those in `known` */
    RULE_SLOT,         /* of a record */
    RULE_SLOT_OR_NONE, /* or UINT32_MAX */
    RULE_END,          /* inclusive end of what begins with the field before; JSON: its length */
};

struct record_field {
    enum record_type type;
    enum record_rule rule;
    const char *name;         /* of the member */
    const char *column;       /* of its table; NULL: not shown there */
    const char *json;         /* key; NULL: not shown there */
    const char *const *words; /* what its column has in place of its numbers; NULL: those */
    uint64_t known;           /* see enum record_rule */
    uint32_t json_flag;       /* not 0: JSON shows whether this flag is set */
    uint16_t offset;          /* of the member */
    uint16_t like, like_len;  /* offset of another member, and its size; see `since` */
    uint8_t since;            /* the format that brought it; 0: its kind's. In a record of an older
                                 one it is 0, or what the other member is */
    uint8_t json_at;          /* place among the keys, from 1: not the order of the bytes */
};

struct record_layout {
    const char *name;  /* what operators read: "lock" */
    const char *table; /* of PostgreSQL; NULL: the server's own row */
    uint32_t since;    /* the format that brought this kind */
    uint32_t count;    /* of fields */
    size_t size;       /* of the struct */
    const struct record_field *fields;
    bool (*agrees)(const void *record); /* what no single field says; NULL: nothing */
};

const struct record_layout *record_layout_of(enum record_kind kind);

/* The value of a field of a record: a number, an address, or all others. */
static inline uint64_t record_layout_number(const struct record_field *field, const void *record)
{
    const void *member = (const uint8_t *)record + field->offset;
    return field->type == FIELD_U32 ? *(const uint32_t *)member : *(const uint64_t *)member;
}

static inline const struct address *record_layout_address(const struct record_field *field,
                                                          const void *record)
{
    CHECK(field->type == FIELD_ADDRESS);
    return (const void *)((const uint8_t *)record + field->offset);
}

static inline struct bytes record_layout_bytes(const struct record_field *field, const void *record)
{
    const uint8_t *member = (const uint8_t *)record + field->offset;
    if (field->type == FIELD_PRIV)
        return (struct bytes){member, RECORD_PRIV_LEN};
    return *(const struct bytes *)(const void *)member;
}

#endif
