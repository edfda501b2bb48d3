/*
 * nlm_random.c -- src/codec and libtirpc agree on NLM bodies that nobody chose.
 *
 * For every procedure of every version, with random values in which edges are frequent:
 *   libtirpc writes the arguments, we read them: the same values.
 *   We write what we send (results, and the arguments of GRANTED and of the _RES calls), libtirpc
 *   reads it: the same values.
 *   The arguments with some words or bytes changed, cut or extended: both refuse them, or both read
 *   the same values. Two differences are meant: libtirpc takes any word for the mode and the access
 *   of a share, and its names end at a NUL.
 *
 * usage: nlm_random ROUNDS SEED
 */
#include "base/prng.h"
#include "nlm_ours.h"
#include "nlm_tirpc.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 8192, NETOBJ_MAX = 1024, FLAWED_PER_ROUND = 8 };

static struct prng prng;
static const uint32_t versions[NLM_BODY_VERSIONS] = {1, 3, 4};

static struct nlm_body_bytes random_bytes(uint32_t max, bool text)
{
    static const uint32_t edges[] = {0, 1, 4, 8, 32, 64, 1023, 1024};
    struct nlm_body_bytes bytes = {0};
    bytes.len =
        prng_chance(&prng, 50) ? (uint32_t)prng_below(&prng, 40) : edges[prng_below(&prng, 8)];
    if (prng_chance(&prng, 5))
        bytes.len = max;
    for (uint32_t i = 0; i < bytes.len; i++)
        bytes.at[i] = (uint8_t)(text ? 1 + prng_below(&prng, 255) : prng_next(&prng));
    return bytes;
}

static uint64_t random_number(uint64_t max)
{
    static const uint64_t edges[] = {0, 1, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    uint64_t number = prng_next(&prng);
    if (prng_chance(&prng, 50))
        number = edges[prng_below(&prng, 6)] + prng_below(&prng, 3) - 1;
    return number & max;
}

static uint32_t random_word(void)
{
    return (uint32_t)random_number(UINT32_MAX);
}

/* A holder as the core has them: bytes that the version can say, or to the end of the file. */
static void random_holder(struct nlm_body *body, uint64_t max)
{
    uint64_t last_max = max == UINT32_MAX ? max : (uint64_t)INT64_MAX;
    uint64_t start = random_number(last_max), end = random_number(last_max);
    body->offset = start < end ? start : end;
    body->len = (start < end ? end - start : start - end) + 1;
    if (prng_chance(&prng, 20) || body->len > max)
        body->len = 0;
}

static void random_body(uint32_t version, enum nlm_shape shape, struct nlm_body *ret)
{
    uint64_t max = version == 4 ? UINT64_MAX : UINT32_MAX;
    memset(ret, 0, sizeof *ret);
    ret->cookie = random_bytes(NETOBJ_MAX, false);
    ret->name = random_bytes(shape == NLM_SHAPE_NOTIFY ? NETOBJ_MAX + 1 : NETOBJ_MAX, true);
    ret->fh = random_bytes(NETOBJ_MAX, false);
    ret->oh = random_bytes(NETOBJ_MAX, false);
    ret->block = prng_chance(&prng, 50);
    ret->exclusive = prng_chance(&prng, 50);
    ret->reclaim = prng_chance(&prng, 50);
    ret->svid = random_word();
    ret->state = random_word();
    ret->mode = (uint32_t)prng_below(&prng, 4);
    ret->access = (uint32_t)prng_below(&prng, 4);
    /* Of the statuses that the version has; a TEST never finds a deadlock. */
    do
        ret->stat = (uint32_t)prng_below(&prng, version == 4 ? 10 : 5);
    while (shape == NLM_SHAPE_TESTRES && ret->stat == 5);
    ret->offset = random_number(max);
    ret->len = random_number(max);
    if (shape == NLM_SHAPE_TESTRES)
        random_holder(ret, max);
    for (size_t i = 0; i < sizeof ret->priv; i++)
        ret->priv[i] = (uint8_t)prng_next(&prng);
}

static bool same_text(enum nlm_shape shape, const struct nlm_body *a, const struct nlm_body *b,
                      bool with_holder)
{
    static char text_a[NLM_BODY_TEXT_MAX], text_b[NLM_BODY_TEXT_MAX];
    nlm_body_print(shape, a, with_holder, text_a);
    nlm_body_print(shape, b, with_holder, text_b);
    if (strcmp(text_a, text_b) == 0)
        return true;
    vector_say("libtirpc %s", text_a);
    vector_say("ours     %s", text_b);
    return false;
}

/* An allocation of exactly its size, where the sanitizer sees both ends. */
static bool get_ours(uint32_t version, enum nlm_shape shape, const uint8_t *bytes, size_t len,
                     struct nlm_body *ret)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    if (copy == NULL)
        abort();
    memcpy(copy, bytes, len);
    bool good = nlm_ours_get(version, shape, (struct bytes){copy, (uint32_t)len}, ret);
    free(copy);
    return good;
}

