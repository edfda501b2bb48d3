/*
 * oracle_body.c -- see oracle_body.h.
 */
#include "oracle_body.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES = 16, NAME_SIZE = 1025, ELEMENTS_MAX = 4, KEY_SIZE = 32, NSM = 100024, PMAP = 100000 };

static const struct oracle_procedure procedures[] = {
    {"nsm_null.txt", "NULL", NSM, 1, 1, 0, ORACLE_VOID, ORACLE_VOID},
    {"nsm_stat.txt", "STAT", NSM, 1, 1, 1, ORACLE_NAME, ORACLE_STAT_RES},
    {"nsm_mon.txt", "MON", NSM, 1, 1, 2, ORACLE_MON, ORACLE_STAT_RES},
    {"nsm_unmon.txt", "UNMON", NSM, 1, 1, 3, ORACLE_MON_ID, ORACLE_STAT},
    {"nsm_unmon_all.txt", "UNMON_ALL", NSM, 1, 1, 4, ORACLE_MY_ID, ORACLE_STAT},
    {"nsm_simu_crash.txt", "SIMU_CRASH", NSM, 1, 1, 5, ORACLE_VOID, ORACLE_VOID},
    {"nsm_notify.txt", "NOTIFY", NSM, 1, 1, 6, ORACLE_CHANGE, ORACLE_VOID},
    {"portmap_pmap_null.txt", "NULL", PMAP, 2, 2, 0, ORACLE_VOID, ORACLE_VOID},
    {"portmap_pmap_set.txt", "SET", PMAP, 2, 2, 1, ORACLE_MAPPING, ORACLE_BOOL},
    {"portmap_pmap_unset.txt", "UNSET", PMAP, 2, 2, 2, ORACLE_MAPPING, ORACLE_BOOL},
    {"portmap_pmap_getport.txt", "GETPORT", PMAP, 2, 2, 3, ORACLE_MAPPING, ORACLE_PORT},
    {"portmap_pmap_dump.txt", "DUMP", PMAP, 2, 2, 4, ORACLE_VOID, ORACLE_MAPPINGS},
    {"portmap_rpcb_null.txt", "NULL", PMAP, 3, 4, 0, ORACLE_VOID, ORACLE_VOID},
    {"portmap_rpcb_set.txt", "SET", PMAP, 3, 4, 1, ORACLE_RPCB, ORACLE_BOOL},
    {"portmap_rpcb_unset.txt", "UNSET", PMAP, 3, 4, 2, ORACLE_RPCB, ORACLE_BOOL},
    {"portmap_rpcb_getaddr.txt", "GETADDR", PMAP, 3, 4, 3, ORACLE_RPCB, ORACLE_ADDRESS},
    {"portmap_rpcb_dump.txt", "DUMP", PMAP, 3, 4, 4, ORACLE_VOID, ORACLE_RPCBS},
    {"portmap_rpcb_getversaddr.txt", "GETVERSADDR", PMAP, 4, 4, 9, ORACLE_RPCB, ORACLE_ADDRESS},
};
enum { PROCEDURE_COUNT = sizeof procedures / sizeof procedures[0] };

const struct oracle_procedure *oracle_body_by_file(const char *file)
{
    for (int i = 0; i < PROCEDURE_COUNT; i++)
        if (strcmp(file, procedures[i].file) == 0)
            return &procedures[i];
    return NULL;
}

const struct oracle_procedure *oracle_body_by_number(uint32_t prog, uint32_t vers, uint32_t number)
{
    for (int i = 0; i < PROCEDURE_COUNT; i++)
        if (procedures[i].prog == prog && procedures[i].version_low <= vers &&
            vers <= procedures[i].version_high && procedures[i].number == number)
            return &procedures[i];
    return NULL;
}

const struct oracle_procedure *oracle_body_by_reply(const char *file, const char *text)
{
    const struct oracle_procedure *of_file = oracle_body_by_file(file);
    for (int i = 0; of_file == NULL && i < PROCEDURE_COUNT; i++)
        if (procedures[i].prog == NSM && vector_is(text, "proc", procedures[i].name))
            return &procedures[i];
    return of_file;
}

