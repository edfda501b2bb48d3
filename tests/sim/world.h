/*
 * world.h -- one simulated world: a server, its disk, its clients, the network between them.
 *
 * One process, one seed, virtual time. Everything that could vary comes from the world's generator,
 * so a seed is a history. The server is the real rpc_server and core, fed with bytes; all else is
 * a model:
 *
 *   watcher.c --calls---> net.c ---packets---> machine.c (rpc_server, core) ---batches---> disk.c
 *       ^                   |                      |                                         |
 *       +-----replies-------+<------replies--------+                                         |
 *   callee.c <----------> line.c <---calls back----+ (core, outcall, rpc_client)      |
 *   oracle.c notes what was asked and answered, told.c what was told; both hold it against <--+
 *   the disk; resolver.c knows whose name is whose
 *
 * Watchers monitor (NSM); beside them, or instead of them, lockers lock (NLM): see locker.h, and
 * era.h for what they are promised over restarts. Sessions of another protocol use the tracker:
 * session.h.
 *
 * Its process may stand still while everybody else goes on: still.h. Programs on its machine may
 * lock the same files: program.h. Files may be removed: vanish.h.
 *
 * A run is a number given to a life of the server between two crashes, 1, 2, 3, ...
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/pace.h"
#include "base/prng.h"
#include "disk.h"
#include "queue.h"
#include "rpc/client.h"
#include "rpc/outcall.h"
#include "rpc/server.h"

#define MILLISECOND UINT64_C(1000000)
#define SECOND      UINT64_C(1000000000)
#define SEND_NS     (2 * SECOND)  /* LEASE_SEND_MS of base/lease.h */
#define KEPT_NS     (10 * SECOND) /* LEASE_KEPT_MS */
#define ECHO_NS     (SEND_NS + KEPT_NS)

enum {
    HOST_MAX = 8,      /* of watchers */
    HOST_ALL_MAX = 14, /* with those of lockers, which follow */
    OWNER_MAX = 16,
    KEY_MAX = 8,    /* per owner */
    NAMES_MAX = 48, /* monitored names in the world */
    NAME_TEXT_MAX = 1028,
    REPLY_KEPT_MAX = 64,
    LIFE_MAX = 64,
    PAST_MAX = 16,
    LOOKUPS_MAX = 2, /* of the server's resolver at once */
};

/*
 * What P2 excludes, one switch each. A world that does not allow it does not do it, and the oracle
 * is strict. Seeds decide on (2), (3) and (4); of each there is a story in scenario_exclusion.c.
 */
enum world_exclusion {
    WORLD_ALIKE = 1,      /* (1) two clients, or two lives of one, that cannot be told apart */
    WORLD_UNTOLD = 2,     /* (2) a client is not told, or does not reclaim, in time */
    WORLD_INCOMPLETE = 4, /* (3) the store has lost something */
    WORLD_OVERRIDE = 8,   /* (4) an operator gives orders */
    WORLD_LATE = 16,      /* (5) old datagrams arrive, and what an aborted connection had sent */
};

struct world_options {
    uint64_t seed;
    bool verbose;
    uint32_t allows; /* what a scenario may do: of enum world_exclusion */
};

/* What a seed decides before anything happens. Percentages unless the name says otherwise. Limits
 * and modes are those of the current run: an operator may change them at a restart. */
