/*
 * run_vectors.c -- src/codec and the procedure tables of our programs against the vector files.
 *
 * Arguments and calls are decoded, printed as canonical text and compared; results and replies are
 * encoded from their text and compared byte for byte. What that involves is in codec_check.h. Files
 * named nlm_*.txt are nlm_vectors.c's, those named nfs_*.txt and mount_*.txt nfs_vectors.c's and
 * those named portmap_*.txt portmap_vectors.c's; the others are NSM and RPC headers and checked
 * here.
 *
 * usage: run_vectors DIRECTORY
 */
#include "codec/rpc_msg.h"
#include "codec_check.h"
#include "nfs_vectors.h"
#include "nlm_vectors.h"
#include "portmap_vectors.h"
#include "proto/nsm.h"

#include <ctype.h>
#include <stdio.h>

enum { PROCEDURES_MAX = 32 };

static bool has_args[PROCEDURES_MAX], has_result[PROCEDURES_MAX];

/* The procedure with this name in upper case, or NULL. */
static const struct procedure *procedure_named(const char *name, size_t len)
{
    for (uint32_t i = 0; i < nsm_program.versions[0].procedure_count; i++) {
        const char *row = nsm_program.versions[0].procedures[i].name;
        if (row != NULL && strlen(row) == len && strncmp(row, name, len) == 0)
            return &nsm_program.versions[0].procedures[i];
    }
    return NULL;
}

/* nsm_unmon_all.txt names UNMON_ALL. */
static const struct procedure *procedure_of_file(const char *file)
{
    char name[64];
    size_t len = strlen(file);
    if (strncmp(file, "nsm_", 4) != 0 || len < 9 || len - 8 > sizeof name)
        return NULL;
    for (size_t i = 0; i < len - 8; i++)
        name[i] = (char)toupper((unsigned char)file[i + 4]);
    return procedure_named(name, len - 8);
}

static void add_my_id(struct text *text, const struct request *request)
{
    codec_check_add_string(text, "my_name", request->my_name);
    codec_check_add_number(text, " my_prog", request->my_prog);
    codec_check_add_number(text, " my_vers", request->my_vers);
    codec_check_add_number(text, " my_proc", request->my_proc);
}

/* The canonical text of decoded arguments. NULL is the one procedure without a request. */
static void add_request(struct text *text, const struct procedure *row, const struct request *r)
{
    if (row->flags & PROCEDURE_STATELESS) {
        text_add(text, "void");
        return;
    }
    switch (r->kind) {
    case REQUEST_NSM_STAT:
        codec_check_add_string(text, "mon_name", r->mon_name);
        break;
    case REQUEST_NSM_MON:
        codec_check_add_string(text, "mon_name", r->mon_name);
        text_add_char(text, ' ');
        add_my_id(text, r);
        text_add(text, " priv=");
        text_add_hex(text, r->priv);
        break;
    case REQUEST_NSM_UNMON:
        codec_check_add_string(text, "mon_name", r->mon_name);
        text_add_char(text, ' ');
        add_my_id(text, r);
        break;
    case REQUEST_NSM_UNMON_ALL:
        add_my_id(text, r);
        break;
    case REQUEST_NSM_SIMU_CRASH:
        text_add(text, "void");
        break;
    case REQUEST_NSM_NOTIFY:
        codec_check_add_string(text, "mon_name", r->mon_name);
        codec_check_add_number(text, " state", r->state);
        break;
    case REQUEST_NLM_TEST:
    case REQUEST_NLM_LOCK:
    case REQUEST_NLM_CANCEL:
    case REQUEST_NLM_UNLOCK:
    case REQUEST_NLM_GRANTED:
    case REQUEST_NLM_GRANTED_RES:
    case REQUEST_NLM_SHARE:
    case REQUEST_NLM_UNSHARE:
    case REQUEST_NLM_FREE_ALL:
        text_add(text, "not of NSM");
        break;
    }
}

/* Arguments of one procedure. False: refused. */
static bool decode_args(const void *what, struct bytes data, struct text *text)
{
    const struct procedure *row = what;
    struct request request = {0};
    struct xdr_in in = xdr_in_of(data);
    if (!row->decode(&in, nsm_program.versions[0].number, &request))
        return false;
    add_request(text, row, &request);
    return true;
}

/* A whole message. True: a call to a procedure that exists, with arguments that decode. */
static bool decode_call(const void *unused, struct bytes data, struct text *text)
{
    (void)unused;
    static const char *const words[] = {
        [RPC_CALL_OK] = "OK",
        [RPC_CALL_DROP] = "DROP",
        [RPC_CALL_RPC_MISMATCH] = "RPC_MISMATCH",
        [RPC_CALL_BAD_CRED] = "BAD_CRED",
        [RPC_CALL_BAD_VERF] = "BAD_VERF",
        [RPC_CALL_REJECTED] = "REJECTED",
    };
    struct rpc_call call;
    enum rpc_call_result result = rpc_msg_get_call(data, &call);
    if (result != RPC_CALL_OK) {
        text_add(text, words[result]);
        if (result != RPC_CALL_DROP)
            codec_check_add_number(text, " xid", call.xid);
        return false;
    }
    codec_check_add_number(text, "xid", call.xid);
    codec_check_add_number(text, " prog", call.prog);
    codec_check_add_number(text, " vers", call.vers);
    codec_check_add_number(text, " proc", call.proc);
    if (call.credential.flavor == RPC_AUTH_SYS) {
        text_add(text, " cred=sys ");
        codec_check_add_string(text, "machine", call.credential.machine);
        codec_check_add_number(text, " uid", call.credential.uid);
        codec_check_add_number(text, " gid", call.credential.gid);
    } else {
        text_add(text, " cred=none");
    }
    if (call.prog != nsm_program.number || call.vers != nsm_program.versions[0].number ||
        call.proc >= nsm_program.versions[0].procedure_count)
        return false;
    text_add_char(text, ' ');
    return decode_args(&nsm_program.versions[0].procedures[call.proc], call.args, text);
}