/* xdr_void has another type than every other routine. */
static bool_t no_body(XDR *xdrs, ...)
{
    (void)xdrs;
    return TRUE;
}

xdrproc_t oracle_body_routine(enum oracle_shape shape)
{
    switch (shape) {
    case ORACLE_VOID:
        return no_body;
    case ORACLE_NAME:
        return (xdrproc_t)xdr_sm_name;
    case ORACLE_MON:
        return (xdrproc_t)xdr_mon;
    case ORACLE_MON_ID:
        return (xdrproc_t)xdr_mon_id;
    case ORACLE_MY_ID:
        return (xdrproc_t)xdr_my_id;
    case ORACLE_CHANGE:
        return (xdrproc_t)xdr_stat_chge;
    case ORACLE_STAT_RES:
        return (xdrproc_t)xdr_sm_stat_res;
    case ORACLE_STAT:
        return (xdrproc_t)xdr_sm_stat;
    case ORACLE_MAPPING:
        return (xdrproc_t)xdr_pmap;
    case ORACLE_RPCB:
        return (xdrproc_t)xdr_rpcb;
    case ORACLE_BOOL:
        return (xdrproc_t)xdr_bool;
    case ORACLE_PORT:
        return (xdrproc_t)xdr_u_short;
    case ORACLE_ADDRESS:
        return (xdrproc_t)xdr_wrapstring;
    case ORACLE_MAPPINGS:
        return (xdrproc_t)xdr_pmaplist;
    case ORACLE_RPCBS:
        return (xdrproc_t)xdr_rpcblist;
    }
    abort();
}

/* ---- from text ---- */

/* The strings are C strings; these are their memory while a value is encoded. */
static char names[NAMES][NAME_SIZE];
static unsigned name_count;

static char *name_of(const char *text, const char *key)
{
    if (name_count == NAMES)
        abort();
    char *memory = names[name_count++];
    size_t len = vector_string(text, key, (uint8_t *)memory, NAME_SIZE - 1);
    memory[len] = '\0';
    return memory;
}

static my_id my_id_of(const char *text)
{
    return (my_id){
        .my_name = name_of(text, "my_name"),
        .my_prog = (int)vector_number(text, "my_prog"),
        .my_vers = (int)vector_number(text, "my_vers"),
        .my_proc = (int)vector_number(text, "my_proc"),
    };
}

/* `number` is behind the keys of an element of a list, counted from 1; 0: there is no list. */
static const char *key_of(char memory[static KEY_SIZE], const char *key, unsigned number)
{
    if (number == 0)
        return key;
    snprintf(memory, KEY_SIZE, "%s%u", key, number);
    return memory;
}

static struct pmap mapping_of(const char *text, unsigned number)
{
    char key[KEY_SIZE];
    return (struct pmap){
        .pm_prog = vector_number(text, key_of(key, "program", number)),
        .pm_vers = vector_number(text, key_of(key, "version", number)),
        .pm_prot = vector_number(text, key_of(key, "protocol", number)),
        .pm_port = vector_number(text, key_of(key, "port", number)),
    };
}

static rpcb service_of(const char *text, unsigned number)
{
    char key[KEY_SIZE];
    return (rpcb){
        .r_prog = vector_number(text, key_of(key, "program", number)),
        .r_vers = vector_number(text, key_of(key, "version", number)),
        .r_netid = name_of(text, key_of(key, "netid", number)),
        .r_addr = name_of(text, key_of(key, "address", number)),
        .r_owner = name_of(text, key_of(key, "owner", number)),
    };
}

static unsigned element_count(const char *text)
{
    unsigned count = vector_number(text, "entries");
    if (count > ELEMENTS_MAX)
        abort();
    return count;
}

