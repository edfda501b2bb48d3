/*
 * oracle.c -- the vectors against an implementation that shares nothing with ours: XDR routines
 * that rpcgen makes from the system's sm_inter.x, and libtirpc's for RPC headers and the
 * portmapper.
 *
 * For each vector the oracle encodes the values of its text and compares with its hex, and decodes
 * the hex and compares with its text; it also agrees that every proper prefix is too short. What we
 * refuse it refuses, for the same reason. So a vector cannot be wrong in the same way as src/codec.
 *
 * The vectors of NLM go through nlm_tirpc.c, which has nlm_prot.x and our nlm4.x; those of NFS and
 * MOUNT through nfs_tirpc.c and our nfs3.x.
 *
 * SM_NOTIFY and its stat_chge are missing from sm_inter.x and come from stat_chge.x beside this
 * file. Where libtirpc cannot say a thing, the vector says so in its oracle line.
 *
 * usage: oracle DIRECTORY
 */
#include "nfs_tirpc.h"
#include "nlm_tirpc.h"
#include "oracle_body.h"

#include <stdlib.h>
#include <string.h>

enum { AUTH_BODY_SIZE = 400 };

static const char auth_stat_words[][16] = {
    [AUTH_BADCRED] = "BADCRED",
    [AUTH_REJECTEDCRED] = "REJECTEDCRED",
    [AUTH_TOOWEAK] = "TOOWEAK",
};
static const char accept_stat_words[][16] = {
    [SUCCESS] = "SUCCESS",
    [PROG_UNAVAIL] = "PROG_UNAVAIL",
    [PROG_MISMATCH] = "PROG_MISMATCH",
    [PROC_UNAVAIL] = "PROC_UNAVAIL",
    [GARBAGE_ARGS] = "GARBAGE_ARGS",
    [SYSTEM_ERR] = "SYSTEM_ERR",
};

/* The index of a word in a list of them, or -1. */
static int word_index(const char *text, const char *key, const char (*words)[16], int count)
{
    for (int i = 0; i < count; i++)
        if (words[i][0] != '\0' && vector_is(text, key, words[i]))
            return i;
    return -1;
}

static char sys_memory[AUTH_BODY_SIZE], machine_memory[256];

/* The AUTH_SYS credential of a call, encoded by libtirpc. False: it could not be. */
static bool encode_auth_sys(const struct vector *vector, struct opaque_auth *ret)
{
    gid_t gids[16];
    struct authunix_parms parms = {
        .aup_time = vector_number(vector->more, "stamp"),
        .aup_machname = machine_memory,
        .aup_uid = vector_number(vector->text, "uid"),
        .aup_gid = vector_number(vector->text, "gid"),
        .aup_gids = gids,
    };
    size_t len = vector_string(vector->text, "machine", (uint8_t *)machine_memory, 255);
    machine_memory[len] = '\0';
    const char *list = vector_field(vector->more, "gids");
    if (list != NULL && strncmp(list, "none", 4) != 0) {
        do {
            char *end;
            gids[parms.aup_len++] = (gid_t)strtoul(list, &end, 10);
            list = *end == ',' ? end + 1 : NULL;
        } while (list != NULL && parms.aup_len < 16);
    }
    XDR xdrs;
    xdrmem_create(&xdrs, sys_memory, sizeof sys_memory, XDR_ENCODE);
    if (!xdr_authunix_parms(&xdrs, &parms))
        return false;
    *ret = (struct opaque_auth){AUTH_SYS, sys_memory, xdr_getpos(&xdrs)};
    return true;
}

static bool encode_call(XDR *xdrs, const struct vector *vector)
{
    struct rpc_msg msg;
    memset(&msg, 0, sizeof msg);
    msg.rm_xid = vector_number(vector->text, "xid");
    msg.rm_direction = CALL;
    msg.rm_call.cb_rpcvers = RPC_MSG_VERSION;
    msg.rm_call.cb_prog = vector_number(vector->text, "prog");
    msg.rm_call.cb_vers = vector_number(vector->text, "vers");
    msg.rm_call.cb_proc = vector_number(vector->text, "proc");
    if (vector_is(vector->text, "cred", "sys") && !encode_auth_sys(vector, &msg.rm_call.cb_cred))
        return false;
    const struct oracle_procedure *procedure =
        oracle_body_by_number(msg.rm_call.cb_prog, msg.rm_call.cb_vers, msg.rm_call.cb_proc);
    if (procedure == NULL)
        return false;
    union oracle_body body = oracle_body_of(procedure->args, vector->text);
    return xdr_callmsg(xdrs, &msg) && oracle_body_routine(procedure->args)(xdrs, &body);
}