struct plan {
    uint32_t hosts, owners, names;
    uint32_t lockers; /* each with a host */
    uint32_t locks_max, locks_per_client_max, waiters_max;
    uint32_t per_address_percent; /* of each table, for one address; 0: no share */
    uint32_t messages_per_second; /* of one address over UDP; 0: any number */
    uint32_t clients_max, outbox_max, cache_max, batch_puts_max;
    uint32_t calls_max, lines_max; /* calls of the server at once, and their connections */
    uint64_t bytes_max;
    bool few_bytes;    /* the byte budget may be reached */
    bool small_cache;  /* the duplicate cache may forget early: the network then repeats less */
    bool limits_vary;  /* clients_max changes at a restart */
    bool wall_jumps;   /* the wall clock is set now and then, perhaps to 1970 */
    bool shrinks;      /* so do those of locks, also below what is stored */
    bool reconfigures; /* so do modes and the other limits */
    bool sync_process;
    bool long_runs; /* few crashes: the cache expires, limits are reached */
    uint32_t loss, duplication, late, stall, reboot, full;
    uint32_t full_stays;          /* a store that was full is so after the next batch, too */
    uint32_t moody, gone, forged; /* hosts called back: unwell, never there, others answer */
    bool few_calls;               /* the server waits for room to call */
    uint32_t commit_failure_permille, step_crash_permyriad;
    uint64_t delay_max_ns, commit_max_ns, crash_mean_ns, chaos_ns, think_max_ns;
    uint64_t window_ns, give_up_ns, ready_min_ns, ready_max_ns;
    uint64_t grace_ns;
    bool resumes, holds;      /* --recovery resume, --unreachable hold */
    bool verifies, distrusts; /* --verify-notify always, --trust-state off */
    uint32_t allows;          /* of enum world_exclusion */
    bool has_sessions;
    bool nat_forwards;      /* what reaches an address reaches both who are behind it */
    struct lease lease;     /* shared, the disk: who is replaced may only have stood still */
    bool has_echo;          /* and what it may still call out is kept from others for ECHO_NS */
    uint64_t still_mean_ns; /* between two standstills of the server; 0: there are none */
    uint32_t still_step_permyriad;
    bool has_programs;   /* on the server's machine, which lock the same files: program.h */
    bool has_few_pieces; /* the kernel takes only few of one file */
    bool removes;        /* files: vanish.h */
};

struct world;
struct owner;
struct lockers;
struct programs;
struct sessions;
struct strangers;

/* What a host offers to those who call it back, when it is well. */
enum callee_kind {
    CALLEE_BOTH, /* registered on TCP and UDP */
    CALLEE_UDP,  /* on UDP only */
    CALLEE_HINT, /* not registered: at the port in my_name, or 12049 */
    CALLEE_BARE, /* the same without a portmapper */
    CALLEE_KIND_END,
};

enum callee_mood {
    CALLEE_WELL,
    CALLEE_SLOW,
    CALLEE_SILENT,
    CALLEE_REFUSING,
    CALLEE_NOT_YET,   /* the portmapper is up, the service is not */
    CALLEE_FAILING,   /* RPC errors */
    CALLEE_VANISHING, /* gone when it has the call, which it executed or not */
    CALLEE_TWICE,     /* answers twice */
    CALLEE_DEAF,      /* the portmapper answers, the service does not hear */
    CALLEE_MOOD_END,
};

/* A host: an address, the names it goes by, and what it is to those who call it. */
struct host {
    uint32_t index;
    struct address address;
    struct address local; /* our address that it talks to */
    uint32_t nsm_state;   /* what its SM_NOTIFY carries */
    uint32_t forgets;     /* how often the duplicate cache may have dropped what it holds of it */
    enum callee_kind kind;
    enum callee_mood mood;
    bool is_gone;      /* not there until it is calm */
    uint32_t versions; /* of its portmapper: bits 2, 3, 4 */
    bool portmapper_tcp_only;
    uint16_t port_base; /* its services are at this port and the next ones */
    uint64_t tried_ns;  /* when the server last sent something there */
    bool has_no_statd;
    bool has_no_lockd;  /* it can be told of restarts, and not be called back */
    bool has_box;       /* a translator's status monitor answers for it, */
    uint32_t box_state; /* with a number of its own, */
    bool box_swallows;  /* and keeps for itself what it is told */
};

/* A name that is monitored, and the promise that an answered SM_NOTIFY made for it. */
struct name {
    char text[NAME_TEXT_MAX];
    uint32_t at_hosts;     /* whose name it is, one bit each, as the resolver knows */
    bool is_slow;          /* and for many seconds does not */
    uint32_t breaks;       /* how often nobody was certain to watch it */
    uint32_t seen;         /* mark of the last audit that found its notice */
    struct call *notice;   /* the answered one that was executed last, or NULL */
    uint64_t notice_order; /* of that execution: it may be executed again */
    uint32_t disk_notice;  /* state of its notice on the disk; 0: none */
    struct {
        uint32_t state;
        uint64_t until_ns;
    } past[PAST_MAX]; /* what it was before */
    uint32_t past_count;
    uint64_t news_ns; /* when somebody last spoke for it */
};

