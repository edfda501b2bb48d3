/*
 * oracle.c -- the vectors against an implementation that shares nothing with ours: XDR routines
 * that rpcgen makes from the system's sm_inter.x, and the RPC headers of libtirpc.
 *
 * For each vector the oracle encodes the values of its text and compares with its hex, and decodes
 * the hex and compares with its text; it also agrees that every proper prefix is too short. What we
 * refuse it refuses, for the same reason. So a vector cannot be wrong in the same way as src/codec.
 *
 * SM_NOTIFY and its stat_chge are missing from sm_inter.x and come from stat_chge.x beside this
 * file. Where libtirpc cannot say a thing, the vector says so in its oracle line.
 *
 * usage: oracle DIRECTORY
 */
#include "vector.h"

#include "sm_inter.h"
#include "stat_chge.h"

#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NSM_NAME_SIZE = 1025, AUTH_BODY_SIZE = 400, PROCEDURE_COUNT = 7 };

/* The bodies of NSM. */
enum shape {
    SHAPE_VOID,
    SHAPE_NAME,
    SHAPE_MON,
    SHAPE_MON_ID,
    SHAPE_MY_ID,
    SHAPE_CHANGE,
    SHAPE_STAT_RES,
    SHAPE_STAT,
};

union body {
    sm_name name;
    mon monitor;
    mon_id id;
    my_id self;
    stat_chge change;
    sm_stat_res stat_res;
    sm_stat stat;
};

/* By procedure number. */
static const struct {
    const char *name, *file;
    enum shape args, result;
} procedures[PROCEDURE_COUNT] = {
    {"NULL", "nsm_null.txt", SHAPE_VOID, SHAPE_VOID},
    {"STAT", "nsm_stat.txt", SHAPE_NAME, SHAPE_STAT_RES},
    {"MON", "nsm_mon.txt", SHAPE_MON, SHAPE_STAT_RES},
    {"UNMON", "nsm_unmon.txt", SHAPE_MON_ID, SHAPE_STAT},
    {"UNMON_ALL", "nsm_unmon_all.txt", SHAPE_MY_ID, SHAPE_STAT},
    {"SIMU_CRASH", "nsm_simu_crash.txt", SHAPE_VOID, SHAPE_VOID},
    {"NOTIFY", "nsm_notify.txt", SHAPE_CHANGE, SHAPE_VOID},
};

/* xdr_void has another type than every other routine. */
static bool_t no_body(XDR *xdrs, ...)
{
    (void)xdrs;
    return TRUE;
}

static xdrproc_t routine_of(enum shape shape)
{
    switch (shape) {
    case SHAPE_VOID:
        return no_body;
    case SHAPE_NAME:
        return (xdrproc_t)xdr_sm_name;
    case SHAPE_MON:
        return (xdrproc_t)xdr_mon;
    case SHAPE_MON_ID:
        return (xdrproc_t)xdr_mon_id;
    case SHAPE_MY_ID:
        return (xdrproc_t)xdr_my_id;
    case SHAPE_CHANGE:
        return (xdrproc_t)xdr_stat_chge;
    case SHAPE_STAT_RES:
        return (xdrproc_t)xdr_sm_stat_res;
    case SHAPE_STAT:
        return (xdrproc_t)xdr_sm_stat;
    }
    abort();
}

/* rpcgen's strings are C strings; these are their memory while a value is encoded. */
static char name_memory[2][NSM_NAME_SIZE];

static char *name_of(const char *text, const char *key, char memory[static NSM_NAME_SIZE])
{
    size_t len = vector_string(text, key, (uint8_t *)memory, NSM_NAME_SIZE - 1);
    memory[len] = '\0';
    return memory;
}

static my_id my_id_of(const char *text)
{
    return (my_id){
        .my_name = name_of(text, "my_name", name_memory[1]),
        .my_prog = (int)vector_number(text, "my_prog"),
        .my_vers = (int)vector_number(text, "my_vers"),
        .my_proc = (int)vector_number(text, "my_proc"),
    };
}

