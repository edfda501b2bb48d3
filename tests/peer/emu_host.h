/*
 * emu_host.h -- one emulated client host: an address of 127/8, a portmapper, NLM and statd.
 *
 * Its kind (emu_table.h) says how it behaves; the fields below "set at any time" change that during
 * a test, under emu_net_lock when the server may be calling. Its services are in emu_portmap.c,
 * emu_granted.c and emu_statd.c; what it asks of the server is in emu_client.h. It remembers every
 * call it got.
 */
#ifndef PEER_EMU_HOST_H
#define PEER_EMU_HOST_H

#include "peer/dial.h"
#include "peer/emu_net.h"
#include "peer/peer_nlm.h"

enum {
    EMU_HOST_RECORDS_MAX = 256,
    EMU_HOST_WAITS_MAX = 32,
    EMU_HOST_ASKS_MAX = 16,
    EMU_HOST_HELD_MAX = 16,
    EMU_HOST_NAME_MAX = 64,
};

/* What `oh` is made of. */
enum emu_oh {
    EMU_OH_TEXT,  /* "svid@name": Linux, FreeBSD */
    EMU_OH_SYSID, /* 8 binary bytes that name the host: Solaris finds it by them */
    EMU_OH_LOCKD, /* pid and start time of its lockd, with NULs; changes with it: macOS */
};

/* Which waiting request a GRANTED is for. */
enum emu_match {
    EMU_MATCH_ADDRESS, /* svid, file, bytes, and the address that was mounted: Linux */
    EMU_MATCH_EXACT,   /* svid, file, offset and length as sent: FreeBSD */
    EMU_MATCH_OH,      /* that, and oh names this host: Solaris */
    EMU_MATCH_COOKIE,  /* the cookie of a request and its lock, else EXACT: macOS */
};

/* Whom its statd takes for the server that restarted. */
enum emu_statd {
    EMU_STATD_NONE,
    EMU_STATD_ADDRESS_OR_NAME, /* Linux, when the state differs */
    EMU_STATD_EXACT_NAME,      /* FreeBSD: the name as mounted, case-folded, whatever the state */
    EMU_STATD_NAME_OR_REVERSE, /* macOS: the name, else the name of the source address */
    EMU_STATD_BUCKET,          /* illumos: the hash of two and two characters, then equality */
};

/* How it finds the server's port. */
enum emu_lookup { EMU_LOOKUP_PMAP2, EMU_LOOKUP_RPCB4_FIRST, EMU_LOOKUP_RPCB_ONLY };

/* What it does while it is blocked. */
enum emu_poll {
    EMU_POLL_REPEAT, /* the same LOCK again */
    EMU_POLL_RELOCK, /* CANCEL, then LOCK with another cookie */
};

struct emu_kind {
    const char *name;
    uint32_t vers;
    enum emu_oh oh;
    uint32_t cookie_len;
    enum emu_match match;
    enum emu_statd statd;
    enum emu_lookup lookup;
    enum emu_poll poll;
    bool is_async;               /* *_MSG only */
    bool is_unmonitored;         /* NM_LOCK, state 0; nothing is called back */
    bool is_eof_all_ones;        /* len ~0 means "to the end" */
    bool is_granted_msg_broken;  /* answered SYSTEM_ERR */
    bool is_denied_cancel_owned; /* CANCEL -> DENIED: it believes that it holds the lock */
    bool is_boot_state_even;
    bool is_unreachable; /* nobody listens at its address */
    bool uses_udp;       /* beside TCP */
    bool is_udp_first;
};

enum emu_portmap_mode {
    EMU_PORTMAP_ANSWERS,
    EMU_PORTMAP_SILENT,
    EMU_PORTMAP_EMPTY, /* nothing is registered */
};

/* How GRANTED is answered. */
enum emu_answer {
    EMU_ANSWER_HONEST,
    EMU_ANSWER_LATE,  /* accepted or refused at once, but said only on emu_host_release_answers */
    EMU_ANSWER_NEVER, /* heard, ignored */
};

enum emu_service { EMU_SERVICE_PORTMAP, EMU_SERVICE_NLM, EMU_SERVICE_STATD, EMU_SERVICE_OWN };

/* One call that the host got. */
struct emu_record {
    uint64_t at_ns;
    enum emu_service service; /* OWN: it came to the socket that the host calls from */
    bool is_udp, is_readable;
    uint32_t from; /* address */
    uint16_t from_port;
    struct packet_call call;
    struct peer_nlm_args args; /* GRANTED, GRANTED_MSG; SM_NOTIFY: caller_name and state */
    struct peer_nlm_res res;   /* *_RES */
    bool is_answered;          /* GRANTED: something was decided */
    uint32_t status;           /* what */
    bool is_accepted;          /* SM_NOTIFY: it means the server; *_RES: somebody waited for it */
};

/* A blocked request as its host sees it. */
enum emu_wait_state {
    EMU_WAIT_FREE,
    EMU_WAIT_BLOCKED, /* sent or answered BLOCKED: a GRANTED may come */
    EMU_WAIT_CANCELLING,
    EMU_WAIT_GRANTED,
    EMU_WAIT_OVER,
};

