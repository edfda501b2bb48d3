/*
 * history.c -- what clients asked and were told; see history.h.
 *
 * Answers are read from the bytes that left the server, with the tests' own XDR. An answer that was
 * recorded counts as seen, whether or not the client got it: it could have.
 */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPERATIONS_MAX = 4096,
    PROG = 100021,
    VERS = 3,
    PROC = 16,
    LONG_NAME_LEN = 1000,
    FLAG_INCOMPLETE = 1,
    KEY_SHIFT = 20, /* a key of a lock client has so many bytes, more than there are versions */
};

struct owner {
    uint32_t posted[OPERATIONS_MAX]; /* indexes of its operations, in order */
    uint32_t count;
    uint32_t acknowledged;     /* so many of them were answered, or are before one that was */
    struct history_keys known; /* what they leave */
};

struct history {
    struct history_post posts[OPERATIONS_MAX];
    uint32_t place[OPERATIONS_MAX]; /* the operation's index in its owner */
    uint32_t count;
    uint32_t acknowledged;
    uint32_t state_max, states; /* the largest sent, how many different ones */
    struct owner owners[HISTORY_OWNERS];
};

struct history *history_new(void)
{
    struct history *history = calloc(1, sizeof(*history));
    if (!history)
        abort();
    return history;
}

void history_free(struct history *history)
{
    free(history);
}

uint32_t history_acknowledged(const struct history *history)
{
    return history->acknowledged;
}

uint32_t history_states(const struct history *history, uint32_t *ret_max)
{
    *ret_max = history->state_max;
    return history->states;
}

void history_apply(struct history_keys *keys, const struct history_post *post)
{
    switch ((enum history_operation)post->operation) {
    case HISTORY_ADD:
        keys->version[post->key] = post->version;
        break;
    case HISTORY_REMOVE:
        keys->version[post->key] = 0;
        break;
    case HISTORY_REMOVE_ALL:
        memset(keys, 0, sizeof(*keys));
        break;
    case HISTORY_STAT:
        break;
    }
}

void history_name(uint32_t owner, uint32_t key, struct history_name *ret)
{
    int mon_len = snprintf(ret->mon_name, sizeof(ret->mon_name), "host%u", key);
    int my_len = snprintf(ret->my_name, sizeof(ret->my_name), "owner%u", owner);
    if (owner % 6 == 5) {
        memset(ret->mon_name + mon_len, 'x', (size_t)(LONG_NAME_LEN - mon_len));
        memset(ret->my_name + my_len, 'y', (size_t)(LONG_NAME_LEN - my_len));
        ret->mon_name[LONG_NAME_LEN] = ret->my_name[LONG_NAME_LEN] = '\0';
    }
    ret->address = UINT32_C(0x7f320101) + (owner % 10) * 0x0101; /* 127.50.1.1 and on */
}

bool history_is_locker(uint32_t owner)
{
    return owner % 3 == 2;
}

uint64_t history_offset(uint32_t key)
{
    return (uint64_t)key << KEY_SHIFT;
}

struct peer_nlm_lock history_lock(const struct history_post *post)
{
    struct history_name name;
    char file[32];
    history_name(post->owner, post->key, &name);
    snprintf(file, sizeof(file), "file-of-%u", post->owner);
    struct peer_nlm_lock lock = {.caller_name = peer_nlm_text(name.my_name),
                                 .fh = peer_nlm_text(file),
                                 .oh = peer_nlm_text("process"),
                                 .svid = post->owner};
    if (post->operation != HISTORY_REMOVE_ALL) {
        lock.offset = history_offset(post->key);
        lock.len = post->operation == HISTORY_ADD ? post->version : UINT64_C(1) << KEY_SHIFT;
    }
    return lock;
}

struct peer_nsm_id history_id(const struct history_name *name)
{
    return (struct peer_nsm_id){name->mon_name, name->my_name, PROG, VERS, PROC};
}