/* What a key's record may be: absent, or present with the priv of one call. */
struct effect {
    struct call *call;
    bool is_present;
};

/* An SM_MON key of one owner: it alone changes it, one call after the other. */
struct key {
    struct owner *owner;
    uint32_t name; /* index of mon_name */
    uint32_t my_prog, my_vers, my_proc;
    struct effect base;   /* what the last answered call left; call NULL: never touched */
    struct effect *later; /* calls sent after that one, not answered */
    uint32_t later_count, later_max;
    struct call *newest; /* MON sent last */
    uint32_t seen;       /* mark of the last audit that found its record */
    bool may_be_evicted; /* for another, when the table was full and it was given up (A9) */

    /* What the disk says of it, and since when; see told.h. */
    uint64_t record_id; /* 0: no record */
    uint64_t record_since_ns;
    struct call *disk_value;
    uint32_t disk_told, disk_relayed;
    uint64_t news_ns; /* when it was last heard of */
    struct told {
        uint32_t state;
        bool is_restart;
    } * told; /* what its host executed */
    uint32_t told_count, told_max;
};

struct call {
    uint32_t id;
    struct owner *owner;
    uint32_t number; /* order among the owner's calls */
    uint32_t xid, procedure;
    uint32_t life_count;        /* how many calls its owner had made since its host booted */
    struct key *key;            /* MON, UNMON */
    uint32_t name;              /* NOTIFY, STAT: index of the name */
    uint32_t state;             /* NOTIFY */
    struct call *notify_before; /* NOTIFY: the one made before it */
    struct call *value;   /* MON: the call whose id is in the priv; itself, or an earlier one */
    bool must_fail;       /* MON, STAT or NOTIFY with a name or program that is refused */
    const char *bad_name; /* then: the name, unless it is the program */
    bool is_done;         /* the client has its answer, or gave up */
    bool is_answered;     /* the client has its answer */
    uint8_t *bytes;
    uint32_t len;

    /* What the server did with it, as seen from outside. */
    uint32_t executions;
    uint32_t taken_run, taken_port; /* the last time it was executed */
    uint64_t taken_order;           /* global number of that execution */
    uint64_t taken_strangers;       /* calls of strangers until then */
    uint32_t breaks;                /* NOTIFY: of its name then; */
    bool may_speak;                 /* NOTIFY: it was certain to be accepted then */
    uint32_t copies_taken;          /* repeats since then that wait: of one unknown, executed */
    uint32_t state_floor;           /* its answer must carry a larger state */
    uint32_t state_before;          /* the largest state answered when it was executed */
    bool was_absent;                /* MON: nothing was registered for certain */
    bool may_be_refused;            /* MON: a limit may have been reached */
    bool was_full;                  /* MON: the store took no new records */
    bool is_refused;                /* executed once in vain: its effect must never appear */
    uint32_t ended_run;             /* the run in which it left the outbox last; 0: it did not */
    uint64_t ended_ns;
    uint32_t taken_forgets; /* of its host, when it was executed */
    uint64_t undone_ns;     /* MON: when its priv left the disk; 0: it did not */
    bool has_reply;         /* an answer of the last execution left */
    uint32_t reply_len;
    uint8_t reply[REPLY_KEPT_MAX];
};

/* A connection whose server was replaced: kernel.h. */
struct kept {
    uint32_t run; /* of that server, */
    uint64_t from_ns,
        until_ns; /* and when what it has written is delivered; until 0: it is not one */
};

struct connection {
    struct owner *owner;
    uint64_t route;
    uint16_t port;
    bool is_open; /* its owner uses it */
    bool is_dead; /* nothing arrives any more: one of the two hosts is gone */
    struct kept kept;
    uint64_t to_server_ns, to_client_ns; /* when the last packet arrives: TCP keeps order */
    uint32_t sent, delivered;
};