struct emu_wait {
    enum emu_wait_state state;
    struct peer_nlm_args args; /* as sent last */
    uint32_t granted_count;    /* callbacks that were accepted */
};

/* An asynchronous request whose *_RES has not come yet. */
struct emu_ask {
    bool is_open, is_answered;
    bool is_at_own_socket; /* where the answer came */
    uint32_t procedure;    /* of the answer */
    struct peer_nlm_bytes cookie;
    struct peer_nlm_res res;
};

/* An answer that is kept back. */
struct emu_held {
    bool is_used;
    uint64_t socket;
    struct dial_endpoint to;
    struct packet *message;
    bool is_call; /* GRANTED_RES: goes out of the host's own socket */
    bool is_udp;
};

struct emu_host {
    /* From emu_host_new. */
    const struct emu_kind *kind;
    uint32_t address; /* host byte order */
    char name[EMU_HOST_NAME_MAX];
    struct dial_endpoint server;         /* as mounted: address and port of the server */
    char server_name[EMU_HOST_NAME_MAX]; /* as typed at the mount */
    uint16_t portmap_port, nlm_port[2], statd_port[2]; /* [is_udp] */

    /* Set at any time. */
    uint32_t state;              /* its NSM state */
    uint32_t timeout_ms;         /* how long an answer may take; default 10 s */
    uint32_t poll_ms, resend_ms; /* real clients: 30 s and 4 s; default 250 and 500 ms */
    bool is_udp;                 /* how it calls */
    bool is_privileged;          /* from a port below 1024; default: if this process may */
    uint32_t notify_address;     /* SM_NOTIFY comes from here; default: address */
    bool is_in_grace;            /* Solaris: answers GRACE to GRANTED */
    enum emu_portmap_mode portmap_mode;
    bool is_hidden[2];            /* [is_udp]: NLM is not registered for it */
    uint32_t portmap_version_max; /* 4; 2 is the portmapper of old */
    enum emu_answer answer;
    uint32_t lockd_start; /* part of EMU_OH_LOCKD */

    /* Its own. */
    int fd[2]; /* [is_udp]: synchronous calls */
    uint64_t own_socket[2];
    uint32_t xid, cookie_count, next_svid;
    uint16_t last_privileged_port;
    struct packet *last_call; /* for emu_client_repeat */
    uint32_t last_procedure;
    bool was_at_own_socket;
    struct emu_wait waits[EMU_HOST_WAITS_MAX];
    struct emu_ask asks[EMU_HOST_ASKS_MAX];
    struct emu_held held[EMU_HOST_HELD_MAX];
    uint32_t server_state_seen; /* statd: the last state accepted */
    uint32_t restarts_seen;     /* SM_NOTIFYs that would start a reclaim */
    uint32_t record_count, records_lost;
    struct emu_record records[EMU_HOST_RECORDS_MAX];
};

struct emu_host_config {
    uint32_t address;
    const char *name;
    struct dial_endpoint server;
    const char *server_name; /* NULL: the address as text */
    uint16_t portmap_port;   /* 0: any free one, for tests of this library; usually 111 */
};

/* A host with its sockets. NULL with errno: one of them could not be had. */
struct emu_host *emu_host_new(const struct emu_kind *kind, const struct emu_host_config *config);
void emu_host_free(struct emu_host *host);

/* The lockd of the host restarts: connections end, waits are forgotten, EMU_OH_LOCKD changes. */
void emu_host_restart_lockd(struct emu_host *host);
/* Sends what EMU_ANSWER_LATE kept back, and is honest from now on. */
void emu_host_release_answers(struct emu_host *host);

/* A socket of the host to the server: bound to its address, privileged if it wants to be. */
int emu_host_open(struct emu_host *host, bool is_udp, uint32_t source_address);
/* Sends a call from the host's own, served socket; the answer is not waited for. */
bool emu_host_send(struct emu_host *host, bool is_udp, const struct packet *call);
uint32_t emu_host_next_xid(struct emu_host *host);

/* Keeps an answer back; for the services. */
void emu_host_keep(struct emu_host *host, const struct emu_held *held,
                   const struct packet *message);
/* A new record with what every call has; when all are used, the last one again and again. */
struct emu_record *emu_host_record(struct emu_host *host, const struct emu_net_message *message,
                                   const struct packet_call *call);

/* How many calls of this procedure came; nth of them, counted from 0, or NULL. Under the lock. */
uint32_t emu_host_count(const struct emu_host *host, uint32_t prog, uint32_t proc);
const struct emu_record *emu_host_nth(const struct emu_host *host, uint32_t prog, uint32_t proc,
                                      uint32_t nth);
/* Waits for at least `count` of them. */
bool emu_host_wait_count(struct emu_host *host, uint32_t prog, uint32_t proc, uint32_t count,
                         uint32_t timeout_ms);
/* "127.0.0.1"; valid until the next call. */
const char *emu_host_address_text(uint32_t address);

#endif
