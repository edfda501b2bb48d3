/*
 * record_make.c -- records of every kind for tests; see record_make.h.
 */
#include "record_make.h"

/* The n-th member of a set of numbers below 64, from 0; the last one when there are not so many. */
static uint64_t member_of(uint64_t set, uint64_t n)
{
    for (; n > 0 && (set & (set - 1)) != 0; n--)
        set &= set - 1;
    return (uint64_t)__builtin_ctzll(set);
}

/* A number that obeys the rule of its field. `any` is one that need not. */
static uint64_t number_for(const struct record_field *field, enum record_make how, uint64_t any,
                           const void *record)
{
    bool is_longest = how == RECORD_MAKE_LONGEST;
    switch (field->rule) {
    case RULE_ANY:
        return any;
    case RULE_ODD:
    case RULE_NOT_ZERO:
        return any | 1;
    case RULE_ONE_OF:
        return member_of(field->known, is_longest ? 63 : any % 8);
    case RULE_FLAGS:
        return is_longest ? field->known : any & field->known;
    case RULE_SLOT:
    case RULE_SLOT_OR_NONE:
        return is_longest ? RECORD_SLOT_MAX - 1 : any % RECORD_SLOT_MAX;
    case RULE_END:
        return any | record_layout_number(field - 1, record);
    }
    UNREACHABLE();
}

static uint32_t len_for(uint32_t min, uint32_t max, enum record_make how, struct prng *prng)
{
    if (how != RECORD_MAKE_RANDOM)
        return how == RECORD_MAKE_LEAST ? min : max;
    if (prng_chance(prng, 2))
        return max;
    uint32_t usual = max < 32 ? max : 32;
    return min + (uint32_t)prng_below(prng, prng_chance(prng, 5) ? max - min + 1 : usual);
}

static struct bytes bytes_for(const struct record_field *field, enum record_make how,
                              struct prng *prng, struct record_make_room *room)
{
    bool is_name = field->type == FIELD_NAME, is_word = field->type == FIELD_WORD;
    uint32_t max = is_name ? RECORD_NAME_MAX : is_word ? RECORD_PROTOCOL_MAX : RECORD_FH_MAX;
    CHECK(room->used < sizeof room->at / sizeof room->at[0]);
    struct bytes bytes = {room->at[room->used], len_for(is_name ? 0 : 1, max, how, prng)};
    uint8_t *at = room->at[room->used++];
    for (uint32_t i = 0; i < bytes.len; i++) {
        at[i] = (uint8_t)(how == RECORD_MAKE_RANDOM ? prng_next(prng) : i * 3 + room->used);
        if (is_word)
            at[i] = (uint8_t)('a' + at[i] % 26);
    }
    return bytes;
}

static struct address address_for(enum record_make how, uint64_t any)
{
    uint8_t bytes[16] = {0xfe, 0x80, [15] = (uint8_t)any};
    if (how == RECORD_MAKE_LONGEST)
        return address_v6(bytes, any % 2 == 0 ? "enp65535s0f0np0" : "enp65535s0f0np1");
    if (how == RECORD_MAKE_LEAST || any % 4 == 0)
        return (struct address){0};
    return any % 4 == 1 ? address_v4(bytes + 12) : address_v6(bytes, any % 4 == 2 ? NULL : "eth0");
}

static void make_field(const struct record_field *field, enum record_make how, uint64_t any,
                       struct prng *prng, struct record_make_room *room, void *record)
{
    void *member = (uint8_t *)record + field->offset;
    switch (field->type) {
    case FIELD_U32:
        *(uint32_t *)member = (uint32_t)number_for(field, how, any, record);
        return;
    case FIELD_U64:
    case FIELD_TIME:
        *(uint64_t *)member = number_for(field, how, any, record);
        return;
    case FIELD_ADDRESS:
        *(struct address *)member = address_for(how, any);
        return;
    case FIELD_NAME:
    case FIELD_HANDLE:
    case FIELD_WORD:
        *(struct bytes *)member = bytes_for(field, how, prng, room);
        return;
    case FIELD_PRIV:
        memset(member, (int)(any & 0xff), RECORD_PRIV_LEN);
        return;
    }
    UNREACHABLE();
}

void record_make(enum record_make how, enum record_kind kind, struct prng *prng,
                 struct record_make_room *room, union record_any *ret)
{
    const struct record_layout *layout = record_layout_of(kind);
    bool agrees = false;
    while (!agrees) {
        memset(ret, 0, sizeof *ret);
        room->used = 0;
        for (uint32_t i = 0; i < layout->count; i++) {
            uint64_t any = how == RECORD_MAKE_LEAST     ? 0
                           : how == RECORD_MAKE_LONGEST ? UINT64_MAX - UINT64_C(2) * i
                                                        : prng_next(prng);
            make_field(&layout->fields[i], how, any, prng, room, ret);
        }
        agrees = layout->agrees == NULL || layout->agrees(ret);
        CHECK(agrees || how == RECORD_MAKE_RANDOM); /* the others come out the same again */
    }
}
