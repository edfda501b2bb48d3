/*
 * script.h -- stories of locks and recovery as text: one form, told to the core, to the simulator
 * and to real processes.
 *
 * A file *.txt holds stories. A story is what clients do, one line each, and what they get:
 *
 *     story a waiter is called when the lock is free
 *     rule R-BLK-1
 *     A lock 0 10 X -> granted
 *     B lock 3 end X wait -> blocked
 *     A unlock 0 10 -> granted
 *     B is granted 3 end X
 *     C test 5 1 S -> denied by B 3 end X
 *
 * Clients are A to F; A2 and A3 are other processes of A. Ranges are offset and length; `end`: to
 * the end of the file. Modes are X and S. Every line, and what each driver can do, is described in
 * docs/TESTING.md. A line that cannot be read is an error, never a comment.
 *
 *   script.c       reads the text: one reader for everybody
 *   script_play.c  plays it on a driver, compares, reports (TAP)
 *   core.c, sim.c, process.c  the drivers
 *
 * Nothing here but the drivers knows the server's code.
 */
#ifndef STORIES_SCRIPT_H
#define STORIES_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SCRIPT_CLIENTS = 6,
    SCRIPT_PROCESSES = 6, /* of one client; the text names three */
    SCRIPT_FILES = 3,
    SCRIPT_LINE_MAX = 300,
    SCRIPT_TITLE_MAX = 120,
    SCRIPT_OPTIONS_MAX = 8,
    SCRIPT_WORD_MAX = 64,
};

/* The numbers are NLM version 4's. */
enum script_status {
    SCRIPT_GRANTED = 0,
    SCRIPT_DENIED = 1,
    SCRIPT_NOLOCKS = 2,
    SCRIPT_BLOCKED = 3,
    SCRIPT_GRACE = 4,
    SCRIPT_DEADLOCK = 5,
    SCRIPT_STALE = 7,
    SCRIPT_TOOBIG = 8,
};

enum script_verb {
    SCRIPT_LOCK,
    SCRIPT_UNLOCK,
    SCRIPT_CANCEL,
    SCRIPT_TEST,
    SCRIPT_SHARE,
    SCRIPT_UNSHARE,
    SCRIPT_FREE_ALL,
    SCRIPT_REBOOTS, /* value: and says so */
    SCRIPT_NOTIFIES,
    SCRIPT_HAS_STATE, /* what its status monitor says from now on */
    SCRIPT_IS,        /* how it takes calls from now on */
    SCRIPT_STOPS_WAITING,
    SCRIPT_IS_CALLED,
    SCRIPT_ANSWERS, /* what a slow one kept back */
    SCRIPT_IS_GRANTED,
    SCRIPT_IS_NOT_GRANTED,
    SCRIPT_IS_NOTIFIED, /* does it know of our last restart? */
    SCRIPT_PASS,
    SCRIPT_RESTARTS,
    SCRIPT_SIMULATES,
    SCRIPT_GRACE_IS,
    SCRIPT_THERE_ARE,
    SCRIPT_RELEASES, /* the operator */
    SCRIPT_TELLS,
    SCRIPT_ENDS_GRACE,
    SCRIPT_LOG_HAS, /* who has no log passes over it */
    SCRIPT_VERBS,
};

/* How a client takes GRANTED, and SM_NOTIFY and SM_STAT. */
enum script_mood {
    SCRIPT_WELL,
    SCRIPT_SILENT,      /* nothing is heard */
    SCRIPT_UNREACHABLE, /* and provably so */
    SCRIPT_MUTE,        /* hears and acts; its answers are lost */
    SCRIPT_SLOW,        /* hears and acts; its answers to GRANTED leave when the story says so */
};

enum script_noun {
    SCRIPT_LOCKS,
    SCRIPT_WAITERS,
    SCRIPT_OFFERS,
    SCRIPT_CLIENTS_KNOWN,
    SCRIPT_UNSETTLED,
    SCRIPT_SHARES,
    SCRIPT_CRASHES, /* of clients, that were found out in this run */
    SCRIPT_OWED,    /* clients that are still to be notified */
};

struct script_range {
    uint64_t offset, len; /* len 0: to the end */
    bool exclusive;
};