static bool encode_reply(XDR *xdrs, const char *file, const struct vector *vector)
{
    struct rpc_msg msg;
    memset(&msg, 0, sizeof msg);
    const char *text = vector->text;
    msg.rm_xid = vector_number(text, "xid");
    msg.rm_direction = REPLY;
    if (vector_is(text, "denied", "RPC_MISMATCH")) {
        msg.rm_reply.rp_stat = MSG_DENIED;
        msg.rjcted_rply.rj_stat = RPC_MISMATCH;
        msg.rjcted_rply.rj_vers.low = vector_number(text, "low");
        msg.rjcted_rply.rj_vers.high = vector_number(text, "high");
        return xdr_replymsg(xdrs, &msg);
    }
    if (vector_is(text, "denied", "AUTH_ERROR")) {
        msg.rm_reply.rp_stat = MSG_DENIED;
        msg.rjcted_rply.rj_stat = AUTH_ERROR;
        msg.rjcted_rply.rj_why =
            (enum auth_stat)word_index(text, "why", auth_stat_words, AUTH_TOOWEAK + 1);
        return xdr_replymsg(xdrs, &msg);
    }
    int stat = word_index(text, "stat", accept_stat_words, SYSTEM_ERR + 1);
    const struct oracle_procedure *procedure = oracle_body_by_reply(file, text);
    enum oracle_shape shape = procedure != NULL ? procedure->result : ORACLE_VOID;
    union oracle_body body = oracle_body_of(shape, text);
    msg.rm_reply.rp_stat = MSG_ACCEPTED;
    msg.acpted_rply.ar_stat = (enum accept_stat)stat;
    if (stat == PROG_MISMATCH) {
        msg.acpted_rply.ar_vers.low = vector_number(text, "low");
        msg.acpted_rply.ar_vers.high = vector_number(text, "high");
    } else {
        msg.acpted_rply.ar_results.where = (caddr_t)&body;
        msg.acpted_rply.ar_results.proc = oracle_body_routine(shape);
    }
    return stat >= 0 && xdr_replymsg(xdrs, &msg);
}

static bool encode_body(XDR *xdrs, enum oracle_shape shape, const struct vector *vector)
{
    union oracle_body body = oracle_body_of(shape, vector->text);
    return oracle_body_routine(shape)(xdrs, &body);
}

/* Decodes the body at the cursor, to the end of the message, and prints it. */
static bool decode_body(XDR *xdrs, enum oracle_shape shape, size_t len, FILE *out)
{
    union oracle_body body;
    memset(&body, 0, sizeof body);
    bool good = oracle_body_routine(shape)(xdrs, &body) && xdr_getpos(xdrs) == len;
    if (good)
        oracle_body_print(out, shape, &body);
    xdr_free(oracle_body_routine(shape), &body);
    return good;
}

/* Prints the credential, and checks what the vector has beyond its text. */
static bool decode_auth_sys(const struct opaque_auth *cred, const struct vector *vector, FILE *out)
{
    struct authunix_parms parms;
    memset(&parms, 0, sizeof parms);
    XDR xdrs;
    xdrmem_create(&xdrs, cred->oa_base, cred->oa_length, XDR_DECODE);
    bool good = xdr_authunix_parms(&xdrs, &parms) && xdr_getpos(&xdrs) == cred->oa_length;
    if (good) {
        fputs(" cred=sys ", out);
        oracle_body_print_string(out, "machine", parms.aup_machname);
        fprintf(out, " uid=%u gid=%u", (unsigned)parms.aup_uid, (unsigned)parms.aup_gid);
        good =
            vector->kind != VECTOR_CALL || parms.aup_time == vector_number(vector->more, "stamp");
    }
    xdr_free((xdrproc_t)xdr_authunix_parms, &parms);
    return good;
}

