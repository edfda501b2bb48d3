/*
 * naming.h -- the names by which a client may know us (R-NOTIFY-2).
 *
 * A status monitor acts on an SM_NOTIFY only when it knows the name in it, or the address that it
 * comes from: FreeBSD compares the name and nothing else, macOS asks for the name of the address,
 * Linux takes either. So a client is notified once under every name that it may have for us:
 *
 *   what we were given at start (--name, the hostname, the short name), in that order
 *   the full name of this host            \  learned from the resolver, if it ever answers
 *   the name of our address that it uses  /
 *   that address in numbers
 *
 * Nothing here waits for a resolver: what is not known is not said.
 */
#ifndef CORE_NAMING_H
#define CORE_NAMING_H

#include "core/core.h"

struct core;

#define NAMING_LEN_MAX 255 /* of a name that a resolver knows */

struct naming_entry {
    struct address local;
    uint32_t len;
    uint8_t name[NAMING_LEN_MAX];
};

struct naming {
    struct naming_entry host; /* whatever the address; len 0: not learned */
    struct naming_entry at[CORE_LOCALS_MAX];
    uint32_t count;
    char numbers[ADDRESS_TEXT_MAX]; /* the last address that was written out */
};

/* Every name for a client that uses this address of ours, each once; at least one. Returns how
 * many. The views live until the next call. */
uint32_t naming_list(struct core *core, const struct address *local,
                     struct bytes ret_names[static CORE_CALL_NAMES_MAX]);

#endif
