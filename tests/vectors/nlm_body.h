/*
 * nlm_body.h -- NLM arguments and results as plain values, apart from any codec.
 *
 * src/codec and rpcgen both use the protocol's names for their types, so no file can include both;
 * and the vectors are text. A body is what all three can be turned into: nlm_ours.c does it for
 * src/codec, nlm_tirpc.c for libtirpc, and this file for text. It uses nothing of src.
 *
 * The vectors of NLM are in nlm_<procedure>.txt. Their `more` line names the versions to which the
 * bytes belong: "vers=1,3", "vers=4" or "vers=1,3,4". The arguments of TEST_RES have their holder
 * there too: nothing of ours reads it.
 */
#ifndef VECTORS_NLM_BODY_H
#define VECTORS_NLM_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NLM_BODY_BYTES_MAX = 1025,
    NLM_BODY_TEXT_MAX = 16384,
    NLM_BODY_VERSIONS = 3,
    NLM_BODY_PROCEDURES = 21,
};

enum nlm_shape {
    NLM_SHAPE_VOID,
    NLM_SHAPE_TESTARGS,
    NLM_SHAPE_LOCKARGS,
    NLM_SHAPE_CANCARGS,
    NLM_SHAPE_UNLOCKARGS,
    NLM_SHAPE_SHAREARGS,
    NLM_SHAPE_RES,
    NLM_SHAPE_TESTRES,
    NLM_SHAPE_SHARERES,
    NLM_SHAPE_NOTIFY,
    NLM_SHAPE_UPCALL,
};

/* One more for the NUL that rpcgen's strings want. */
struct nlm_body_bytes {
    uint8_t at[NLM_BODY_BYTES_MAX + 1];
    uint32_t len;
};

/* The fields that a shape does not have are zero. */
struct nlm_body {
    struct nlm_body_bytes cookie, name, fh, oh;
    uint32_t block, exclusive, reclaim, svid, state, mode, access, stat, sequence;
    uint64_t offset, len;
    uint8_t priv[16];
};

struct nlm_body_row {
    const char *name;
    uint32_t number, since; /* the first version that has the procedure */
    enum nlm_shape args, result;
};

/* Ascending by number. */
extern const struct nlm_body_row nlm_body_rows[NLM_BODY_PROCEDURES];

/* The procedure that a file is named after, or NULL when it is not a file of NLM. */
const struct nlm_body_row *nlm_body_row_of_file(const char *file);

/* The versions of a `more` line; their number is returned, 0 when it does not name them. */
unsigned nlm_body_versions(const char *more, uint32_t ret[static NLM_BODY_VERSIONS]);

/* What a text says; the holder of a testres is in a text of its own. Ends the program when a field
 * is missing. */
void nlm_body_parse(enum nlm_shape shape, const char *text, const char *holder_text,
                    struct nlm_body *ret);

/* The text of a body, with the holder of a testres or without. */
void nlm_body_print(enum nlm_shape shape, const struct nlm_body *body, bool with_holder,
                    char ret[static NLM_BODY_TEXT_MAX]);

#endif
