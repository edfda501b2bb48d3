/*
 * portmap.c -- the table of services and the procedures of program 100000; see portmap.h.
 *
 *   procedure         version 2          versions 3 and 4
 *   0 NULL            void               void
 *   1 SET             mapping -> bool    rpcb -> bool
 *   2 UNSET           mapping -> bool    rpcb -> bool
 *   3 GETPORT/ADDR    mapping -> port    rpcb -> universal address
 *   4 DUMP            void -> list       void -> list
 *   9 GETVERSADDR     -                  rpcb -> universal address (version 4)
 *
 * Version 2 knows IPv4 only. An answer is exact: a version or protocol that is not registered has
 * port 0 or an empty address, never another one's (U25). Where a service listens on every address,
 * GETADDR names the one that the caller asked: the caller can reach that one.
 *
 * Always true:
 *  (1) No two services have the same program, version, protocol and family.
 *  (2) Services of the server's own are neither replaced nor removed by a call.
 *  (3) A whole DUMP fits into a reply.
 *
 * DUMP over UDP is for callers on this machine: to others it would send many bytes for few, to an
 * address that nobody has proved (section 8.1, amplification). They use TCP.
 */
#include "rpc/portmap.h"

#include "base/check.h"

#include <stdlib.h>

enum {
    PRIVILEGED_PORT_END = 1024,
    CALL_MAX = 2048, /* names and addresses at their longest, and a credential */
    /* In a list: the word before it, two numbers, "tcp6", an address, "superuser". */
    LISTED_MAX = 4 + 8 + 8 + 4 + ADDRESS_TEXT_MAX + 8 + 16,
};

/* Who may remove a service; what rpcbind calls them. */
enum owner { OWNER_SERVER, OWNER_ROOT, OWNER_OTHER };

static const char *const owner_names[] = {
    [OWNER_SERVER] = "holdfast", [OWNER_ROOT] = "superuser", [OWNER_OTHER] = "unknown"};

struct row {
    struct portmap_service service;
    enum owner owner;
};

struct portmap {
    struct program program;
    uint32_t count;
    struct row rows[PORTMAP_SERVICES_MAX]; /* in the order in which they were added */
    uint64_t refused;
    struct address refused_last;
};

static uint32_t find(const struct portmap *portmap, uint32_t prog, uint32_t vers, uint32_t prot,
                     uint32_t family)
{
    for (uint32_t i = 0; i < portmap->count; i++) {
        const struct portmap_service *at = &portmap->rows[i].service;
        if (at->prog == prog && at->vers == vers && at->prot == prot &&
            at->address.family == family)
            return i;
    }
    return PORTMAP_SERVICES_MAX;
}

/* True also when exactly this service is there already. */
static bool add(struct portmap *portmap, const struct portmap_service *service, enum owner owner)
{
    uint32_t i =
        find(portmap, service->prog, service->vers, service->prot, service->address.family);
    if (i < portmap->count) {
        const struct portmap_service *old = &portmap->rows[i].service;
        return old->port == service->port && address_equal(&old->address, &service->address);
    }
    if (portmap->count == PORTMAP_SERVICES_MAX)
        return false;
    portmap->rows[portmap->count++] = (struct row){.service = *service, .owner = owner};
    return true;
}

/* Of all services of (prog, vers) that match; prot and family 0 match any. */
static bool drop(struct portmap *portmap, uint32_t prog, uint32_t vers, uint32_t prot,
                 uint32_t family, enum owner who)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < portmap->count; i++) {
        const struct row *row = &portmap->rows[i];
        bool matches = row->service.prog == prog && row->service.vers == vers &&
                       (prot == 0 || row->service.prot == prot) &&
                       (family == 0 || row->service.address.family == family);
        bool may = row->owner != OWNER_SERVER && who <= row->owner;
        if (!matches || !may)
            portmap->rows[kept++] = *row;
    }
    bool is_changed = kept < portmap->count;
    portmap->count = kept;
    return is_changed;
}

/* The one gate of SET and UNSET. */
static bool may_change(struct portmap *portmap, const struct peer *from, enum owner *ret_owner)
{
    if (!address_is_loopback(&from->address)) {
        portmap->refused++;
        portmap->refused_last = from->address;
        return false;
    }
    *ret_owner = from->port < PRIVILEGED_PORT_END ? OWNER_ROOT : OWNER_OTHER;
    return true;
}

static enum rpc_accept_stat respond_null(void *context, const struct peer *from, struct xdr_in *in,
                                         struct xdr_out *out)
{
    (void)context;
    (void)from;
    (void)out;
    return xdr_in_done(in) ? RPC_SUCCESS : RPC_GARBAGE_ARGS;
}

static enum rpc_accept_stat answer_set(struct portmap *portmap, const struct peer *from,
                                       const struct portmap_service *service, bool is_possible,
                                       struct xdr_out *out)
{
    enum owner owner;
    xdr_put_u32(out,
                may_change(portmap, from, &owner) && is_possible && add(portmap, service, owner));
    return RPC_SUCCESS;
}