/* Somebody at a host who registers under one my_name, with one call outstanding. */
struct owner {
    uint32_t index;
    struct host *host;
    char my_name[32];
    uint16_t hint_port; /* where it is called when nobody knows better */
    uint16_t port;
    bool is_tcp, keeps_port, is_privileged;
    struct key keys[KEY_MAX];
    uint32_t key_count;
    struct call *call; /* outstanding */
    uint32_t tries, tries_max;
    uint64_t timeout_ns, timer;
    uint32_t calls_made;
    uint32_t taken_number; /* the newest of its calls that the server executed */
    struct connection *connection;
    uint32_t farewell; /* when calm: keys already unregistered */
    bool is_finished;
    uint32_t xid_count;          /* since its host booted */
    uint32_t announced_count;    /* of the SM_NOTIFY that announced its last reboot */
    uint32_t void_before;        /* calls before this number died with their host */
    struct call *reboot;         /* the SM_NOTIFY after which its host counts xids anew */
    struct call *again;          /* given up, to be repeated under a new xid */
    struct call *life[LIFE_MAX]; /* the call made last under each count */
    uint32_t life_begins;        /* number of the first call since the host booted */
};

struct parcel {
    bool to_server;
    struct call *call;
    struct connection *connection; /* NULL: UDP */
    uint32_t order;                /* in the connection */
    uint16_t port;
    uint32_t len;
    uint8_t bytes[];
};

/* A process that does not run; see still.h. */
struct still {
    uint64_t since_ns, until_ns; /* until 0: it runs */
    uint64_t awake_ns;           /* when it had meant to look at the clock again */
    uint64_t turn_ns;            /* the time of the turn in which it stands, as it was lived */
    uint32_t step;               /* of that turn; 0: between two turns */
    uint64_t ticket;
    uint64_t left_out_ns; /* of its time, in all runs */
    uint64_t heard_ns;    /* until then it had read everything */
    uint64_t full_ns;     /* until then calls are left in their connections for lack of room */
    bool is_reading, is_resuming;
    uint32_t room;            /* for datagrams */
    struct queue_event *held; /* what waits, in the order in which it came */
    uint32_t count, max;
};

/* The server machine. */
struct machine {
    bool is_up;
    struct pace pace;
    struct still still;
    uint32_t run;
    struct core *core;
    struct rpc_server *server;
    struct rpc_client *client;
    bool is_ready;           /* it serves, and may call back */
    uint64_t tick_ns;        /* the next tick in the queue */
    uint64_t ready_ns;       /* when notification began, or began anew, as it was lived */
    uint64_t first_ready_ns; /* when it began */
    bool has_lasted;         /* so has a grace of this run, before an SM_SIMU_CRASH in it */
    bool was_over;           /* grace was, when the last batch was taken */
    uint8_t *reply;
    uint32_t clients_max;
    uint32_t locks_max, locks_per_client_max, waiters_max;
    uint32_t full_for;   /* so many reports in a row said that the store is full */
    bool has_resumed;    /* this run went on with the state of the last one (D12) */
    uint32_t boot_state; /* of this run */
    uint32_t bumps;      /* SM_SIMU_CRASH executed in this run */
    uint32_t batches, steps;
    bool power_lost;    /* the next boot follows a power loss */
    bool store_is_full; /* new records are refused */
    bool holds_commits; /* a scenario finishes them itself */
    /* With a shared disk: what calls are due waits for these batches (driver.c does the same). */
    struct outcall_asks asks;
    struct {
        bool is_used;
        uint64_t id;
        uint32_t name;
    } lookups[LOOKUPS_MAX]; /* of resolver.h */
    uint64_t began_ns;      /* when the batch on its way was taken */
    uint64_t send_until_ns; /* with a shared disk: what may leave by the last one (base/lease.h), */
    uint64_t ghost_until_ns;  /* and of the ghost */
    uint64_t boot_ns;         /* of this run, as it was lived */
    struct rpc_client *ghost; /* of a process that stood still when it was replaced; NULL: none */
    uint32_t ghost_run;       /* the run that it was */
    bool ghost_speaks;        /* what leaves now is its own, not ours */
    bool leaves_ghost;        /* a scenario: always */
    bool is_overtaken;        /* it is replaced at the next step, with a callback on its way */
    uint32_t ghost_sent;      /* messages of such processes */
};

