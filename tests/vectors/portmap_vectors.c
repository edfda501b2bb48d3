/*
 * portmap_vectors.c -- src/codec/portmap_xdr.c and the portmapper of src/rpc against their vectors.
 *
 * We are on both ends of this program: we ask the portmappers of other hosts, and answer in the
 * place of one. So each vector is taken both ways. Arguments and results are decoded, with all
 * their neighbours refused, and are encoded from their text. Results are encoded by the portmapper
 * itself: it gets a table from which exactly that result follows, and is called. It must also
 * refuse every neighbour of its arguments.
 *
 * `more: from=rpcbind` marks a result that our own portmapper never has: it is only decoded.
 */
#include "portmap_vectors.h"

#include "codec/rpc_msg.h"
#include "codec_check.h"
#include "rpc/portmap.h"

#include <stdio.h>
#include <stdlib.h>

enum { STRING_MAX = 512, FILE_NAME_MAX = 64, REPLY_MAX = 4096 };

enum shape {
    SHAPE_VOID,
    SHAPE_MAPPING,
    SHAPE_RPCB,
    SHAPE_BOOL,
    SHAPE_PORT,
    SHAPE_ADDRESS,
    SHAPE_MAPPINGS,
    SHAPE_RPCBS,
};

struct row {
    const char *file;
    const char *name;
    uint32_t version_low, version_high;
    enum portmap_procedure procedure;
    enum shape args, result;
};