static struct pmaplist *mappings_of(const char *text)
{
    static struct pmaplist elements[ELEMENTS_MAX];
    unsigned count = element_count(text);
    for (unsigned i = 0; i < count; i++)
        elements[i] =
            (struct pmaplist){mapping_of(text, i + 1), i + 1 < count ? &elements[i + 1] : NULL};
    return count > 0 ? elements : NULL;
}

static rpcblist *services_of(const char *text)
{
    static rpcblist elements[ELEMENTS_MAX];
    unsigned count = element_count(text);
    for (unsigned i = 0; i < count; i++)
        elements[i] = (rpcblist){service_of(text, i + 1), i + 1 < count ? &elements[i + 1] : NULL};
    return count > 0 ? elements : NULL;
}

static union oracle_body nsm_of(enum oracle_shape shape, const char *text)
{
    union oracle_body body;
    memset(&body, 0, sizeof body);
    if (shape == ORACLE_NAME) {
        body.name.mon_name = name_of(text, "mon_name");
    } else if (shape == ORACLE_MON) {
        body.monitor.mon_id.mon_name = name_of(text, "mon_name");
        body.monitor.mon_id.my_id = my_id_of(text);
        vector_hex(vector_field(text, "priv"), (uint8_t *)body.monitor.priv, 16);
    } else if (shape == ORACLE_MON_ID) {
        body.id.mon_name = name_of(text, "mon_name");
        body.id.my_id = my_id_of(text);
    } else if (shape == ORACLE_MY_ID) {
        body.self = my_id_of(text);
    } else if (shape == ORACLE_CHANGE) {
        body.change.mon_name = name_of(text, "mon_name");
        body.change.state = (int)vector_number(text, "state");
    } else if (shape == ORACLE_STAT_RES) {
        body.stat_res.res_stat = vector_is(text, "res", "STAT_FAIL") ? stat_fail : stat_succ;
        body.stat_res.state = (int)vector_number(text, "state");
    } else if (shape == ORACLE_STAT) {
        body.stat.state = (int)vector_number(text, "state");
    }
    return body;
}

union oracle_body oracle_body_of(enum oracle_shape shape, const char *text)
{
    name_count = 0;
    switch (shape) {
    case ORACLE_VOID:
    case ORACLE_NAME:
    case ORACLE_MON:
    case ORACLE_MON_ID:
    case ORACLE_MY_ID:
    case ORACLE_CHANGE:
    case ORACLE_STAT_RES:
    case ORACLE_STAT:
        return nsm_of(shape, text);
    case ORACLE_MAPPING:
        return (union oracle_body){.mapping = mapping_of(text, 0)};
    case ORACLE_RPCB:
        return (union oracle_body){.service = service_of(text, 0)};
    case ORACLE_BOOL:
        return (union oracle_body){.is_done = vector_is(text, "done", "TRUE")};
    case ORACLE_PORT:
        return (union oracle_body){.port = (u_short)vector_number(text, "port")};
    case ORACLE_ADDRESS:
        return (union oracle_body){.address = name_of(text, "address")};
    case ORACLE_MAPPINGS:
        return (union oracle_body){.mappings = mappings_of(text)};
    case ORACLE_RPCBS:
        return (union oracle_body){.services = services_of(text)};
    }
    abort();
}

/* ---- to text ---- */

