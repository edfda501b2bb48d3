/*
 * lock_call.c -- NLM calls of the load generators; see lock_call.h.
 *
 * The calls are written by tests/peer, from whose end the fields are found again: what follows the
 * file handle has a fixed length.
 */
#include "bench/lock_call.h"

#include "bench/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANDLE_LEN  32 /* of those that are made up */
#define NLM_VERSION 4

static void put_word64(uint8_t *at, uint64_t value)
{
    engine_put_word(at, (uint32_t)(value >> 32));
    engine_put_word(at + 4, (uint32_t)value);
}

static uint32_t padded(uint32_t len)
{
    return (len + 3) / 4 * 4;
}

/* ---- files ---- */

static bool read_handle(FILE *file, uint8_t *ret, uint32_t *ret_len)
{
    char line[256];
    unsigned byte;
    uint32_t len = 0;
    if (!fgets(line, sizeof(line), file))
        return false;
    while (len < 64 && sscanf(line + (size_t)len * 2, "%2x", &byte) == 1)
        ret[len++] = (uint8_t)byte;
    *ret_len = len;
    return len > 0;
}

static bool read_handles(struct lock_call_files *files, const char *path)
{
    FILE *file = fopen(path, "re");
    bool is_read = file != NULL;
    for (uint32_t i = 0; is_read && i < files->count; i++) {
        uint32_t len;
        is_read = read_handle(file, files->handles[i], &len) &&
                  (files->handle_len == 0 || files->handle_len == len);
        files->handle_len = len;
    }
    if (file)
        fclose(file);
    return is_read;
}

bool lock_call_load(struct lock_call_files *files, uint32_t count, const char *path)
{
    *files = (struct lock_call_files){.count = count};
    files->handles = calloc(count, sizeof(*files->handles));
    if (!files->handles)
        return false;
    if (path)
        return read_handles(files, path);
    files->handle_len = HANDLE_LEN;
    for (uint32_t i = 0; i < count; i++) {
        memset(files->handles[i], 0x5a, HANDLE_LEN);
        engine_put_word(files->handles[i] + HANDLE_LEN - 4, i);
    }
    return true;
}

struct lock_call_range lock_call_held(const struct lock_call_files *files, uint32_t number)
{
    uint32_t place = number / files->count;
    return (struct lock_call_range){
        .file = number % files->count,
        .svid = 1 + place % LOCK_CALL_OWNERS,
        .offset = LOCK_CALL_HELD_BASE + (uint64_t)place * LOCK_CALL_PLACE_LEN,
    };
}

const char *lock_call_name(uint32_t client, char text[static 16])
{
    snprintf(text, 16, "bench-%u", client % 1000000);
    return text;
}

/* ---- calls ---- */

/* An owner handle that tells the owner: the digits of its svid. */
static void put_oh(uint8_t *at, uint32_t svid)
{
    for (uint32_t i = LOCK_CALL_OH_LEN; i > 0; i--, svid /= 10)
        at[i - 1] = (uint8_t)('0' + svid % 10);
}

bool lock_call_make(struct lock_call *call, const struct lock_call_files *files,
                    enum peer_nlm_procedure procedure, const char *caller_name)
{
    uint8_t zeros[LOCK_CALL_OH_LEN] = {0};
    struct peer_nlm_args args = {
        .cookie = peer_nlm_bytes_of(zeros, LOCK_CALL_COOKIE_LEN),
        .exclusive = true,
        .lock = {.caller_name = peer_nlm_text(caller_name),
                 .fh = peer_nlm_bytes_of(files->handles[0], files->handle_len),
                 .oh = peer_nlm_bytes_of(zeros, LOCK_CALL_OH_LEN),
                 .len = LOCK_CALL_RANGE_LEN},
    };
    struct packet_call header = {
        .prog = PEER_NLM_PROGRAM, .vers = NLM_VERSION, .proc = procedure, .auth = PACKET_AUTH_SYS};
    *call = (struct lock_call){.packet = calloc(1, sizeof(*call->packet))};
    if (!call->packet)
        return false;
    packet_put_call(call->packet, &header);
    call->cookie_at = call->packet->len + 4;
    peer_nlm_put_args(call->packet, NLM_VERSION, procedure, &args);
    uint32_t behind_range = procedure == PEER_NLM_LOCK ? 8 : 0; /* reclaim and state */
    call->offset_at = call->packet->len - behind_range - 16;
    call->svid_at = call->offset_at - 4;
    call->oh_at = call->svid_at - LOCK_CALL_OH_LEN;
    call->fh_at = call->oh_at - 4 - padded(files->handle_len);
    return true;
}

void lock_call_set(struct lock_call *call, const struct lock_call_files *files, uint64_t cookie,
                   const struct lock_call_range *range)
{
    uint8_t *bytes = call->packet->bytes;
    put_word64(bytes + call->cookie_at, cookie);
    memcpy(bytes + call->fh_at, files->handles[range->file], files->handle_len);
    put_oh(bytes + call->oh_at, range->svid);
    engine_put_word(bytes + call->svid_at, range->svid);
    put_word64(bytes + call->offset_at, range->offset);
}

/* ---- answers ---- */

/* REPLY, accepted, AUTH_NONE, an empty verifier, SUCCESS; the cookie; the status. */
static uint32_t put_result(uint8_t *reply, uint64_t cookie, enum peer_nlm_status status)
{
    memset(reply, 0, 20);
    engine_put_word(reply, 1);
    engine_put_word(reply + 20, LOCK_CALL_COOKIE_LEN);
    put_word64(reply + 24, cookie);
    engine_put_word(reply + 32, status);
    return 36;
}

uint32_t lock_call_granted(uint8_t *reply, uint64_t cookie)
{
    return put_result(reply, cookie, PEER_NLM_IS_GRANTED);
}

uint32_t lock_call_denied(uint8_t *reply, uint64_t cookie, const struct lock_call_range *holder)
{
    uint8_t *at = reply + put_result(reply, cookie, PEER_NLM_IS_DENIED);
    engine_put_word(at, 1); /* exclusive */
    engine_put_word(at + 4, holder->svid);
    engine_put_word(at + 8, LOCK_CALL_OH_LEN);
    put_oh(at + 12, holder->svid);
    put_word64(at + 20, holder->offset);
    put_word64(at + 28, LOCK_CALL_RANGE_LEN);
    return (uint32_t)(at + 36 - reply);
}