static enum rpc_accept_stat pmap_set(void *context, const struct peer *from, struct xdr_in *in,
                                     struct xdr_out *out)
{
    struct portmap_mapping mapping;
    if (!portmap_xdr_get_mapping(in, &mapping))
        return RPC_GARBAGE_ARGS;
    bool is_possible = mapping.prog != PORTMAP_PROGRAM && mapping.port > 0 &&
                       mapping.port <= UINT16_MAX &&
                       (mapping.prot == TRANSPORT_TCP || mapping.prot == TRANSPORT_UDP);
    struct portmap_service service = {.prog = mapping.prog,
                                      .vers = mapping.vers,
                                      .prot = mapping.prot,
                                      .address = {.family = 4},
                                      .port = (uint16_t)mapping.port};
    return answer_set(context, from, &service, is_possible, out);
}

/* Protocol and port are not looked at: RFC 1833 removes all that version 2 can see. */
static enum rpc_accept_stat pmap_unset(void *context, const struct peer *from, struct xdr_in *in,
                                       struct xdr_out *out)
{
    struct portmap_mapping mapping;
    if (!portmap_xdr_get_mapping(in, &mapping))
        return RPC_GARBAGE_ARGS;
    enum owner owner;
    xdr_put_u32(out, may_change(context, from, &owner) &&
                         drop(context, mapping.prog, mapping.vers, 0, 4, owner));
    return RPC_SUCCESS;
}

/* A caller over IPv6 that asks in version 2 can only mean the family it came with. */
static enum rpc_accept_stat pmap_getport(void *context, const struct peer *from, struct xdr_in *in,
                                         struct xdr_out *out)
{
    const struct portmap *portmap = context;
    struct portmap_mapping mapping;
    if (!portmap_xdr_get_mapping(in, &mapping))
        return RPC_GARBAGE_ARGS;
    uint32_t i = find(portmap, mapping.prog, mapping.vers, mapping.prot, from->address.family);
    xdr_put_u32(out, i < portmap->count ? portmap->rows[i].service.port : 0);
    return RPC_SUCCESS;
}

/* May this caller have the list? Over UDP anybody could have it sent to somebody else. */
static enum rpc_accept_stat begin_list(const struct peer *from, const struct xdr_in *in)
{
    if (!xdr_in_done(in))
        return RPC_GARBAGE_ARGS;
    bool may_list = from->transport == TRANSPORT_TCP || address_is_loopback(&from->address);
    return may_list ? RPC_SUCCESS : RPC_PROC_UNAVAIL;
}

static enum rpc_accept_stat pmap_dump(void *context, const struct peer *from, struct xdr_in *in,
                                      struct xdr_out *out)
{
    const struct portmap *portmap = context;
    enum rpc_accept_stat stat = begin_list(from, in);
    if (stat != RPC_SUCCESS)
        return stat;
    for (uint32_t i = 0; i < portmap->count; i++) {
        const struct portmap_service *at = &portmap->rows[i].service;
        if (at->address.family != 4)
            continue;
        xdr_put_u32(out, 1);
        portmap_xdr_put_mapping(out,
                                &(struct portmap_mapping){at->prog, at->vers, at->prot, at->port});
    }
    xdr_put_u32(out, 0);
    return RPC_SUCCESS;
}

static enum rpc_accept_stat rpcb_set(void *context, const struct peer *from, struct xdr_in *in,
                                     struct xdr_out *out)
{
    struct portmap_rpcb rpcb;
    if (!portmap_xdr_get_rpcb(in, &rpcb))
        return RPC_GARBAGE_ARGS;
    uint32_t family = 0;
    struct portmap_service service = {.prog = rpcb.prog, .vers = rpcb.vers};
    bool is_possible = rpcb.prog != PORTMAP_PROGRAM &&
                       portmap_netid_parse(rpcb.netid, &service.prot, &family) &&
                       portmap_uaddr_parse(rpcb.uaddr, &service.address, &service.port) &&
                       service.address.family == family && service.port > 0;
    service.address = address_without_zone(&service.address);
    return answer_set(context, from, &service, is_possible, out);
}

/* An empty network id means all of them. */
static enum rpc_accept_stat rpcb_unset(void *context, const struct peer *from, struct xdr_in *in,
                                       struct xdr_out *out)
{
    struct portmap_rpcb rpcb;
    if (!portmap_xdr_get_rpcb(in, &rpcb))
        return RPC_GARBAGE_ARGS;
    enum owner owner;
    uint32_t prot = 0, family = 0;
    bool is_known = rpcb.netid.len == 0 || portmap_netid_parse(rpcb.netid, &prot, &family);
    xdr_put_u32(out, may_change(context, from, &owner) && is_known &&
                         drop(context, rpcb.prog, rpcb.vers, prot, family, owner));
    return RPC_SUCCESS;
}

static bool is_any(const struct address *address)
{
    struct address any = {.family = address->family};
    return address_equal(address, &any);
}