/* Prints a call, or the reason why it is none, in the words of the vectors. */
static bool decode_call(XDR *xdrs, const struct vector *vector, size_t len, FILE *out)
{
    static char cred_memory[AUTH_BODY_SIZE], verf_memory[AUTH_BODY_SIZE];
    struct rpc_msg msg;
    memset(&msg, 0, sizeof msg);
    msg.rm_call.cb_cred.oa_base = cred_memory;
    msg.rm_call.cb_verf.oa_base = verf_memory;
    if (!xdr_callmsg(xdrs, &msg)) {
        /* xdr_callmsg reads in order and stops at the first word it does not like. */
        bool version =
            len >= 12 && msg.rm_direction == CALL && msg.rm_call.cb_rpcvers != RPC_MSG_VERSION;
        if (version)
            fprintf(out, "RPC_MISMATCH xid=%u", msg.rm_xid);
        else if (msg.rm_call.cb_cred.oa_length > MAX_AUTH_BYTES)
            fprintf(out, "BAD_CRED xid=%u", msg.rm_xid);
        else if (msg.rm_call.cb_verf.oa_length > MAX_AUTH_BYTES)
            fprintf(out, "BAD_VERF xid=%u", msg.rm_xid);
        else
            fputs("DROP", out);
        return false;
    }
    uint32_t proc = msg.rm_call.cb_proc;
    fprintf(out, "xid=%u prog=%u vers=%u proc=%u", msg.rm_xid, (unsigned)msg.rm_call.cb_prog,
            (unsigned)msg.rm_call.cb_vers, (unsigned)proc);
    bool good = true, none = msg.rm_call.cb_cred.oa_flavor == AUTH_NONE;
    if (none)
        fputs(" cred=none", out);
    else if (msg.rm_call.cb_cred.oa_flavor == AUTH_SYS)
        good = decode_auth_sys(&msg.rm_call.cb_cred, vector, out);
    if (!none && (msg.rm_call.cb_cred.oa_flavor != AUTH_SYS || !good)) {
        rewind(out); /* a stream in memory: its text ends where the last write ends */
        fprintf(out, "%s xid=%u", good ? "REJECTED" : "BAD_CRED", msg.rm_xid);
        return false;
    }
    fputc(' ', out);
    const struct oracle_procedure *procedure =
        oracle_body_by_number(msg.rm_call.cb_prog, msg.rm_call.cb_vers, proc);
    return procedure != NULL && decode_body(xdrs, procedure->args, len, out);
}

static void print_reply(FILE *out, const struct rpc_msg *msg,
                        const struct oracle_procedure *procedure, const union oracle_body *body)
{
    fprintf(out, "xid=%u ", msg->rm_xid);
    if (msg->rm_reply.rp_stat == MSG_DENIED) {
        if (msg->rjcted_rply.rj_stat == RPC_MISMATCH)
            fprintf(out, "denied=RPC_MISMATCH low=%u high=%u",
                    (unsigned)msg->rjcted_rply.rj_vers.low,
                    (unsigned)msg->rjcted_rply.rj_vers.high);
        else
            fprintf(out, "denied=AUTH_ERROR why=%s", auth_stat_words[msg->rjcted_rply.rj_why]);
        return;
    }
    fprintf(out, "stat=%s", accept_stat_words[msg->acpted_rply.ar_stat]);
    if (msg->acpted_rply.ar_stat == PROG_MISMATCH) {
        fprintf(out, " low=%u high=%u", (unsigned)msg->acpted_rply.ar_vers.low,
                (unsigned)msg->acpted_rply.ar_vers.high);
    } else if (procedure != NULL) {
        fprintf(out, " proc=%s ", procedure->name);
        oracle_body_print(out, procedure->result, body);
    }
}

static bool decode_reply(XDR *xdrs, const char *file, const struct vector *vector, size_t len,
                         FILE *out)
{
    const struct oracle_procedure *procedure = oracle_body_by_reply(file, vector->text);
    xdrproc_t routine = oracle_body_routine(procedure != NULL ? procedure->result : ORACLE_VOID);
    static char verf_memory[AUTH_BODY_SIZE];
    union oracle_body body;
    struct rpc_msg msg;
    memset(&body, 0, sizeof body);
    memset(&msg, 0, sizeof msg);
    msg.acpted_rply.ar_verf.oa_base = verf_memory;
    msg.acpted_rply.ar_results.where = (caddr_t)&body;
    msg.acpted_rply.ar_results.proc = routine;
    bool good = xdr_replymsg(xdrs, &msg) && xdr_getpos(xdrs) == len && msg.rm_direction == REPLY;
    if (good)
        print_reply(out, &msg, procedure, &body);
    xdr_free(routine, &body);
    return good;
}

/* The vectors of NLM are for nlm_tirpc.c. */
static bool is_nlm(const char *file)
{
    return strncmp(file, "nlm_", 4) == 0;
}