void oracle_body_print_string(FILE *out, const char *key, const char *value)
{
    fprintf(out, "%s=\"", key);
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        if (c < ' ' || c > '~' || c == '"' || c == '\\')
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void print_my_id(FILE *out, const my_id *self)
{
    oracle_body_print_string(out, "my_name", self->my_name);
    fprintf(out, " my_prog=%u my_vers=%u my_proc=%u", (unsigned)self->my_prog,
            (unsigned)self->my_vers, (unsigned)self->my_proc);
}

static void print_number(FILE *out, const char *key, unsigned number, unsigned long value)
{
    char memory[KEY_SIZE];
    fprintf(out, "%s=%lu", key_of(memory, key, number), value);
}

static void print_mapping(FILE *out, const struct pmap *mapping, unsigned number)
{
    print_number(out, "program", number, mapping->pm_prog);
    print_number(out, " version", number, mapping->pm_vers);
    print_number(out, " protocol", number, mapping->pm_prot);
    print_number(out, " port", number, mapping->pm_port);
}

static void print_service(FILE *out, const rpcb *service, unsigned number)
{
    char key[KEY_SIZE];
    print_number(out, "program", number, service->r_prog);
    print_number(out, " version", number, service->r_vers);
    oracle_body_print_string(out, key_of(key, " netid", number), service->r_netid);
    oracle_body_print_string(out, key_of(key, " address", number), service->r_addr);
    oracle_body_print_string(out, key_of(key, " owner", number), service->r_owner);
}

static void print_lists(FILE *out, const struct pmaplist *mappings, const rpcblist *services)
{
    unsigned count = 0;
    for (const struct pmaplist *at = mappings; at != NULL; at = at->pml_next)
        count++;
    for (const rpcblist *at = services; at != NULL; at = at->rpcb_next)
        count++;
    fprintf(out, "entries=%u", count);
    for (unsigned i = 1; i <= count; i++) {
        fputc(' ', out);
        if (mappings != NULL) {
            print_mapping(out, &mappings->pml_map, i);
            mappings = mappings->pml_next;
        } else {
            print_service(out, &services->rpcb_map, i);
            services = services->rpcb_next;
        }
    }
}

static void print_nsm(FILE *out, enum oracle_shape shape, const union oracle_body *body)
{
    if (shape == ORACLE_NAME) {
        oracle_body_print_string(out, "mon_name", body->name.mon_name);
    } else if (shape == ORACLE_MON) {
        print_nsm(out, ORACLE_MON_ID, &(const union oracle_body){.id = body->monitor.mon_id});
        fputs(" priv=", out);
        for (unsigned i = 0; i < 16; i++)
            fprintf(out, "%02x", (unsigned char)body->monitor.priv[i]);
    } else if (shape == ORACLE_MON_ID) {
        oracle_body_print_string(out, "mon_name", body->id.mon_name);
        fputc(' ', out);
        print_my_id(out, &body->id.my_id);
    } else if (shape == ORACLE_MY_ID) {
        print_my_id(out, &body->self);
    } else if (shape == ORACLE_CHANGE) {
        oracle_body_print_string(out, "mon_name", body->change.mon_name);
        fprintf(out, " state=%u", (unsigned)body->change.state);
    } else if (shape == ORACLE_STAT_RES) {
        fprintf(out, "res=%s state=%u",
                body->stat_res.res_stat == stat_succ ? "STAT_SUCC" : "STAT_FAIL",
                (unsigned)body->stat_res.state);
    } else if (shape == ORACLE_STAT) {
        fprintf(out, "state=%u", (unsigned)body->stat.state);
    }
}

void oracle_body_print(FILE *out, enum oracle_shape shape, const union oracle_body *body)
{
    switch (shape) {
    case ORACLE_VOID:
        fputs("void", out);
        return;
    case ORACLE_NAME:
    case ORACLE_MON:
    case ORACLE_MON_ID:
    case ORACLE_MY_ID:
    case ORACLE_CHANGE:
    case ORACLE_STAT_RES:
    case ORACLE_STAT:
        print_nsm(out, shape, body);
        return;
    case ORACLE_MAPPING:
        print_mapping(out, &body->mapping, 0);
        return;
    case ORACLE_RPCB:
        print_service(out, &body->service, 0);
        return;
    case ORACLE_BOOL:
        fputs(body->is_done ? "done=TRUE" : "done=FALSE", out);
        return;
    case ORACLE_PORT:
        print_number(out, "port", 0, body->port);
        return;
    case ORACLE_ADDRESS:
        oracle_body_print_string(out, "address", body->address);
        return;
    case ORACLE_MAPPINGS:
        print_lists(out, body->mappings, NULL);
        return;
    case ORACLE_RPCBS:
        print_lists(out, NULL, body->services);
        return;
    }
}