struct script_step {
    uint32_t line;
    char text[SCRIPT_LINE_MAX];
    enum script_verb verb;
    uint32_t client, process; /* from 0 */
    uint32_t file;
    struct script_range range;
    bool has_range; /* IS_GRANTED */
    bool wait, reclaim, has_state;
    uint32_t state;
    uint32_t mode, access;
    /* NOTIFIES: the name; empty: its own. RESTARTS: an option that changes, its value is `state`.
     * LOG_HAS: the text. */
    char word[SCRIPT_WORD_MAX];
    enum script_mood mood;
    uint64_t ms; /* PASS; IS_GRANTED, IS_NOTIFIED: within */
    enum script_noun noun;
    bool has_status;
    uint32_t value; /* the status, the number, or yes and no that is expected */
    bool has_holder;
    uint32_t holder, holder_process;
    struct script_range held;
    /* "N times": this step and the ones after it in the same line, with the offset moved on. */
    uint32_t times, span;
    uint64_t by;
};

struct script_option {
    char key[SCRIPT_WORD_MAX];
    uint32_t value;
};

struct script_client {
    bool is_used, sends_messages, is_unmonitored;
    uint32_t named;             /* like this client; itself: by its own name, */
    char name[SCRIPT_WORD_MAX]; /* which is this one */
    uint32_t behind;
};

struct script {
    const char *file;
    uint32_t line;
    char title[SCRIPT_TITLE_MAX];
    char slug[SCRIPT_TITLE_MAX];
    char excluded[3][SCRIPT_TITLE_MAX]; /* why not, by driver: core, sim, process */
    bool has_version[5];                /* by number */
    bool has_versions;                  /* they are listed: over TCP and over UDP, too */
    bool as_one_client;
    bool is_told_in_time; /* every client: nothing excuses a lost lock */
    struct script_option options[SCRIPT_OPTIONS_MAX];
    uint32_t option_count;
    struct script_client clients[SCRIPT_CLIENTS];
    struct script_step *steps;
    uint32_t step_count, step_max;
};

struct script_book {
    struct script *at;
    uint32_t count, max;
};

/* Reads every *.txt of the directory, in order of names. What cannot be read is printed with its
 * line, and ends the program. */
void script_read(const char *directory, struct script_book *ret);
void script_free(struct script_book *book);

/* The value of a server option of this story, or the default. */
uint32_t script_option(const struct script *script, const char *key, uint32_t otherwise);
const char *script_status_text(uint32_t status);

/* ---- playing ---- */

struct script_way {
    uint32_t version;
    bool is_udp, is_one_client;
};

/* What came of a step. */
struct script_seen {
    uint32_t value;
    bool has_holder;
    uint32_t svid;
    struct script_range held;
    char why[SCRIPT_LINE_MAX]; /* not empty: something is wrong that no number says */
};

typedef void (*script_act_fn)(const struct script_step *step, struct script_seen *ret);

/* All calls of a client in one function. */
#define SCRIPT_CALLS(function)                                                                     \
    [SCRIPT_LOCK] = (function), [SCRIPT_UNLOCK] = (function), [SCRIPT_CANCEL] = (function),        \
    [SCRIPT_TEST] = (function), [SCRIPT_SHARE] = (function), [SCRIPT_UNSHARE] = (function)

struct script_driver {
    const char *name;
    uint32_t number;      /* 0 core, 1 sim, 2 process */
    uint64_t real_ms_max; /* time passes really, and no longer than this in a story; 0: virtual */
    bool has_ways;        /* versions and transports mean something to it */
    uint32_t jobs;        /* tellings at a time */
    /* The options of the server, before it starts, and when a restart changes them. */
    void (*configure)(const struct script *script);
    /* NULL: it can; else why not. */
    const char *(*cannot)(const struct script *script, const struct script_step *step);
    void (*begin)(const struct script *script, const struct script_way *way);
    script_act_fn act[SCRIPT_VERBS];                /* NULL: it has nothing of the kind */
    void (*settle)(const struct script_step *step); /* after each of them */
    void (*end)(void);
    /* The story went another way: says so and ends the process. */
    void (*fail)(const char *message);
};

/* Why this driver does not tell this story; NULL: it does. Valid until the next call. */
const char *script_refusal(const struct script_driver *driver, const struct script *script);
/* Plays it once. */
void script_play(const struct script_driver *driver, const struct script *script,
                 const struct script_way *way);
/* In every way that it is told in. */
void script_play_ways(const struct script_driver *driver, const struct script *script);
/* Every story of the directory in every way, each in a process of its own, as TAP; `only`: a slug,
 * or NULL. The exit status. */
int script_main(const struct script_driver *driver, const char *directory, const char *only);
/* The same as a program: stories_core DIRECTORY [STORY]. */
int script_command(const struct script_driver *driver, int count, char **values);

#endif
