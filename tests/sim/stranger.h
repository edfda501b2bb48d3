/*
 * stranger.h -- hosts that nobody knows, which send any legal message at any rate.
 *
 * A stranger has an address of its own and many names, also those of honest clients. It locks in a
 * file of its own and in theirs, waits, cancels, reserves, monitors, announces reboots, reclaims
 * what it never had, in every version, over UDP and TCP, one message or hundreds in a row. It keeps
 * no promise: it answers callbacks wrongly, or not at all, and lets go of nothing until it is calm.
 *
 * What it has may be in the way of others (L5), who wait for it like for anybody else. It may take
 * nothing that somebody relies on (L4), not more than its share of a table (R-SEC-12), and not
 * anybody's turn (P7): the host of one that is offered a lock is called within seconds, however
 * much a silent stranger is offered.
 */
#ifndef SIM_STRANGER_H
#define SIM_STRANGER_H

#include "line.h"
#include "locker.h"

/* Of an address, percent of a table; calls after which the duplicate cache may have forgotten. */
enum {
    STRANGER_MAX = 3,
    STRANGER_NAMES = 60,
    STRANGER_PERCENT = 20,
    STRANGER_CACHED_MAX = 2500,
};

/* What a row of messages is about. */
enum stranger_theme {
    STRANGER_ANY,    /* each of them something else */
    STRANGER_LOCKS,  /* as many locks as there may be */
    STRANGER_NAMES_, /* each under another name */
    STRANGER_OFFERS, /* many wait for one, which lets go: all of them are called */
    STRANGER_MONS,   /* registrations */
    STRANGER_REPEAT, /* the same bytes again and again */
    STRANGER_THEME_END,
};

struct strangers {
    struct prng prng;
    struct host hosts[STRANGER_MAX]; /* as they are called back */
    uint32_t count;
    bool is_silent[STRANGER_MAX];         /* answers no callback */
    bool intrudes;                        /* into files of lockers, too */
    bool poses;                           /* locks under names of lockers, too */
    struct cells asked[LOCKER_FILES_MAX]; /* what they may have there */
    bool has_shared[LOCKER_FILES_MAX];
    uint32_t keys;  /* registrations that they may have */
    uint64_t taken; /* their calls that the server executed */
    uint64_t cookie;

    /* The row of messages that is being sent. */
    enum stranger_theme theme;
    uint32_t row, who, said, length;
    uint64_t every_ns, route;
    bool is_tcp;
    uint16_t port;
    uint32_t xid, version;

    uint32_t farewell_slot; /* the next client record that is freed */
    uint64_t pause_ns;
};

/* Some worlds have them; the limits of the plan are such that there is room beside their shares. */
void stranger_init(struct world *world);
void stranger_done(struct world *world);
/* The same in a story, which decides what they say. */
void stranger_add(struct world *world, uint32_t count, struct prng prng);

/* The time of the next message, or of the next row. */
void stranger_act(struct world *world);
/* From now on they let go of everything, and answer whoever calls. */
void stranger_be_calm(struct world *world);

/* The stranger at this address; NULL: none. */
struct host *stranger_host(struct world *world, const struct address *address);
bool stranger_is_at(const struct world *world, const struct address *address);
/* A call reached it; false: it answers nothing. */
bool stranger_execute(struct world *world, struct bytes message, struct packet *reply);

/* May a stranger have something in the way of these cells of a file, or deny its use? */
bool stranger_is_in_the_way(const struct world *world, const struct extent *extent);
bool stranger_may_share(const struct world *world, uint32_t file);
/* This owner of a lock is one of them. */
bool stranger_is_owner(const struct peer_nlm_bytes *oh);
/* A name that they monitor and no watcher does; and a notice of it that is another's to send. */
bool stranger_may_watch(const struct world *world, struct bytes mon_name);
bool stranger_is_spoken_for(const struct world *world, const struct record_notice *notice);
/* How many registrations they may have, and how many of their calls the cache may hold. */
uint32_t stranger_keys(const struct world *world);
uint64_t stranger_taken(const struct world *world);

/* P7: whoever is offered a lock is called, now or before; at every commit. */
void stranger_check_calls(struct world *world);

/* ---- stranger_say.c ---- */

/* The next message of the row. False: the server is too busy to take it. */
bool stranger_say(struct world *world);
/* FREE_ALL under this name, or SM_UNMON_ALL under that my_name: it lets go. */
bool stranger_frees(struct world *world, uint32_t who, struct bytes name);
bool stranger_unmonitors(struct world *world, uint32_t who, struct bytes my_name);

#endif