static bool they_write_we_read(uint32_t version, enum nlm_shape shape, const struct nlm_body *body,
                               uint8_t *ret_bytes, size_t *ret_len)
{
    static struct nlm_body read;
    if (!nlm_tirpc_put(version, shape, body, ret_bytes, BYTES_MAX, ret_len)) {
        vector_say("libtirpc does not write a body");
        return false;
    }
    if (!get_ours(version, shape, ret_bytes, *ret_len, &read)) {
        vector_say("we refuse %zu bytes that libtirpc wrote", *ret_len);
        return false;
    }
    return same_text(shape, body, &read, false);
}

static bool we_write_they_read(uint32_t version, enum nlm_shape shape, const struct nlm_body *body)
{
    static uint8_t bytes[BYTES_MAX];
    static struct nlm_body read;
    struct xdr_out out = xdr_out_of(bytes, sizeof bytes);
    nlm_ours_put(version, shape, &out, body);
    if (out.overflowed || !nlm_tirpc_get(version, shape, bytes, xdr_out_len(&out), &read)) {
        vector_say("libtirpc refuses %u bytes that we wrote", xdr_out_len(&out));
        return false;
    }
    return same_text(shape, &read, body, true);
}

/* Changes, cuts or extends; the new length is returned. */
static size_t spoil(uint8_t *bytes, size_t len)
{
    static const uint32_t words[] = {0, 1, 2, 3, 4, 5, 1024, 1025, 1026, 0x7fffffff, UINT32_MAX};
    for (uint64_t i = prng_below(&prng, 3); i > 0 && len >= 4; i--)
        store_be32(bytes + 4 * prng_below(&prng, len / 4), words[prng_below(&prng, 11)]);
    if (prng_chance(&prng, 40) && len > 0)
        bytes[prng_below(&prng, len)] ^= (uint8_t)prng_next(&prng);
    if (prng_chance(&prng, 20))
        return prng_below(&prng, len + 1);
    size_t more = prng_chance(&prng, 20) ? 1 + prng_below(&prng, 8) : 0;
    for (size_t i = 0; i < more; i++)
        bytes[len + i] = (uint8_t)prng_next(&prng);
    return len + more;
}

static bool both_read_the_same(uint32_t version, enum nlm_shape shape, const uint8_t *bytes,
                               size_t len)
{
    static struct nlm_body theirs, ours;
    bool they_accept = nlm_tirpc_get(version, shape, bytes, len, &theirs);
    bool we_accept = get_ours(version, shape, bytes, len, &ours);
    if (shape == NLM_SHAPE_SHAREARGS && (theirs.mode > 3 || theirs.access > 3))
        return !we_accept;
    if (they_accept != we_accept) {
        vector_say("%zu bytes: libtirpc %s, we %s", len, they_accept ? "accepts" : "refuses",
                   we_accept ? "accept" : "refuse");
        return false;
    }
    ours.name.len = (uint32_t)strnlen((const char *)ours.name.at, ours.name.len);
    return !we_accept || same_text(shape, &theirs, &ours, false);
}

static bool is_right(uint32_t version, const struct nlm_body_row *row)
{
    static uint8_t bytes[BYTES_MAX], spoiled[BYTES_MAX + 8];
    static struct nlm_body body;
    size_t len;
    random_body(version, row->args, &body);
    if (!they_write_we_read(version, row->args, &body, bytes, &len))
        return false;
    if (nlm_ours_writes(row->args) && !we_write_they_read(version, row->args, &body))
        return false;
    for (int i = 0; i < FLAWED_PER_ROUND; i++) {
        memcpy(spoiled, bytes, len);
        if (!both_read_the_same(version, row->args, spoiled, spoil(spoiled, len)))
            return false;
    }
    random_body(version, row->result, &body);
    return we_write_they_read(version, row->result, &body);
}

int main(int argc, char **argv)
{
    unsigned test = 0, failed = 0;
    unsigned long rounds = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    if (rounds == 0) {
        fprintf(stderr, "usage: nlm_random ROUNDS SEED\n");
        return 2;
    }
    prng.state = strtoull(argv[2], NULL, 10);
    for (size_t v = 0; v < NLM_BODY_VERSIONS; v++) {
        for (size_t i = 0; i < NLM_BODY_PROCEDURES; i++) {
            const struct nlm_body_row *row = &nlm_body_rows[i];
            bool good = true;
            if (row->since > versions[v])
                continue;
            for (unsigned long round = 0; round < rounds && good; round++)
                good = is_right(versions[v], row);
            failed += !good;
            printf("%s %u - version %u %s\n", good ? "ok" : "not ok", ++test, versions[v],
                   row->name);
        }
    }
    printf("1..%u\n", test);
    return failed == 0 ? 0 : 1;
}