static void encode_result(struct xdr_out *out, const void *what, const char *text)
{
    const struct procedure *row = what;
    if (row->encode == NULL)
        return;
    struct response response = {
        .refused = vector_is(text, "res", "STAT_FAIL"),
        .state = vector_number(text, "state"),
    };
    row->encode(out, nsm_program.versions[0].number, &response);
}

static void encode_reply(struct xdr_out *out, const void *unused, const char *text)
{
    (void)unused;
    static const struct {
        const char *word;
        enum rpc_accept_stat stat;
    } stats[] = {
        {"SUCCESS", RPC_SUCCESS},           {"PROG_UNAVAIL", RPC_PROG_UNAVAIL},
        {"PROC_UNAVAIL", RPC_PROC_UNAVAIL}, {"GARBAGE_ARGS", RPC_GARBAGE_ARGS},
        {"SYSTEM_ERR", RPC_SYSTEM_ERR},
    };
    static const struct {
        const char *word;
        enum rpc_auth_stat why;
    } reasons[] = {
        {"BADCRED", RPC_AUTH_BADCRED},
        {"REJECTEDCRED", RPC_AUTH_REJECTEDCRED},
        {"TOOWEAK", RPC_AUTH_TOOWEAK},
    };
    uint32_t xid = vector_number(text, "xid");
    if (vector_is(text, "denied", "RPC_MISMATCH")) {
        rpc_msg_put_rpc_mismatch(out, xid);
    } else if (vector_is(text, "denied", "AUTH_ERROR")) {
        for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
            if (vector_is(text, "why", reasons[i].word))
                rpc_msg_put_auth_error(out, xid, reasons[i].why);
    } else if (vector_is(text, "stat", "PROG_MISMATCH")) {
        rpc_msg_put_prog_mismatch(out, xid, vector_number(text, "low"),
                                  vector_number(text, "high"));
    } else {
        for (size_t i = 0; i < sizeof stats / sizeof stats[0]; i++)
            if (vector_is(text, "stat", stats[i].word))
                rpc_msg_put_accepted(out, xid, stats[i].stat);
        const char *name = vector_field(text, "proc");
        if (name != NULL)
            encode_result(out, procedure_named(name, strcspn(name, " ")), text);
    }
}

static bool is_right(const char *file, const struct vector *vector)
{
    const struct procedure *row = procedure_of_file(file);
    bool needs_row = vector->kind == VECTOR_ARGS || vector->kind == VECTOR_GARBAGE ||
                     vector->kind == VECTOR_RESULT;
    if (needs_row && row == NULL) {
        vector_say("no procedure for this file: name it nsm_<procedure>.txt, "
                   "nlm_<procedure>.txt or portmap_<version>_<procedure>.txt");
        return false;
    }
    size_t index = row != NULL ? (size_t)(row - nsm_program.versions[0].procedures) : 0;
    switch (vector->kind) {
    case VECTOR_ARGS:
        has_args[index] = true;
        return codec_check_decode(decode_args, row, vector, true);
    case VECTOR_GARBAGE:
        return codec_check_decode(decode_args, row, vector, false);
    case VECTOR_RESULT:
        has_result[index] = true;
        return codec_check_encode(encode_result, row, vector);
    case VECTOR_BAD_RESULT:
        vector_say("NSM results are only sent, never read");
        return false;
    case VECTOR_CALL:
        return codec_check_decode(decode_call, NULL, vector, true);
    case VECTOR_REFUSED:
        return codec_check_decode(decode_call, NULL, vector, false);
    case VECTOR_REPLY:
        return codec_check_encode(encode_reply, NULL, vector);
    }
    return false;
}

static enum vector_verdict check(const char *file, const struct vector *vector)
{
    bool good = nlm_vectors_owns(file)       ? nlm_vectors_check(file, vector)
                : nfs_vectors_own(file)      ? nfs_vectors_check(file, vector)
                : portmap_vectors_owns(file) ? portmap_vectors_check(file, vector)
                                             : is_right(file, vector);
    return good ? VECTOR_GOOD : VECTOR_BAD;
}

/* A row of a procedure table without vectors would be wire format that nobody checked. */
static bool every_row_has_vectors(void)
{
    bool good = nlm_vectors_are_complete();
    good = portmap_vectors_are_complete() && good;
    good = nfs_vectors_are_complete() && good;
    for (uint32_t i = 0; i < nsm_program.versions[0].procedure_count; i++) {
        if (nsm_program.versions[0].procedures[i].name == NULL || (has_args[i] && has_result[i]))
            continue;
        vector_say("%s has no vector for its %s", nsm_program.versions[0].procedures[i].name,
                   has_args[i] ? "result" : "arguments");
        good = false;
    }
    return good;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: run_vectors DIRECTORY\n");
        return 2;
    }
    return vector_run_directory(argv[1], check, every_row_has_vectors);
}