static const struct row rows[] = {
    {"portmap_pmap_null.txt", "NULL", 2, 2, PORTMAP_NULL, SHAPE_VOID, SHAPE_VOID},
    {"portmap_pmap_set.txt", "SET", 2, 2, PORTMAP_SET, SHAPE_MAPPING, SHAPE_BOOL},
    {"portmap_pmap_unset.txt", "UNSET", 2, 2, PORTMAP_UNSET, SHAPE_MAPPING, SHAPE_BOOL},
    {"portmap_pmap_getport.txt", "GETPORT", 2, 2, PORTMAP_GETPORT, SHAPE_MAPPING, SHAPE_PORT},
    {"portmap_pmap_dump.txt", "DUMP", 2, 2, PORTMAP_DUMP, SHAPE_VOID, SHAPE_MAPPINGS},
    {"portmap_rpcb_null.txt", "NULL", 3, 4, PORTMAP_NULL, SHAPE_VOID, SHAPE_VOID},
    {"portmap_rpcb_set.txt", "SET", 3, 4, PORTMAP_SET, SHAPE_RPCB, SHAPE_BOOL},
    {"portmap_rpcb_unset.txt", "UNSET", 3, 4, PORTMAP_UNSET, SHAPE_RPCB, SHAPE_BOOL},
    {"portmap_rpcb_getaddr.txt", "GETADDR", 3, 4, PORTMAP_GETPORT, SHAPE_RPCB, SHAPE_ADDRESS},
    {"portmap_rpcb_dump.txt", "DUMP", 3, 4, PORTMAP_DUMP, SHAPE_VOID, SHAPE_RPCBS},
    {"portmap_rpcb_getversaddr.txt", "GETVERSADDR", 4, 4, PORTMAP_GETVERSADDR, SHAPE_RPCB,
     SHAPE_ADDRESS},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static bool has_args[ROW_COUNT], has_result[ROW_COUNT];

/* ---- values and their text ---- */

/* A key of the text: as it is, or with the number of a list's element behind it. */
static const char *key_of(const char *key, uint32_t number)
{
    static char keys[8][32]; /* several are used in one expression */
    static uint32_t next;
    char *numbered = keys[next++ % 8];
    (void)snprintf(numbered, sizeof keys[0], number == 0 ? "%s" : "%s%u", key, number);
    return numbered;
}

static void add_mapping(struct text *text, const struct portmap_mapping *m, uint32_t number)
{
    codec_check_add_number(text, key_of("program", number), m->prog);
    codec_check_add_number(text, key_of(" version", number), m->vers);
    codec_check_add_number(text, key_of(" protocol", number), m->prot);
    codec_check_add_number(text, key_of(" port", number), m->port);
}

static void add_rpcb(struct text *text, const struct portmap_rpcb *r, uint32_t number)
{
    codec_check_add_number(text, key_of("program", number), r->prog);
    codec_check_add_number(text, key_of(" version", number), r->vers);
    codec_check_add_string(text, key_of(" netid", number), r->netid);
    codec_check_add_string(text, key_of(" address", number), r->uaddr);
    codec_check_add_string(text, key_of(" owner", number), r->owner);
}

static struct portmap_mapping mapping_of(const char *text, uint32_t number)
{
    return (struct portmap_mapping){
        .prog = vector_number(text, key_of("program", number)),
        .vers = vector_number(text, key_of("version", number)),
        .prot = vector_number(text, key_of("protocol", number)),
        .port = vector_number(text, key_of("port", number)),
    };
}

static struct bytes string_of(const char *text, const char *key, uint8_t memory[static STRING_MAX])
{
    return (struct bytes){memory, (uint32_t)vector_string(text, key, memory, STRING_MAX)};
}

/* Its strings live until the next one. */
static struct portmap_rpcb rpcb_of(const char *text, uint32_t number)
{
    static uint8_t memory[3][STRING_MAX];
    return (struct portmap_rpcb){
        .prog = vector_number(text, key_of("program", number)),
        .vers = vector_number(text, key_of("version", number)),
        .netid = string_of(text, key_of("netid", number), memory[0]),
        .uaddr = string_of(text, key_of("address", number), memory[1]),
        .owner = string_of(text, key_of("owner", number), memory[2]),
    };
}

/* ---- decoding, as src/codec does for both ends ---- */

/* The elements, counted before they are printed, because the count comes first. */
static bool decode_list(enum shape shape, struct xdr_in in, struct text *text)
{
    struct portmap_mapping mapping;
    struct portmap_rpcb rpcb;
    struct xdr_in counted = in;
    uint32_t count = 0;
    while (shape == SHAPE_MAPPINGS ? portmap_xdr_next_mapping(&counted, &mapping)
                                   : portmap_xdr_next_rpcb(&counted, &rpcb))
        count++;
    if (!xdr_in_done(&counted))
        return false;
    codec_check_add_number(text, "entries", count);
    for (uint32_t i = 1; i <= count; i++) {
        text_add_char(text, ' ');
        if (shape == SHAPE_MAPPINGS && portmap_xdr_next_mapping(&in, &mapping))
            add_mapping(text, &mapping, i);
        else if (shape == SHAPE_RPCBS && portmap_xdr_next_rpcb(&in, &rpcb))
            add_rpcb(text, &rpcb, i);
    }
    return true;
}

static bool decode_shape(enum shape shape, struct bytes data, struct text *text)
{
    struct xdr_in in = xdr_in_of(data);
    struct portmap_mapping mapping;
    struct portmap_rpcb rpcb;
    struct bytes address;
    uint32_t port;
    bool is_done;
    switch (shape) {
    case SHAPE_VOID:
        text_add(text, "void");
        return xdr_in_done(&in);
    case SHAPE_MAPPING:
        if (!portmap_xdr_get_mapping(&in, &mapping))
            return false;
        add_mapping(text, &mapping, 0);
        return true;
    case SHAPE_RPCB:
        if (!portmap_xdr_get_rpcb(&in, &rpcb))
            return false;
        add_rpcb(text, &rpcb, 0);
        return true;
    case SHAPE_BOOL:
        if (!portmap_xdr_get_bool(&in, &is_done))
            return false;
        text_add(text, is_done ? "done=TRUE" : "done=FALSE");
        return true;
    case SHAPE_PORT:
        if (!portmap_xdr_get_port(&in, &port))
            return false;
        codec_check_add_number(text, "port", port);
        return true;
    case SHAPE_ADDRESS:
        if (!portmap_xdr_get_uaddr(&in, &address))
            return false;
        codec_check_add_string(text, "address", address);
        return true;
    case SHAPE_MAPPINGS:
    case SHAPE_RPCBS:
        return decode_list(shape, in, text);
    }
    abort();
}

static bool decode_args(const void *row, struct bytes data, struct text *text)
{
    return decode_shape(((const struct row *)row)->args, data, text);
}

static bool decode_result(const void *row, struct bytes data, struct text *text)
{
    return decode_shape(((const struct row *)row)->result, data, text);
}

/* As the server reads one. */
static bool decode_call(const void *what, struct bytes data, struct text *text)
{
    const struct row *row = what;
    struct rpc_call call;
    if (rpc_msg_get_call(data, &call) != RPC_CALL_OK || call.prog != PORTMAP_PROGRAM ||
        call.vers < row->version_low || call.vers > row->version_high ||
        call.proc != (uint32_t)row->procedure)
        return false;
    codec_check_add_number(text, "xid", call.xid);
    codec_check_add_number(text, " prog", call.prog);
    codec_check_add_number(text, " vers", call.vers);
    codec_check_add_number(text, " proc", call.proc);
    text_add(text, " cred=none ");
    return decode_shape(row->args, call.args, text);
}

/* As the caller reads one. */
static bool decode_reply(const void *what, struct bytes data, struct text *text)
{
    const struct row *row = what;
    struct rpc_answer answer;
    if (!rpc_msg_get_answer(data, &answer) || answer.stat != RPC_ANSWER_SUCCESS)
        return false;
    codec_check_add_number(text, "xid", answer.xid);
    text_add(text, " stat=SUCCESS proc=");
    text_add(text, row->name);
    text_add_char(text, ' ');
    return decode_shape(row->result, answer.results, text);
}

/* ---- encoding: arguments by the codec, results by the portmapper ---- */

static void encode_args(struct xdr_out *out, const void *what, const char *text)
{
    const struct row *row = what;
    if (row->args == SHAPE_MAPPING) {
        struct portmap_mapping mapping = mapping_of(text, 0);
        portmap_xdr_put_mapping(out, &mapping);
    } else if (row->args == SHAPE_RPCB) {
        struct portmap_rpcb rpcb = rpcb_of(text, 0);
        portmap_xdr_put_rpcb(out, &rpcb);
    }
}

static void encode_call(struct xdr_out *out, const void *row, const char *text)
{
    rpc_msg_put_call(out, vector_number(text, "xid"), vector_number(text, "prog"),
                     vector_number(text, "vers"), vector_number(text, "proc"));
    encode_args(out, row, text);
}

static const struct procedure *procedure_of(const struct portmap *portmap, uint32_t version,
                                            enum portmap_procedure procedure)
{
    const struct program *program = portmap_program(portmap);
    for (uint32_t i = 0; i < program->version_count; i++)
        if (program->versions[i].number == version)
            return &program->versions[i].procedures[procedure];
    abort();
}

static struct peer caller_at(const char *address, uint16_t port)
{
    struct peer peer = {.port = port, .transport = TRANSPORT_TCP};
    if (!address_parse(bytes_of_text(address), &peer.address))
        abort();
    return peer;
}

static enum rpc_accept_stat respond(struct portmap *portmap, const struct row *row,
                                    const struct peer *from, struct bytes args, struct xdr_out *out)
{
    struct xdr_in in = xdr_in_of(args);
    return procedure_of(portmap, row->version_high, row->procedure)
        ->respond(portmap, from, &in, out);
}

/* One element of a listing: a service of our own, or set by a call of its owner. */
static void list_rpcb(struct portmap *portmap, const struct portmap_rpcb *rpcb)
{
    struct portmap_service service = {.prog = rpcb->prog, .vers = rpcb->vers};
    uint32_t family;
    if (bytes_equal(rpcb->owner, bytes_of_text("holdfast"))) {
        if (!portmap_netid_parse(rpcb->netid, &service.prot, &family) ||
            !portmap_uaddr_parse(rpcb->uaddr, &service.address, &service.port) ||
            !portmap_add(portmap, &service))
            abort();
        return;
    }
    static uint8_t args[REPLY_MAX], result[8];
    struct xdr_out put = xdr_out_of(args, sizeof args), out = xdr_out_of(result, sizeof result);
    bool is_root = bytes_equal(rpcb->owner, bytes_of_text("superuser"));
    struct peer from = caller_at("127.0.0.1", is_root ? 700 : 7000);
    struct row set = {.version_high = 4, .procedure = PORTMAP_SET};
    portmap_xdr_put_rpcb(&put, rpcb);
    (void)respond(portmap, &set, &from, (struct bytes){args, xdr_out_len(&put)}, &out);
}

static void list_mapping(struct portmap *portmap, const struct portmap_mapping *mapping)
{
    struct portmap_service service = {.prog = mapping->prog,
                                      .vers = mapping->vers,
                                      .prot = mapping->prot,
                                      .address = {.family = 4},
                                      .port = (uint16_t)mapping->port};
    if (service.port != 0 && !portmap_add(portmap, &service))
        abort();
}

/* A table and arguments from which the result of this text follows; who asks. */
static struct peer prepare(struct portmap *portmap, const struct row *row, const char *text,
                           struct xdr_out *args)
{
    struct portmap_mapping mapping = {100021, 4, TRANSPORT_TCP, 4045};
    struct portmap_rpcb rpcb = {100021, 4, bytes_of_text("tcp"), bytes_of_text("0.0.0.0.15.205"),
                                bytes_of_text("superuser")};
    static uint8_t memory[STRING_MAX];
    bool is_done = vector_is(text, "done", "TRUE");
    switch (row->result) {
    case SHAPE_VOID:
        break;
    case SHAPE_BOOL:
        if (is_done && row->procedure == PORTMAP_UNSET)
            list_rpcb(portmap, &rpcb);
        if (row->args == SHAPE_MAPPING)
            portmap_xdr_put_mapping(args, &mapping);
        else
            portmap_xdr_put_rpcb(args, &rpcb);
        return caller_at(is_done ? "127.0.0.1" : "192.0.2.1", 700);
    case SHAPE_PORT:
        mapping.port = vector_number(text, "port");
        list_mapping(portmap, &mapping);
        portmap_xdr_put_mapping(args, &mapping);
        break;
    case SHAPE_ADDRESS:
        rpcb.uaddr = string_of(text, "address", memory);
        rpcb.netid = bytes_of_text(memchr(memory, ':', rpcb.uaddr.len) != NULL ? "tcp6" : "tcp");
        if (rpcb.uaddr.len > 0)
            list_rpcb(portmap, &rpcb);
        portmap_xdr_put_rpcb(args, &rpcb);
        break;
    case SHAPE_MAPPINGS:
        for (uint32_t i = 1; i <= vector_number(text, "entries"); i++) {
            mapping = mapping_of(text, i);
            list_mapping(portmap, &mapping);
        }
        break;
    case SHAPE_RPCBS:
        for (uint32_t i = 1; i <= vector_number(text, "entries"); i++) {
            rpcb = rpcb_of(text, i);
            list_rpcb(portmap, &rpcb);
        }
        break;
    case SHAPE_MAPPING:
    case SHAPE_RPCB:
        abort(); /* never a result */
    }
    return caller_at("127.0.0.1", 700);
}

static void encode_result(struct xdr_out *out, const void *what, const char *text)
{
    const struct row *row = what;
    static uint8_t bytes[REPLY_MAX];
    struct portmap *portmap = portmap_new();
    if (portmap == NULL)
        exit(99);
    struct xdr_out args = xdr_out_of(bytes, sizeof bytes);
    struct peer from = prepare(portmap, row, text, &args);
    if (respond(portmap, row, &from, (struct bytes){bytes, xdr_out_len(&args)}, out) != RPC_SUCCESS)
        vector_say("the portmapper refuses the call");
    portmap_free(portmap);
}

static void encode_reply(struct xdr_out *out, const void *row, const char *text)
{
    rpc_msg_put_accepted(out, vector_number(text, "xid"), RPC_SUCCESS);
    encode_result(out, row, text);
}

/* ---- checks ---- */

/* Arguments as the portmapper judges them, in every version that has them; prints nothing. */
static bool is_served(const void *what, struct bytes data, struct text *text)
{
    const struct row *row = what;
    (void)text;
    static uint8_t result[REPLY_MAX];
    bool is_good = true;
    struct portmap *portmap = portmap_new();
    if (portmap == NULL)
        exit(99);
    struct peer from = caller_at("127.0.0.1", 700);
    for (uint32_t version = row->version_low; version <= row->version_high; version++) {
        struct xdr_in in = xdr_in_of(data);
        struct xdr_out out = xdr_out_of(result, sizeof result);
        is_good &=
            procedure_of(portmap, version, row->procedure)->respond(portmap, &from, &in, &out) ==
            RPC_SUCCESS;
    }
    portmap_free(portmap);
    return is_good;
}

/* The portmapper takes the arguments and none of their neighbours. */
static bool server_agrees(const struct row *row, const struct vector *vector, bool expected)
{
    static struct vector silent;
    silent = *vector;
    if (expected)
        silent.text[0] = '\0'; /* is_served adds no text */
    return codec_check_decode(is_served, row, &silent, expected);
}

bool portmap_vectors_owns(const char *file)
{
    return strncmp(file, "portmap_", strlen("portmap_")) == 0;
}

bool portmap_vectors_check(const char *file, const struct vector *vector)
{
    size_t i = 0;
    while (i < ROW_COUNT && strcmp(file, rows[i].file) != 0)
        i++;
    if (i == ROW_COUNT) {
        vector_say("no procedure for this file");
        return false;
    }
    bool is_ours = !vector_is(vector->more, "from", "rpcbind");
    switch (vector->kind) {
    case VECTOR_ARGS:
        has_args[i] = true;
        return codec_check_decode(decode_args, &rows[i], vector, true) &&
               server_agrees(&rows[i], vector, true) &&
               codec_check_encode(encode_args, &rows[i], vector);
    case VECTOR_GARBAGE:
        return codec_check_decode(decode_args, &rows[i], vector, false) &&
               server_agrees(&rows[i], vector, false);
    case VECTOR_RESULT:
        has_result[i] = has_result[i] || is_ours;
        return codec_check_decode(decode_result, &rows[i], vector, true) &&
               (!is_ours || codec_check_encode(encode_result, &rows[i], vector));
    case VECTOR_BAD_RESULT:
        return codec_check_decode(decode_result, &rows[i], vector, false);
    case VECTOR_CALL:
        return codec_check_decode(decode_call, &rows[i], vector, true) &&
               codec_check_encode(encode_call, &rows[i], vector);
    case VECTOR_REPLY:
        return codec_check_decode(decode_reply, &rows[i], vector, true) &&
               (!is_ours || codec_check_encode(encode_reply, &rows[i], vector));
    case VECTOR_REFUSED:
        break;
    }
    vector_say("refused headers are in rpc_call.txt");
    return false;
}

static bool has_row(const struct procedure *procedures, uint32_t version, uint32_t number)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].version_low <= version && version <= rows[i].version_high &&
            (uint32_t)rows[i].procedure == number &&
            strcmp(rows[i].name, procedures[number].name) == 0)
            return has_args[i] && has_result[i];
    return false;
}

bool portmap_vectors_are_complete(void)
{
    struct portmap *portmap = portmap_new();
    if (portmap == NULL)
        exit(99);
    bool good = true;
    const struct program *program = portmap_program(portmap);
    for (uint32_t v = 0; v < program->version_count; v++) {
        const struct program_version *version = &program->versions[v];
        for (uint32_t i = 0; i < version->procedure_count; i++) {
            if (version->procedures[i].name == NULL ||
                has_row(version->procedures, version->number, i))
                continue;
            vector_say("%s of version %u of the portmapper lacks vectors of arguments or result",
                       version->procedures[i].name, version->number);
            good = false;
        }
    }
    portmap_free(portmap);
    return good;
}
