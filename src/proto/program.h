/*
 * program.h -- an RPC program as data: one row per procedure.
 *
 * rpc/server.c knows no program by name. A row says how the arguments become a request and how the
 * response becomes bytes; flags say what is special. A row without a name is a gap in the numbers.
 */
#ifndef PROTO_PROGRAM_H
#define PROTO_PROGRAM_H

#include "codec/xdr.h"
#include "core/message.h"

enum procedure_flag {
    PROCEDURE_STATELESS = 1, /* observes nothing: answered at once, past the gate */
    PROCEDURE_CACHED = 2, /* repeating it is not harmless: the duplicate cache answers (R-DRC-1) */
};

struct procedure {
    const char *name; /* NULL: no such procedure */
    /* The whole argument body. False: GARBAGE_ARGS. */
    bool (*decode)(struct xdr_in *in, struct request *ret);
    /* The result body behind the reply header; NULL: void. */
    void (*encode)(struct xdr_out *out, const struct response *response);
    uint32_t flags;
};

struct program {
    uint32_t number;
    const char *name;
    uint32_t version_low, version_high; /* for PROG_MISMATCH */
    const struct procedure *procedures;
    uint32_t procedure_count;
    uint32_t record_max; /* longest call accepted */
    uint32_t reply_max;  /* longest reply written, header included */
};

#endif
