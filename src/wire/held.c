/*
 * held.c -- see held.h.
 */
#include "wire/held.h"

#include "base/units.h"

#include <stdlib.h>

void held_done(struct held *held)
{
    while (held->count > 0)
        free(held->at[--held->count].bytes);
}

/* One of the first `count`. */
static bool has_among(const struct held *held, uint32_t count, const struct address *from)
{
    for (uint32_t i = 0; i < count; i++)
        if (address_equal(&held->at[i].from.peer.address, from))
            return true;
    return false;
}

bool held_has(const struct held *held, const struct address *from)
{
    return has_among(held, held->count, from);
}

void held_add(struct held *held, const struct rpc_source *from, struct bytes datagram,
              uint64_t now_ns)
{
    uint8_t *copy = held->count < HELD_MAX ? malloc(datagram.len) : NULL;
    if (copy == NULL)
        return;
    memcpy(copy, datagram.at, datagram.len);
    held->at[held->count++] = (struct held_datagram){*from, now_ns, copy, datagram.len};
}

void held_offer(struct held *held, uint64_t now_ns,
                bool (*deliver)(void *context, const struct rpc_source *from,
                                struct bytes datagram),
                void *context)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < held->count; i++) {
        struct held_datagram *one = &held->at[i];
        bool is_over = now_ns - one->since_ns >= (uint64_t)HELD_PATIENCE_S * SECOND_NS;
        bool is_behind = has_among(held, kept, &one->from.peer.address);
        if (is_over ||
            (!is_behind && deliver(context, &one->from, (struct bytes){one->bytes, one->len})))
            free(one->bytes);
        else
            held->at[kept++] = *one;
    }
    held->count = kept;
}