static enum oracle_shape shape_of(const char *file, const struct vector *vector)
{
    const struct oracle_procedure *procedure = oracle_body_by_file(file);
    if (procedure == NULL)
        return ORACLE_VOID;
    bool is_result = vector->kind == VECTOR_RESULT || vector->kind == VECTOR_BAD_RESULT;
    return is_result ? procedure->result : procedure->args;
}

static bool encode(XDR *xdrs, const char *file, const struct vector *vector)
{
    if (is_nlm(file)) {
        static uint8_t bytes[VECTOR_BYTES_MAX];
        size_t len;
        return nlm_tirpc_encode(file, vector, bytes, sizeof bytes, &len) &&
               XDR_PUTBYTES(xdrs, (char *)bytes, (u_int)len);
    }
    if (vector->kind == VECTOR_CALL)
        return encode_call(xdrs, vector);
    if (vector->kind == VECTOR_REPLY)
        return encode_reply(xdrs, file, vector);
    return encode_body(xdrs, shape_of(file, vector), vector);
}

static bool encodes_to_the_same_bytes(const char *file, const struct vector *vector)
{
    static char bytes[VECTOR_BYTES_MAX];
    XDR xdrs;
    xdrmem_create(&xdrs, bytes, sizeof bytes, XDR_ENCODE);
    if (!encode(&xdrs, file, vector)) {
        vector_say("libtirpc does not encode it");
        return false;
    }
    size_t len = xdr_getpos(&xdrs);
    if (len == vector->len && memcmp(bytes, vector->bytes, len) == 0)
        return true;
    vector_say("libtirpc encodes %zu bytes, the vector has %zu:", len, vector->len);
    for (size_t i = 0; i < len; i++)
        printf("%s%02x%s",
               i % 32 == 0  ? "# "
               : i % 4 == 0 ? " "
                            : "",
               (unsigned char)bytes[i], i % 32 == 31 || i + 1 == len ? "\n" : "");
    return false;
}

/* What the first `len` bytes mean. False: they are refused; *ret_text is freed by the caller. */
static bool decode(const char *file, const struct vector *vector, size_t len, char **ret_text)
{
    static char bytes[VECTOR_BYTES_MAX];
    memcpy(bytes, vector->bytes, len);
    size_t text_len;
    FILE *out = open_memstream(ret_text, &text_len);
    if (out == NULL)
        abort();
    XDR xdrs;
    xdrmem_create(&xdrs, bytes, (u_int)len, XDR_DECODE);
    bool good;
    if (is_nlm(file))
        good = nlm_tirpc_decode(file, vector, len, out);
    else if (vector->kind == VECTOR_CALL || vector->kind == VECTOR_REFUSED)
        good = decode_call(&xdrs, vector, len, out);
    else if (vector->kind == VECTOR_REPLY)
        good = decode_reply(&xdrs, file, vector, len, out);
    else
        good = decode_body(&xdrs, shape_of(file, vector), len, out);
    fclose(out);
    return good;
}

/* What must be refused. */
static bool is_refused(const struct vector *vector)
{
    return vector->kind == VECTOR_GARBAGE || vector->kind == VECTOR_REFUSED ||
           vector->kind == VECTOR_BAD_RESULT;
}

static bool decodes_to_the_same_text(const char *file, const struct vector *vector)
{
    char *text = NULL;
    bool good = decode(file, vector, vector->len, &text);
    bool expected = !is_refused(vector), has_text = expected || vector->kind == VECTOR_REFUSED;
    bool same = good == expected && (!has_text || strcmp(text, vector->text) == 0);
    if (!same) {
        vector_say("expected %s", vector->text);
        vector_say("libtirpc %s: %s", good ? "accepts" : "refuses", text);
    }
    free(text);
    for (size_t len = 0; expected && same && len < vector->len; len++) {
        if (decode(file, vector, len, &text)) {
            vector_say("libtirpc accepts the first %zu of %zu bytes", len, vector->len);
            same = false;
        }
        free(text);
    }
    return same;
}

static enum vector_verdict check(const char *file, const struct vector *vector)
{
    if (vector->oracle == VECTOR_NO_ORACLE)
        return VECTOR_NOT_ASKED;
    if (nfs_tirpc_owns(file))
        return nfs_tirpc_check(file, vector);
    if (vector->oracle == VECTOR_BOTH_WAYS && !is_refused(vector) &&
        !encodes_to_the_same_bytes(file, vector))
        return VECTOR_BAD;
    return decodes_to_the_same_text(file, vector) ? VECTOR_GOOD : VECTOR_BAD;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: oracle DIRECTORY\n");
        return 2;
    }
    return vector_run_directory(argv[1], check, NULL);
}
