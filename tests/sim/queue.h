/*
 * queue.h -- what is going to happen, in the order in which it will.
 *
 * Events are ordered by virtual time and, at the same instant, by the order in which they were
 * added: the same seed gives the same order, always.
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

enum event_name {
    QUEUE_PARCEL,   /* subject: a parcel that arrives */
    QUEUE_OWNER,    /* subject: an owner whose timer fires; ticket: which timer */
    QUEUE_COMMIT,   /* ticket: the batch that the disk finishes */
    QUEUE_CRASH,    /* the server dies */
    QUEUE_BOOT,     /* it starts again */
    QUEUE_VANDAL,   /* somebody sends rubbish */
    QUEUE_REBOOT,   /* subject: a host that boots again; ticket: how often that was put off */
    QUEUE_CALM,     /* faults end */
    QUEUE_READY,    /* the server may call back; ticket: the run */
    QUEUE_TICK,     /* the deadline of a call that it makes; ticket: the time */
    QUEUE_LETTER,   /* subject: a letter that arrives */
    QUEUE_MOOD,     /* subject: a host whose mood changes */
    QUEUE_MARKS,    /* have all marks ended? */
    QUEUE_PROCESS,  /* subject: a process of a locker whose timer fires; ticket: which timer */
    QUEUE_MAIL,     /* subject: mail that arrives */
    QUEUE_STATD,    /* subject: a locker that says that it restarted; ticket: which time */
    QUEUE_SESSION,  /* a session does something */
    QUEUE_NOTICE,   /* subject: a locker whose notice arrives; ticket: see statd.c */
    QUEUE_STRANGER, /* a stranger sends something */
    QUEUE_THAW,     /* a server that was replaced goes on; ticket: the run that it was */
    QUEUE_STAND,    /* the server stands still; ticket: see still.h */
    QUEUE_WAKE,     /* it goes on; ticket: which time */
    QUEUE_RESOLVED, /* the resolver answers; ticket: see resolver.c */
    QUEUE_ORDER,    /* an operator gives an order; ticket: see operator.c */
    QUEUE_PROGRAM,  /* a program on the server's machine; ticket: see program.h */
    QUEUE_VANISH,   /* a file is removed */
};

struct queue_event {
    uint64_t time_ns, order, ticket;
    enum event_name name;
    void *subject;
};

struct queue {
    struct queue_event *heap;
    uint32_t count, max;
    uint64_t next_order;
};

void queue_add(struct queue *queue, uint64_t time_ns, enum event_name name, void *subject,
               uint64_t ticket);
/* The earliest event, removed. False: there is none. */
bool queue_take(struct queue *queue, struct queue_event *ret);
/* An event that was taken too early goes back to its place. */
void queue_put_back(struct queue *queue, const struct queue_event *event);
void queue_done(struct queue *queue);

#endif
