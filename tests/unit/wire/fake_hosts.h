/*
 * fake_hosts.h -- every address of 127.0.0.0/8 is a host of its own: its second number says how it
 * behaves. They have one portmapper and one service each, all served by a few sockets on the test's
 * own loop, in a private network where port 111 is free.
 *
 * Messages are read and built with the tests' own XDR.
 */
#ifndef WIRE_FAKE_HOSTS_H
#define WIRE_FAKE_HOSTS_H

#include "base/address.h"

#include <uv.h>

/* The second number of the address. */
enum fake_kind {
    FAKE_TCP = 1,        /* the service is on TCP */
    FAKE_UDP,            /* on UDP only */
    FAKE_NOT_REGISTERED, /* its portmapper knows nothing; the service is on TCP all the same */
    FAKE_REFUSES,        /* registered at a TCP port where nobody listens */
    FAKE_REFUSES_UDP,    /* registered at a UDP port where nobody listens */
    FAKE_LOOKUP_TCP,     /* its portmapper answers over TCP only; the service is on TCP */
    FAKE_SILENT,         /* its portmapper says nothing at all; the service is on TCP */
    FAKE_HANGS_UP,       /* takes a call over TCP and closes; number 1 only the first time */
    FAKE_NEVER_ANSWERS,  /* takes calls over TCP */
    FAKE_DRIBBLES,       /* answers byte by byte, in two fragments */
    FAKE_FLOODS,         /* answers with a record of a megabyte */
    FAKE_TOO_LATE,       /* answers a call over UDP only when it came three times */
    FAKE_ENDS,           /* answers over TCP and ends its side of the connection at once */
    FAKE_CUTS,           /* the same with half of the answer */
    FAKE_KINDS
};

enum {
    FAKE_PROG = 200024,
    FAKE_VERS = 1,
    FAKE_PROC = 5,
    FAKE_TCP_PORT = 7001,
    FAKE_UDP_PORT = 7002,
    FAKE_DEAD_PORT = 7003,
    FAKE_HINT_V6 = 7004, /* a service on ::1, which has no portmapper */
    FAKE_SEEN_MAX = 8192,
};

/* A call that the service of a host got. */
struct fake_call {
    struct address host, from;
    uint16_t from_port;
    bool is_udp;
    uint32_t argument; /* the first word */
    uint32_t args_len;
};

struct fake_hosts {
    uint32_t call_count;
    struct fake_call calls[FAKE_SEEN_MAX];
    uint32_t question_count; /* to portmappers */
    struct address last_asker;
    uint16_t last_asker_port;
    uint32_t open_count;  /* connections from us */
    uint32_t laden_count; /* those that came with something to read */
    uint32_t reset_count; /* of them, aborted by us */
};

/* A network of its own with nothing but loopback. False: not allowed here. */
bool fake_hosts_enter_network(void);

struct fake_hosts *fake_hosts_new(uv_loop_t *loop);
/* Closes everything; run the loop, then free. */
void fake_hosts_close(struct fake_hosts *hosts);
void fake_hosts_free(struct fake_hosts *hosts);

/* 127.kind.x.y */
struct address fake_host(enum fake_kind kind, uint32_t number);

/* Calls that this host's service got. */
uint32_t fake_hosts_calls(const struct fake_hosts *hosts, const struct address *host);

#endif
