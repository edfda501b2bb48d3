/*
 * portmapper.c -- see portmapper.h.
 */
#include "daemon/portmapper.h"

#include "base/check.h"
#include "base/units.h"

enum {
    CONNECTIONS_MAX = 256,
    REFUSED_LOG_S = 10, /* between two lines about refused SET and UNSET */
};

/* The address to register for a family: the one we listen on, or all of them if there are more. */
static bool address_for(const struct listen_set *sockets, uint32_t family, struct address *ret)
{
    uint32_t count = 0;
    struct address address = {.family = family};
    for (uint32_t i = 0; i < sockets->count; i++) {
        if (sockets->at[i].address.family != family)
            continue;
        address = sockets->at[i].address;
        count++;
    }
    address = address_without_zone(&address);
    *ret = count == 1 ? address : (struct address){.family = family};
    return count > 0;
}

uint32_t portmapper_services(const struct program *program, const struct listen_set *sockets,
                             struct portmap_service *ret, uint32_t max)
{
    static const uint32_t families[] = {4, 6}, protocols[] = {TRANSPORT_TCP, TRANSPORT_UDP};
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->version_count; i++)
        for (uint32_t j = 0; j < 4; j++) {
            struct portmap_service service = {.prog = program->number,
                                              .vers = program->versions[i].number,
                                              .prot = protocols[j % 2],
                                              .port = sockets->port};
            if (program->is_stream_only && service.prot == TRANSPORT_UDP)
                continue;
            if (!address_for(sockets, families[j / 2], &service.address))
                continue;
            CHECK(count < max);
            ret[count++] = service;
        }
    return count;
}

int portmapper_bind(struct portmapper *portmapper, const struct config_addresses *listen,
                    struct listen_failure *ret_failure)
{
    return listen_open(listen->at, listen->count, PORTMAP_PORT, &portmapper->sockets, ret_failure);
}

const char *portmapper_serve(struct portmapper *portmapper, const struct registration *registration,
                             struct core *core, uv_loop_t *loop, struct clock *clock)
{
    static const char no_memory[] = "cannot reserve memory for the portmapper";
    portmapper->portmap = portmap_new();
    if (portmapper->portmap == NULL)
        return no_memory;
    portmapper->programs[0] = portmap_program(portmapper->portmap);
    struct portmap_service own[REGISTRATION_MAX];
    uint32_t count =
        portmapper_services(portmapper->programs[0], &portmapper->sockets, own, REGISTRATION_MAX);
    for (uint32_t i = 0; i < count; i++)
        CHECK(portmap_add(portmapper->portmap, &own[i]));
    for (uint32_t i = 0; i < registration->count; i++)
        CHECK(portmap_add(portmapper->portmap, &registration->entries[i].service));

    struct rpc_server_limits limits = {.outbox_max = 1, .cache_max = 2}; /* nothing ever waits */
    portmapper->server = rpc_server_new(&limits, portmapper->programs, 1, core, 0);
    if (portmapper->server != NULL)
        portmapper->wire = wire_new(loop, portmapper->server, clock, CONNECTIONS_MAX);
    if (portmapper->wire == NULL)
        return no_memory;
    int err = wire_listen(portmapper->wire, &portmapper->sockets, false);
    return err == 0 ? NULL : uv_strerror(err);
}

static void tell_refused(struct portmapper *portmapper, struct clock *clock, struct log *log)
{
    struct address last = {0};
    uint64_t refused = portmap_refused(portmapper->portmap, &last);
    uint64_t now_ns = clock_now_ns(clock);
    bool is_soon = portmapper->refused_told > 0 &&
                   now_ns - portmapper->refused_told_ns < REFUSED_LOG_S * SECOND_NS;
    if (refused == portmapper->refused_told || is_soon)
        return;
    log_say(log, LOG_LEVEL_WARNING, clock_wall_ns(clock),
            LOG_MESSAGE("refused to register a service for another host"),
            LOG_ADDRESS("from", &last), LOG_NUMBER("count", refused - portmapper->refused_told));
    portmapper->refused_told = refused;
    portmapper->refused_told_ns = now_ns;
}

void portmapper_turn(struct portmapper *portmapper, struct clock *clock, struct log *log)
{
    if (portmapper->wire == NULL)
        return;
    wire_flush(portmapper->wire);
    tell_refused(portmapper, clock, log);
}

void portmapper_quiesce(struct portmapper *portmapper)
{
    if (portmapper->wire != NULL)
        wire_quiesce(portmapper->wire);
}

void portmapper_close(struct portmapper *portmapper)
{
    if (portmapper->wire != NULL)
        wire_close(portmapper->wire);
}

void portmapper_free(struct portmapper *portmapper)
{
    wire_free(portmapper->wire);
    listen_close(&portmapper->sockets);
    rpc_server_free(portmapper->server);
    portmap_free(portmapper->portmap);
}