/* Without a network id the caller means the way it came (RFC 1833). */
static enum rpc_accept_stat rpcb_getaddr(void *context, const struct peer *from, struct xdr_in *in,
                                         struct xdr_out *out)
{
    const struct portmap *portmap = context;
    struct portmap_rpcb rpcb;
    if (!portmap_xdr_get_rpcb(in, &rpcb))
        return RPC_GARBAGE_ARGS;
    uint32_t prot = from->transport;
    uint32_t family = from->address.family;
    char uaddr[PORTMAP_UADDR_MAX] = "";
    if (rpcb.netid.len == 0 || portmap_netid_parse(rpcb.netid, &prot, &family)) {
        uint32_t i = find(portmap, rpcb.prog, rpcb.vers, prot, family);
        if (i < portmap->count) {
            const struct portmap_service *at = &portmap->rows[i].service;
            bool by_asked = is_any(&at->address) && from->local.family == family;
            struct address address = by_asked ? from->local : at->address;
            address = address_without_zone(&address);
            portmap_uaddr_put(&address, at->port, uaddr);
        }
    }
    xdr_put_opaque(out, bytes_of_text(uaddr));
    return RPC_SUCCESS;
}

static enum rpc_accept_stat rpcb_dump(void *context, const struct peer *from, struct xdr_in *in,
                                      struct xdr_out *out)
{
    const struct portmap *portmap = context;
    enum rpc_accept_stat stat = begin_list(from, in);
    if (stat != RPC_SUCCESS)
        return stat;
    for (uint32_t i = 0; i < portmap->count; i++) {
        const struct portmap_service *at = &portmap->rows[i].service;
        char uaddr[PORTMAP_UADDR_MAX];
        portmap_uaddr_put(&at->address, at->port, uaddr);
        struct portmap_rpcb rpcb = {
            .prog = at->prog,
            .vers = at->vers,
            .netid = bytes_of_text(portmap_netid(at->prot, at->address.family)),
            .uaddr = bytes_of_text(uaddr),
            .owner = bytes_of_text(owner_names[portmap->rows[i].owner]),
        };
        xdr_put_u32(out, 1);
        portmap_xdr_put_rpcb(out, &rpcb);
    }
    xdr_put_u32(out, 0);
    return RPC_SUCCESS;
}

static const struct procedure pmap_procedures[] = {
    [PORTMAP_NULL] = {.name = "NULL", .respond = respond_null},
    [PORTMAP_SET] = {.name = "SET", .respond = pmap_set},
    [PORTMAP_UNSET] = {.name = "UNSET", .respond = pmap_unset},
    [PORTMAP_GETPORT] = {.name = "GETPORT", .respond = pmap_getport},
    [PORTMAP_DUMP] = {.name = "DUMP", .respond = pmap_dump},
};

static const struct procedure rpcb_procedures[] = {
    [PORTMAP_NULL] = {.name = "NULL", .respond = respond_null},
    [PORTMAP_SET] = {.name = "SET", .respond = rpcb_set},
    [PORTMAP_UNSET] = {.name = "UNSET", .respond = rpcb_unset},
    [PORTMAP_GETPORT] = {.name = "GETADDR", .respond = rpcb_getaddr},
    [PORTMAP_DUMP] = {.name = "DUMP", .respond = rpcb_dump},
    [PORTMAP_GETVERSADDR] = {.name = "GETVERSADDR", .respond = rpcb_getaddr},
};

static const struct program_version portmap_versions[] = {
    {PORTMAP_VERSION_PMAP, pmap_procedures, sizeof pmap_procedures / sizeof pmap_procedures[0]},
    {PORTMAP_VERSION_RPCB3, rpcb_procedures, PORTMAP_DUMP + 1},
    {PORTMAP_VERSION_RPCB4, rpcb_procedures, sizeof rpcb_procedures / sizeof rpcb_procedures[0]},
};

struct portmap *portmap_new(void)
{
    struct portmap *portmap = calloc(1, sizeof *portmap);
    if (portmap == NULL)
        return NULL;
    portmap->program = (struct program){
        .number = PORTMAP_PROGRAM,
        .name = "PORTMAP",
        .versions = portmap_versions,
        .version_count = sizeof portmap_versions / sizeof portmap_versions[0],
        .record_max = CALL_MAX,
        .reply_max = RPC_REPLY_HEADER_MAX + PORTMAP_SERVICES_MAX * LISTED_MAX + 4,
        .context = portmap,
    };
    return portmap;
}

void portmap_free(struct portmap *portmap)
{
    free(portmap);
}

bool portmap_add(struct portmap *portmap, const struct portmap_service *service)
{
    CHECK(service->prot == TRANSPORT_TCP || service->prot == TRANSPORT_UDP);
    CHECK(service->address.family == 4 || service->address.family == 6);
    CHECK(service->port > 0);
    return add(portmap, service, OWNER_SERVER);
}

const struct program *portmap_program(const struct portmap *portmap)
{
    return &portmap->program;
}

uint32_t portmap_count(const struct portmap *portmap)
{
    return portmap->count;
}

uint64_t portmap_refused(const struct portmap *portmap, struct address *ret_last)
{
    if (portmap->refused > 0)
        *ret_last = portmap->refused_last;
    return portmap->refused;
}