/* The value that a text describes. */
static union body body_of(enum shape shape, const char *text)
{
    union body body;
    memset(&body, 0, sizeof body);
    switch (shape) {
    case SHAPE_VOID:
        break;
    case SHAPE_NAME:
        body.name.mon_name = name_of(text, "mon_name", name_memory[0]);
        break;
    case SHAPE_MON:
        body.monitor.mon_id.mon_name = name_of(text, "mon_name", name_memory[0]);
        body.monitor.mon_id.my_id = my_id_of(text);
        vector_hex(vector_field(text, "priv"), (uint8_t *)body.monitor.priv, 16);
        break;
    case SHAPE_MON_ID:
        body.id.mon_name = name_of(text, "mon_name", name_memory[0]);
        body.id.my_id = my_id_of(text);
        break;
    case SHAPE_MY_ID:
        body.self = my_id_of(text);
        break;
    case SHAPE_CHANGE:
        body.change.mon_name = name_of(text, "mon_name", name_memory[0]);
        body.change.state = (int)vector_number(text, "state");
        break;
    case SHAPE_STAT_RES:
        body.stat_res.res_stat = vector_is(text, "res", "STAT_FAIL") ? stat_fail : stat_succ;
        body.stat_res.state = (int)vector_number(text, "state");
        break;
    case SHAPE_STAT:
        body.stat.state = (int)vector_number(text, "state");
        break;
    }
    return body;
}

static void print_string(FILE *out, const char *key, const char *value)
{
    fprintf(out, "%s=\"", key);
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        if (c < ' ' || c > '~' || c == '"' || c == '\\')
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void print_my_id(FILE *out, const my_id *self)
{
    print_string(out, "my_name", self->my_name);
    fprintf(out, " my_prog=%u my_vers=%u my_proc=%u", (unsigned)self->my_prog,
            (unsigned)self->my_vers, (unsigned)self->my_proc);
}

static void print_body(FILE *out, enum shape shape, const union body *body)
{
    switch (shape) {
    case SHAPE_VOID:
        fputs("void", out);
        break;
    case SHAPE_NAME:
        print_string(out, "mon_name", body->name.mon_name);
        break;
    case SHAPE_MON:
        print_body(out, SHAPE_MON_ID, &(const union body){.id = body->monitor.mon_id});
        fputs(" priv=", out);
        for (unsigned i = 0; i < 16; i++)
            fprintf(out, "%02x", (unsigned char)body->monitor.priv[i]);
        break;
    case SHAPE_MON_ID:
        print_string(out, "mon_name", body->id.mon_name);
        fputc(' ', out);
        print_my_id(out, &body->id.my_id);
        break;
    case SHAPE_MY_ID:
        print_my_id(out, &body->self);
        break;
    case SHAPE_CHANGE:
        print_string(out, "mon_name", body->change.mon_name);
        fprintf(out, " state=%u", (unsigned)body->change.state);
        break;
    case SHAPE_STAT_RES:
        fprintf(out, "res=%s state=%u",
                body->stat_res.res_stat == stat_succ ? "STAT_SUCC" : "STAT_FAIL",
                (unsigned)body->stat_res.state);
        break;
    case SHAPE_STAT:
        fprintf(out, "state=%u", (unsigned)body->stat.state);
        break;
    }
}

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

/* The procedure of a reply by its name; -1: none is named. */
static int procedure_of_text(const char *text)
{
    for (int i = 0; i < PROCEDURE_COUNT; i++)
        if (vector_is(text, "proc", procedures[i].name))
            return i;
    return -1;
}

static int procedure_of_file(const char *file)
{
    for (int i = 0; i < PROCEDURE_COUNT; i++)
        if (strcmp(file, procedures[i].file) == 0)
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
    enum shape shape = procedures[msg.rm_call.cb_proc].args;
    union body body = body_of(shape, vector->text);
    return xdr_callmsg(xdrs, &msg) && routine_of(shape)(xdrs, &body);
}

static bool encode_reply(XDR *xdrs, const struct vector *vector)
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
    int stat = word_index(text, "stat", accept_stat_words, SYSTEM_ERR + 1),
        procedure = procedure_of_text(text);
    enum shape shape = procedure >= 0 ? procedures[procedure].result : SHAPE_VOID;
    union body body = body_of(shape, text);
    msg.rm_reply.rp_stat = MSG_ACCEPTED;
    msg.acpted_rply.ar_stat = (enum accept_stat)stat;
    if (stat == PROG_MISMATCH) {
        msg.acpted_rply.ar_vers.low = vector_number(text, "low");
        msg.acpted_rply.ar_vers.high = vector_number(text, "high");
    } else {
        msg.acpted_rply.ar_results.where = (caddr_t)&body;
        msg.acpted_rply.ar_results.proc = routine_of(shape);
    }
    return stat >= 0 && xdr_replymsg(xdrs, &msg);
}