void history_priv(const struct history_post *post, uint8_t ret[static PEER_NSM_PRIV_LEN])
{
    const uint32_t words[4] = {post->owner, post->key, post->version, UINT32_C(0x70776c73)};
    for (uint32_t i = 0; i < PEER_NSM_PRIV_LEN; i++)
        ret[i] = (uint8_t)(words[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- reading the tape ---- */

static const char *note_post(struct history *history, const struct tape_event *event)
{
    struct history_post post;
    if (event->head.data_len != sizeof(post))
        return "a posted operation of the wrong length";
    memcpy(&post, event->data, sizeof(post));
    if (post.xid != HISTORY_XID + history->count || history->count == OPERATIONS_MAX ||
        post.owner >= HISTORY_OWNERS || post.key >= HISTORY_KEYS)
        return "a posted operation that makes no sense";
    struct owner *owner = &history->owners[post.owner];
    history->place[history->count] = owner->count;
    owner->posted[owner->count++] = history->count;
    history->posts[history->count++] = post;
    return NULL;
}

static uint32_t word_at(const uint8_t *bytes, uint32_t word)
{
    const uint8_t *at = bytes + 4 * (size_t)word;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void note_state(struct history *history, uint32_t state)
{
    if (state <= history->state_max)
        return;
    history->state_max = state;
    history->states++;
}

/*
 * A call that the server makes: it asks a portmapper, or tells a registrant status{name, state,
 * priv} behind a header of ten words. The state it tells counts as sent.
 */
static const char *note_call(struct history *history, const uint8_t *bytes, uint32_t len)
{
    enum { HEADER = 10, PORTMAPPER = 100000 };
    if (len < 4 * (HEADER + 1) || word_at(bytes, 3) == PORTMAPPER)
        return NULL;
    uint32_t name_words = (word_at(bytes, HEADER) + 3) / 4;
    if (name_words > 256 || len < 4 * (HEADER + 1 + name_words + 1))
        return "called with arguments that make no sense";
    note_state(history, word_at(bytes, HEADER + 1 + name_words));
    return NULL;
}

/* NULL, or what is wrong with the answer of the status monitor. *ret_state: what it carries. */
static const char *read_status(const struct history_post *post, const struct packet_reply *reply,
                               uint32_t *ret_state)
{
    uint32_t res = PEER_NSM_STAT_SUCC;
    bool is_long = post->operation == HISTORY_ADD || post->operation == HISTORY_STAT;
    if (!(is_long ? peer_nsm_get_stat_res(reply, &res, ret_state)
                  : peer_nsm_get_stat(reply, ret_state)))
        return "sent an answer of the wrong shape";
    /* SM_STAT answers whether it would monitor the name: either is fine here. */
    return res != PEER_NSM_STAT_SUCC && post->operation != HISTORY_STAT ? "refused a call" : NULL;
}

static const char *read_lock(const struct history_post *post, const struct packet_reply *reply)
{
    struct peer_nlm_res res;
    struct packet_reader reader = {reply->body, reply->body_len,
                                   !reply->accepted || reply->status != PACKET_SUCCESS};
    if (!peer_nlm_get_res(&reader, HISTORY_NLM,
                          post->operation == HISTORY_ADD ? PEER_NLM_LOCK : PEER_NLM_UNLOCK, &res))
        return "sent an answer of the wrong shape";
    return res.status == PEER_NLM_IS_GRANTED ? NULL : "refused a lock";
}

static const char *note_reply(struct history *history, const uint8_t *bytes, uint32_t len)
{
    struct packet_reply reply;
    uint32_t state = 0;
    if (len >= 8 && word_at(bytes, 1) == 0)
        return note_call(history, bytes, len);
    if (!packet_get_reply(bytes, len, &reply))
        return "sent something that is no RPC reply";
    const uint32_t index = reply.xid - HISTORY_XID;
    if (index >= history->count)
        return "sent an answer to a call that was not made";
    const struct history_post *post = &history->posts[index];
    const char *why = history_is_locker(post->owner) ? read_lock(post, &reply)
                                                     : read_status(post, &reply, &state);
    if (why)
        return why;
    struct owner *owner = &history->owners[post->owner];
    for (; owner->acknowledged <= history->place[index]; owner->acknowledged++) {
        history_apply(&owner->known, &history->posts[owner->posted[owner->acknowledged]]);
        history->acknowledged++;
    }
    note_state(history, state);
    return NULL;
}

static const char *note_stream(struct history *history, const uint8_t *bytes, uint32_t len)
{
    const char *why = NULL;
    while (!why && len > 0) {
        uint32_t mark = packet_xid(bytes, len); /* the same four bytes, read the same way */
        uint32_t record_len = mark & UINT32_C(0x7fffffff);
        if (len < 4 || mark == record_len || record_len > len - 4)
            return "sent a TCP record that is not whole";
        why = note_reply(history, bytes + 4, record_len);
        bytes += 4 + record_len;
        len -= 4 + record_len;
    }
    return why;
}

const char *history_note(struct history *history, const struct tape_event *event)
{
    if (event->head.type == TAPE_POST)
        return note_post(history, event);
    if (event->head.type == TAPE_SEND && event->head.flags & TAPE_IS_STREAM)
        return note_stream(history, event->data, event->head.data_len);
    if (event->head.type == TAPE_SEND)
        return note_reply(history, event->data, event->head.data_len);
    return NULL;
}

/* ---- judging ---- */

static bool is_allowed(const struct history *history, const struct owner *owner,
                       const struct history_keys *found)
{
    struct history_keys keys = owner->known;
    for (uint32_t i = owner->acknowledged;; i++) {
        if (memcmp(&keys, found, sizeof(keys)) == 0)
            return true;
        if (i == owner->count)
            return false;
        history_apply(&keys, &history->posts[owner->posted[i]]);
    }
}

/* Says it for the first key that differs from what was acknowledged. */
static const char *describe(uint32_t index, const struct owner *owner,
                            const struct history_keys *found)
{
    static char text[160];
    for (uint32_t key = 0; key < HISTORY_KEYS; key++) {
        uint32_t known = owner->known.version[key], is = found->version[key];
        if (known == is)
            continue;
        if (is == 0)
            snprintf(text, sizeof(text), "(b) key %u of owner%u is lost (version %u)", key, index,
                     known);
        else if (known == 0)
            snprintf(text, sizeof(text), "(b) removed key %u of owner%u is back (%u)", key, index,
                     is);
        else
            snprintf(text, sizeof(text),
                     "(b) key %u of owner%u has version %u, acknowledged was %u", key, index, is,
                     known);
        return text;
    }
    snprintf(text, sizeof(text), "(b) the keys of owner%u are what no order of its calls leaves",
             index);
    return text;
}

/* A key that is registered after each of the operations that may have been the last. */
static bool is_registered(const struct history *history, const struct owner *owner, uint32_t key)
{
    struct history_keys keys = owner->known;
    for (uint32_t i = owner->acknowledged; keys.version[key] != 0 && i < owner->count; i++)
        history_apply(&keys, &history->posts[owner->posted[i]]);
    return keys.version[key] != 0;
}

static const char *judge_owner(const struct history *history, uint32_t index,
                               const struct history_keys *found, enum history_loss loss)
{
    const struct owner *owner = &history->owners[index];
    if (loss == HISTORY_NOTHING && !is_allowed(history, owner, found))
        return describe(index, owner, found);
    if (history_is_locker(index) || loss != HISTORY_UPDATES)
        return NULL;
    for (uint32_t key = 0; key < HISTORY_KEYS; key++)
        if (found->version[key] == 0 && is_registered(history, owner, key))
            return describe(index, owner, found);
    return NULL;
}

static const char *judge_server(const struct history *history, const struct history_found *found,
                                enum history_loss loss)
{
    static char text[640];
    const bool is_incomplete = found->flags & FLAG_INCOMPLETE;
    if (!found->has_started)
        snprintf(text, sizeof(text), "(a) the server does not start: %s", found->problem);
    else if (found->problem[0] != '\0')
        snprintf(text, sizeof(text), "(b) %s", found->problem);
    else if (found->state % 2 == 0 || found->state <= history->state_max)
        snprintf(text, sizeof(text), "(c) state %u after %u was sent", found->state,
                 history->state_max);
    else if (is_incomplete != (loss != HISTORY_NOTHING))
        snprintf(text, sizeof(text), "the store counts as %s (D16)",
                 is_incomplete ? "incomplete" : "complete");
    else
        return NULL;
    return text;
}

const char *history_judge(const struct history *history, const struct history_found *found,
                          enum history_loss loss)
{
    const char *why = NULL;
    for (uint32_t i = 0; i < HISTORY_OWNERS && found->has_started && !why; i++)
        why = judge_owner(history, i, &found->owners[i], loss);
    return why ? why : judge_server(history, found, loss);
}

uint32_t history_newest_xid(const struct tape_event *event)
{
    const uint8_t *bytes = event->data;
    uint32_t left = event->head.data_len, newest = 0;
    if (!(event->head.flags & TAPE_IS_STREAM))
        return packet_xid(bytes, left);
    while (left >= 8) {
        uint32_t step = 4 + (packet_xid(bytes, left) & UINT32_C(0x7fffffff));
        uint32_t xid = packet_xid(bytes + 4, left - 4);
        newest = xid > newest ? xid : newest;
        if (step > left)
            break;
        bytes += step;
        left -= step;
    }
    return newest;
}
