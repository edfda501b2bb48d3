/*
 * program.h -- an RPC program as data: versions, and one row per procedure.
 *
 * rpc/server.c knows no program by name. A row says how the arguments become a request and how the
 * response becomes bytes, in which version of the program; flags say what is special. A row without
 * a name is a gap in the numbers.
 *
 * A procedure of the lock service has decode and encode, and the core between them. One that needs
 * no core has respond instead: it observes nothing that a crash could undo, so its reply leaves at
 * once.
 *
 * A program of files is executed elsewhere (job.h): its rows have a name, and say how a call is
 * recognised when it is repeated.
 *
 * A message is a procedure whose reply is void and whose result follows as a call from us to the
 * caller: of the procedure named in its row, in the same version.
 */
#ifndef PROTO_PROGRAM_H
#define PROTO_PROGRAM_H

#include "codec/rpc_msg.h"
#include "core/message.h"

enum procedure_flag {
    PROCEDURE_STATELESS = 1, /* observes nothing: answered at once, past the gate */
    PROCEDURE_CACHED =
        2, /* repeating it is not harmless: the duplicate request cache replies (R-DRC-1) */
    PROCEDURE_MESSAGE = 4, /* its result is a call of result_proc */
};

struct procedure {
    const char *name; /* NULL: no such procedure */
    /* The whole argument body. False: GARBAGE_ARGS. */
    bool (*decode)(struct xdr_in *in, uint32_t version, struct request *ret);
    /* The result body behind the reply header; NULL: void. */
    void (*encode)(struct xdr_out *out, uint32_t version, const struct response *response);
    /*
     * Instead of both: reads the arguments and writes the result. `context` is the program's. What
     * was written counts only with RPC_SUCCESS; a result that does not fit becomes SYSTEM_ERR.
     */
    enum rpc_accept_stat (*respond)(void *context, const struct peer *from, struct xdr_in *in,
                                    struct xdr_out *out);
    /*
     * Of a program that is executed elsewhere. What a cached procedure changes, as the bytes of the
     * arguments that name it; and how many bytes of result a call asks for, beyond a few hundred
     * (NULL: none). And where the data begins that ends its arguments, if that need not be looked
     * at to execute it, of `len` bytes that begin with `args`; 0: it must, or there is none (NULL:
     * always). All see arguments that nobody has checked.
     */
    struct bytes (*subject)(struct bytes args);
    uint32_t (*weigh)(struct bytes args);
    uint32_t (*data_at)(struct bytes args, uint32_t len);
    uint32_t flags;
    uint32_t result_proc; /* PROCEDURE_MESSAGE */
};

struct program_version {
    uint32_t number;
    const struct procedure *procedures; /* by procedure number */
    uint32_t procedure_count;
};

struct program {
    uint32_t number;
    const char *name;
    const struct program_version *versions; /* ascending; PROG_MISMATCH names the ends */
    uint32_t version_count;
    uint32_t record_max; /* longest call accepted */
    uint32_t reply_max;  /* longest reply, or call with a result, with its header */
    void *context;       /* for respond; borrowed */
    bool is_away; /* calls but NULL are executed behind the desk (job.h), and decoded there */
    bool is_stream_only; /* served over TCP, not in datagrams */
};

#endif