/* A file that was removed; see vanish.h. */
struct vanish {
    struct prng prng;
    uint32_t file, run;
    uint64_t ticket; /* of the batch in which it goes; 0: none is awaited */
};

/* What all answers together promised. */
struct ledger {
    uint32_t state_max;   /* in any answer */
    uint32_t state_floor; /* answers to calls executed from now on must carry more */
    uint64_t epoch_max;
    uint64_t id_max; /* largest id seen on disk */
    uint32_t audit;
    uint64_t executions;
    bool incomplete; /* D16: the disk lost something */
};

struct world {
    struct world_options options;
    const char *scenario; /* NULL: random */
    struct plan plan;
    struct prng prng;
    struct prng side; /* for kinds of hosts that not every world has: it shifts nobody's history */
    struct prng tcp;  /* what becomes of segments */
    int64_t wall_skew_ns;   /* how far the wall clock is off */
    struct prng more;       /* for what came later: worlds without it stay as they were */
    struct prng still_prng; /* when the server stands still */
    struct prng jumps;      /* what clocks and stores do on top of that */
    uint64_t now_ns;
    struct queue queue;
    struct disk disk;
    struct machine machine;
    struct ledger ledger;
    struct host hosts[HOST_ALL_MAX];
    struct owner owners[OWNER_MAX];
    struct name names[NAMES_MAX];
    struct lockers *lockers;   /* NULL: none */
    struct sessions *sessions; /* the same */
    struct strangers *strangers;
    struct programs *programs;
    struct vanish vanish;
    struct call **calls;
    uint32_t call_count, call_max;
    struct call *notify_last; /* the newest NOTIFY; the others hang on it */
    struct connection **connections;
    uint32_t connection_count, connection_max;
    struct line **lines;
    uint32_t line_count, line_max;
    uint64_t holds_ns; /* a scenario: what we write to a line arrives so much later */
    bool is_calm;
    bool is_farewell; /* every mark has ended: owners unregister */
    bool is_manual;   /* a scenario decides what owners do */
    bool is_unjudged; /* the promises do not hold in this story */
    uint64_t history; /* hash of everything that left the server */
    uint32_t crashes, answers, excluded, calls_out, kernel_dropped;
};

struct world *world_new(const struct world_options *options);
void world_free(struct world *world);

/* Chaos, calm, farewell, final checks. Ends the process on the first broken promise. */
void world_run(struct world *world);
/* Something happens, unless the server stands still and it is for it. */
void world_handle(struct world *world, const struct queue_event *event);
/* For scenarios: handle events until the time or until no event is left. */
void world_run_until(struct world *world, uint64_t time_ns);

/* One line of the readable trace; nothing unless verbose. */
__attribute__((format(printf, 2, 3))) void world_trace(const struct world *world,
                                                       const char *format, ...);
/* A promise is broken: says which, how to see it again, and exits with 1. */
__attribute__((format(printf, 3, 4))) _Noreturn void
world_fail(const struct world *world, const char *rule, const char *format, ...);

uint32_t world_host_count(const struct world *world);
uint64_t world_random(struct world *world, uint64_t below);
/* May this world do what P2 excludes? */
bool world_allows(const struct world *world, enum world_exclusion exclusion);
bool world_chance(struct world *world, uint32_t percent);
/* The same from the other generator. */
uint64_t world_side(struct world *world, uint64_t below);
bool world_side_chance(struct world *world, uint32_t percent);
/* How much longer a segment takes that was lost and sent again, perhaps several times; 0: it was
 * not. */
uint64_t world_resend_ns(struct world *world);
/* What the server machine takes for the time of day. */
uint64_t world_wall_ns(const struct world *world);
/* That is set anew: to some time, or to 1970. */
void world_set_clock(struct world *world, struct prng *prng);
const char *world_procedure_text(uint32_t procedure);

#endif
