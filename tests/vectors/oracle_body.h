/*
 * oracle_body.h -- arguments and results as the oracle has them: which procedure has which, the XDR
 * routine of rpcgen or libtirpc for each, and their text.
 */
#ifndef VECTORS_ORACLE_BODY_H
#define VECTORS_ORACLE_BODY_H

#include "vector.h"

#include "sm_inter.h"
#include "stat_chge.h"

#include <rpc/pmap_prot.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_prot.h>
#include <stdio.h>

enum oracle_shape {
    ORACLE_VOID,
    /* NSM */
    ORACLE_NAME,
    ORACLE_MON,
    ORACLE_MON_ID,
    ORACLE_MY_ID,
    ORACLE_CHANGE,
    ORACLE_STAT_RES,
    ORACLE_STAT,
    /* the portmapper */
    ORACLE_MAPPING,
    ORACLE_RPCB,
    ORACLE_BOOL,
    ORACLE_PORT,
    ORACLE_ADDRESS,
    ORACLE_MAPPINGS,
    ORACLE_RPCBS,
};

union oracle_body {
    sm_name name;
    mon monitor;
    mon_id id;
    my_id self;
    stat_chge change;
    sm_stat_res stat_res;
    sm_stat stat;
    struct pmap mapping;
    rpcb service;
    bool_t is_done;
    u_short port;
    char *address;
    struct pmaplist *mappings;
    rpcblist *services;
};

struct oracle_procedure {
    const char *file, *name;
    uint32_t prog, version_low, version_high, number;
    enum oracle_shape args, result;
};

/* Each returns NULL when there is none. */
const struct oracle_procedure *oracle_body_by_file(const char *file);
const struct oracle_procedure *oracle_body_by_number(uint32_t prog, uint32_t vers, uint32_t number);
/* What a reply answers: the procedure of its file, else the NSM procedure that its text names. */
const struct oracle_procedure *oracle_body_by_reply(const char *file, const char *text);

xdrproc_t oracle_body_routine(enum oracle_shape shape);

/* The value that a text describes. Its memory is good until the next one. */
union oracle_body oracle_body_of(enum oracle_shape shape, const char *text);

/* Its text. */
void oracle_body_print(FILE *out, enum oracle_shape shape, const union oracle_body *body);
void oracle_body_print_string(FILE *out, const char *key, const char *value);

#endif
