/*
 * probe.h -- asking a client's own status monitor for its state number (8.3, R-SEC-4).
 *
 * SM_STAT is answered by every status monitor with the host's own state, and we call only the
 * address that is recorded: a liar elsewhere cannot answer. Whose status monitor is there is
 * another matter: behind a translator it may be the box's. What it says is proof only when it is
 * calibrated (client_is_calibrated), and it is asked for that once in a while when a client locks.
 *
 * One question per client at a time, a bounded number altogether, and of that a share for each
 * address. A question that finds no room is not asked, and what it was about is not believed.
 *
 *                   probe_begin               answered, or silent for --notify-timeout
 *   (nothing) ---------------------> ASKING ------------------------------------------> what for?
 *
 *   what for:  a notice that is not believed as it stands ....... reboot_probed
 *              a lock request with an older state ............... reboot_probed
 *              once per client after a resume (D12) ............. reboot_probed
 *              a client that tells a state ...................... client_calibrate
 */
#ifndef CORE_PROBE_H
#define CORE_PROBE_H

#include "base/list.h"
#include "base/table.h"
#include "core/ask.h"
#include "core/message.h"

struct core;
struct core_input;

/* The most questions at a time. */
#define PROBE_MAX 256
/* Of them, because of what one address says; and as many to calibrate what is there. */
#define PROBE_SHARE 16

/* What for; the weightier the later. What anybody can cause comes first: see probe.c. */
enum probe_reason {
    PROBE_CALIBRATE,  /* is that the status monitor of this client? (R-SEC-4) */
    PROBE_RESUME,     /* we were away, and may have missed a restart (D12) */
    PROBE_ELSEWHERE,  /* a notice of its name from another address: R-ID-3 (c) */
    PROBE_OTHER_NAME, /* a notice of another name from its address: R-ID-3 (b) */
    PROBE_REQUEST,    /* a lock request of its own with an older state (R-SEC-5) */
    PROBE_OLDER,      /* a notice of its own with an older state (R-SEC-3) */
    PROBE_VERIFY,     /* a notice of its own, under --verify-notify always (R-SEC-4) */
};

struct probe_question {
    enum probe_reason reason;
    uint32_t notified;     /* the state that is in doubt; 0: none, we only want to know */
    struct address from;   /* of a notice: who sent it, */
    struct bytes mon_name; /* and of whom; empty: it is no notice, or there was no room for it */
};

struct probe {
    struct ask ask;
    uint32_t quota; /* of its address when it was first asked, with a reference */
    struct probe_question question;
    uint32_t mon_name;   /* slot in core->names, with a reference; SLOT_NONE: none */
    bool must_ask_again; /* another question came while it was called */
};

struct probes {
    struct table table;    /* of struct probe */
    uint32_t resume_at;    /* slot of a client: those from here on are yet to be asked; SLOT_NONE */
    uint64_t next_ns;      /* when the next of them may be */
    struct list calibrate; /* of clients whose status monitors are to be asked for a first time */
    uint64_t calibrate_next_ns; /* when the next of them may be */
};

__attribute__((warn_unused_result)) int probe_init(struct core *core, const uint32_t slots[]);
void probe_done(struct core *core);

/* Asks. A weightier question takes the place of one that is being asked already. False: neither is
 * this one asked nor another whose answer will do. */
bool probe_begin(struct core *core, uint32_t client, const struct probe_question *question);
/* After a resume: every client that holds something is asked, once, a hundred per second (D12). */
void probe_begin_all(struct core *core);

/* It has announced a state: its status monitor is asked, unless it is calibrated or was just
 * asked. */
void probe_want_calibration(struct core *core, uint32_t client);

/* Asks those who are asked in the course of time: after a resume, and to calibrate. */
void probe_begin_due(struct core *core);
/* When that has the next one. */
uint64_t probe_deadline_ns(const struct core *core);

/* For ask.h: the question about this client, and what came of it; SLOT_NONE: nothing. */
struct ask *probe_ask(const struct core *core, uint64_t client);
void probe_answered(struct core *core, struct ask *ask, uint32_t client,
                    const struct core_input *input);

void probe_check(const struct core *core);

#endif