static bool encode_body(XDR *xdrs, enum shape shape, const struct vector *vector)
{
    union body body = body_of(shape, vector->text);
    return routine_of(shape)(xdrs, &body);
}

/* Decodes the body at the cursor, to the end of the message, and prints it. */
static bool decode_body(XDR *xdrs, enum shape shape, size_t len, FILE *out)
{
    union body body;
    memset(&body, 0, sizeof body);
    bool good = routine_of(shape)(xdrs, &body) && xdr_getpos(xdrs) == len;
    if (good)
        print_body(out, shape, &body);
    xdr_free(routine_of(shape), &body);
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
        print_string(out, "machine", parms.aup_machname);
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
    return proc < PROCEDURE_COUNT && decode_body(xdrs, procedures[proc].args, len, out);
}

static bool decode_reply(XDR *xdrs, const struct vector *vector, size_t len, FILE *out)
{
    int procedure = procedure_of_text(vector->text);
    enum shape shape = procedure >= 0 ? procedures[procedure].result : SHAPE_VOID;
    static char verf_memory[AUTH_BODY_SIZE];
    union body body;
    struct rpc_msg msg;
    memset(&body, 0, sizeof body);
    memset(&msg, 0, sizeof msg);
    msg.acpted_rply.ar_verf.oa_base = verf_memory;
    msg.acpted_rply.ar_results.where = (caddr_t)&body;
    msg.acpted_rply.ar_results.proc = routine_of(shape);
    if (!xdr_replymsg(xdrs, &msg) || xdr_getpos(xdrs) != len || msg.rm_direction != REPLY)
        return false;
    fprintf(out, "xid=%u ", msg.rm_xid);
    if (msg.rm_reply.rp_stat == MSG_DENIED) {
        if (msg.rjcted_rply.rj_stat == RPC_MISMATCH)
            fprintf(out, "denied=RPC_MISMATCH low=%u high=%u",
                    (unsigned)msg.rjcted_rply.rj_vers.low, (unsigned)msg.rjcted_rply.rj_vers.high);
        else
            fprintf(out, "denied=AUTH_ERROR why=%s", auth_stat_words[msg.rjcted_rply.rj_why]);
        return true;
    }
    fprintf(out, "stat=%s", accept_stat_words[msg.acpted_rply.ar_stat]);
    if (msg.acpted_rply.ar_stat == PROG_MISMATCH) {
        fprintf(out, " low=%u high=%u", (unsigned)msg.acpted_rply.ar_vers.low,
                (unsigned)msg.acpted_rply.ar_vers.high);
    } else if (procedure >= 0) {
        fprintf(out, " proc=%s ", procedures[procedure].name);
        print_body(out, shape, &body);
    }
    return true;
}

static enum shape shape_of(const char *file, const struct vector *vector)
{
    int procedure = procedure_of_file(file);
    if (procedure < 0)
        return SHAPE_VOID;
    return vector->kind == VECTOR_RESULT ? procedures[procedure].result
                                         : procedures[procedure].args;
}

static bool encode(XDR *xdrs, const char *file, const struct vector *vector)
{
    if (vector->kind == VECTOR_CALL)
        return encode_call(xdrs, vector);
    if (vector->kind == VECTOR_REPLY)
        return encode_reply(xdrs, vector);
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
    if (vector->kind == VECTOR_CALL || vector->kind == VECTOR_REFUSED)
        good = decode_call(&xdrs, vector, len, out);
    else if (vector->kind == VECTOR_REPLY)
        good = decode_reply(&xdrs, vector, len, out);
    else
        good = decode_body(&xdrs, shape_of(file, vector), len, out);
    fclose(out);
    return good;
}

static bool decodes_to_the_same_text(const char *file, const struct vector *vector)
{
    char *text = NULL;
    bool good = decode(file, vector, vector->len, &text);
    bool expected = vector->kind != VECTOR_GARBAGE && vector->kind != VECTOR_REFUSED;
    bool same =
        good == expected && (vector->kind == VECTOR_GARBAGE || strcmp(text, vector->text) == 0);
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
    bool refused = vector->kind == VECTOR_GARBAGE || vector->kind == VECTOR_REFUSED;
    if (vector->oracle == VECTOR_NO_ORACLE)
        return VECTOR_NOT_ASKED;
    if (vector->oracle == VECTOR_BOTH_WAYS && !refused && !encodes_to_the_same_bytes(file, vector))
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
