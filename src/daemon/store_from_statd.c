/*
 * store_from_statd.c -- see store_from_statd.h.
 *
 * Of a status monitor: a line in sm/ is a registration that stands, if it is of this boot, and a
 * host to notify if it is not; one in sm.bak/ is a host to notify. A host may be both, and is one
 * record then.
 *
 * Which boot a line is of rpc.statd does not write down. sm-notify runs once in a boot, empties sm/
 * into sm.bak/ and raises the state: if it has run (it leaves a file in /run), all of sm/ is of
 * this boot. If it has not, the lines are that were written since the machine booted. If none are,
 * rpc.statd has not run in this boot, the state is of another one, and our first start treats it as
 * that: state + 2, everybody is notified.
 *
 * No name is resolved here for a monitor: it does that itself, without waiting.
 */
#include "daemon/store_from_statd.h"

#include "base/check.h"
#include "core/core.h"
#include "daemon/machine.h"
#include "daemon/statd_import.h"
#include "daemon/statd_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_EPOCH = 1 };

/* ---- clients of a lock server ---- */

struct clients {
    struct store_import *import;
    uint32_t next_slot;
    uint64_t unresolved;
};

static int add_client(void *context, const struct statd_import_host *host)
{
    struct clients *clients = context;
    if (host->is_known)
        return 0;
    struct address address = statd_import_resolve(host);
    if (address.family == 0) {
        clients->unresolved++;
        (void)fprintf(stderr,
                      "holdfast store import: %s: does not resolve, so it cannot be notified; "
                      "fix DNS or /etc/hosts\n",
                      host->name);
        return 0;
    }
    uint8_t value[RECORD_VALUE_MAX];
    struct record_client client = {.id = clients->import->server.next_id++,
                                   .registered_ns = host->since_ns,
                                   .seen_ns = host->since_ns,
                                   .address = address,
                                   .transport = TRANSPORT_TCP,
                                   .versions = 1 << 4,
                                   .told_state = 0,
                                   .incarnation = 1,
                                   .flags = RECORD_CLIENT_MONITORED,
                                   .caller_name = bytes_of_text(host->name)};
    uint32_t slot = clients->next_slot++;
    struct bytes record = {value, record_put_client(value, slot, &client)};
    return store_import_add(clients->import, RECORD_CLIENT, slot, record) ? 0 : -ENOMEM;
}

static int read_clients(const struct store_command *command, struct store_import *import)
{
    char buffer[512];
    struct text why;
    text_init(&why, buffer, sizeof buffer);
    uint32_t state = 0;
    struct clients clients = {.import = import};
    import->server.flags = RECORD_SERVER_INCOMPLETE;
    if (statd_import_read(command->file, add_client, &clients, &state, &why) != 0)
        return store_command_fail(command, STORE_COMMAND_USAGE, buffer);
    if (clients.unresolved > 0 && !command->skip_unresolved)
        return store_command_fail(
            command, STORE_COMMAND_NO,
            "some names do not resolve; nothing was imported. --skip-unresolved skips "
            "them, and they are never notified");
    import->server.state = import->server.restart_state = state | 1;
    return 0;
}

/* ---- registrants of a status monitor ---- */

struct registration {
    struct record_registrant record; /* its names are owned, in one piece */
    uint64_t order;                  /* of reading */
    bool is_current, is_owed;
};

struct registrations {
    struct registration *at; /* owned */
    uint64_t count, max;
    bool sm_notify_ran; /* in this boot */
    uint64_t boot_ns;   /* when this boot began, wall clock */
    char *content;      /* owned: of the file that is read */
};

static bool keep(struct registrations *all, const struct record_registrant *record, bool is_owed)
{
    if (all->count == all->max) {
        uint64_t max = all->max * 2 + 1024;
        struct registration *at = realloc(all->at, max * sizeof *at);
        if (at == NULL)
            return false;
        all->at = at;
        all->max = max;
    }
    uint8_t *names = malloc((size_t)record->mon_name.len + record->my_name.len);
    if (names == NULL)
        return false;
    struct registration *kept = &all->at[all->count];
    *kept = (struct registration){
        .record = *record, .order = all->count++, .is_current = !is_owed, .is_owed = is_owed};
    memcpy(names, record->mon_name.at, record->mon_name.len);
    memcpy(names + record->mon_name.len, record->my_name.at, record->my_name.len);
    kept->record.mon_name.at = names;
    kept->record.my_name.at = names + record->mon_name.len;
    return true;
}

/* 0, -ENOMEM, or -EBADMSG: not a registration of this machine's lock manager, which SM_MON would
 * not have taken either. */
static int add_line(struct registrations *all, const struct statd_import_host *host,
                    struct bytes line)
{
    const uint8_t loopback[4] = {127, 0, 0, 1};
    struct record_registrant record = {
        .registered_ns = host->since_ns, .local = address_v4(loopback), .transport = TRANSPORT_TCP};
    if (!statd_line_get(line, &record) || !address_is_loopback(&record.address) ||
        !core_may_watch(record.mon_name, record.my_prog, record.my_proc))
        return -EBADMSG;
    bool is_current = !host->is_retired && (all->sm_notify_ran || host->since_ns >= all->boot_ns);
    return keep(all, &record, !is_current) ? 0 : -ENOMEM;
}

static int add_lines(void *context, const struct statd_import_host *host)
{
    struct registrations *all = context;
    int len = statd_import_content(host, all->content);
    int result = len < 0 ? len : len == 0 ? -EBADMSG : 0;
    for (int at = 0; at < len && result == 0;) {
        struct bytes line = {(const uint8_t *)all->content + at, 0};
        while (at < len && all->content[at++] != '\n')
            line.len++;
        if (line.len > 0)
            result = add_line(all, host, line);
    }
    return result;
}

static int compare_bytes(struct bytes a, struct bytes b)
{
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* By what tells two registrations apart; then as they were read. */
static int compare_keys(const struct record_registrant *a, const struct record_registrant *b)
{
    int order = compare_bytes(a->mon_name, b->mon_name);
    if (order == 0)
        order = compare_bytes(a->my_name, b->my_name);
    if (order == 0)
        order = (a->my_prog > b->my_prog) - (a->my_prog < b->my_prog);
    if (order == 0)
        order = (a->my_vers > b->my_vers) - (a->my_vers < b->my_vers);
    return order != 0 ? order : (a->my_proc > b->my_proc) - (a->my_proc < b->my_proc);
}

static int compare(const void *left, const void *right)
{
    const struct registration *a = left, *b = right;
    int order = compare_keys(&a->record, &b->record);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

/* The same registration twice is one: the priv is that of the last line that stands. */
static void merge(struct registrations *all)
{
    uint64_t kept = 0;
    if (all->count > 0)
        qsort(all->at, all->count, sizeof *all->at, compare);
    for (uint64_t i = 0; i < all->count; i++) {
        struct registration *last = kept > 0 ? &all->at[kept - 1] : NULL;
        const struct registration *next = &all->at[i];
        if (last == NULL || compare_keys(&last->record, &next->record) != 0) {
            all->at[kept++] = *next;
            continue;
        }
        if (next->is_current || !last->is_current)
            memcpy(last->record.priv, next->record.priv, RECORD_PRIV_LEN);
        last->is_current |= next->is_current;
        last->is_owed |= next->is_owed;
        free((void *)(uintptr_t)next->record.mon_name.at);
    }
    all->count = kept;
}

static bool add_records(const struct registrations *all, struct store_import *import)
{
    uint8_t value[RECORD_VALUE_MAX];
    CHECK(all->count <= RECORD_SLOT_MAX);
    for (uint32_t slot = 0; slot < all->count; slot++) {
        struct record_registrant record = all->at[slot].record;
        record.id = import->server.next_id++;
        record.server_epoch = all->at[slot].is_current ? FIRST_EPOCH : 0;
        record.told_state = all->at[slot].is_owed ? 0 : import->server.state;
        struct bytes bytes = {value, record_put_registrant(value, slot, &record)};
        if (!store_import_add(import, RECORD_REGISTRANT, slot, bytes))
            return false;
    }
    return true;
}

/* The server record: of this boot, if rpc.statd has run in it; else of none. */
static void put_server(const struct registrations *all, uint32_t state,
                       const struct machine_identity *identity, struct record_server *server)
{
    bool is_of_this_boot = all->sm_notify_ran;
    for (uint64_t i = 0; i < all->count && !is_of_this_boot; i++)
        is_of_this_boot = all->at[i].is_current;
    server->state = server->restart_state = state | 1;
    server->flags = RECORD_SERVER_MONITOR;
    server->epoch = FIRST_EPOCH;
    if (!is_of_this_boot)
        return;
    memcpy(server->boot, identity->boot, RECORD_BOOT_LEN);
    server->netns = identity->netns;
    server->boot_epoch = FIRST_EPOCH;
}

static int read_registrations(const struct store_command *command, struct registrations *all,
                              struct store_import *import)
{
    char buffer[512];
    struct text why;
    struct machine_identity identity;
    uint32_t state = 0;
    text_init(&why, buffer, sizeof buffer);
    if (machine_identify(&identity, &why) != 0)
        return store_command_fail(command, STORE_COMMAND_USAGE, buffer);
    if (statd_import_read(command->file, add_lines, all, &state, &why) != 0)
        return store_command_fail(command, STORE_COMMAND_USAGE, buffer);
    merge(all);
    if (all->count > RECORD_SLOT_MAX)
        return store_command_fail(command, STORE_COMMAND_NO,
                                  "more registrations than a store can hold; nothing was imported");
    put_server(all, state, &identity, &import->server);
    return add_records(all, import)
               ? 0
               : store_command_fail(command, STORE_COMMAND_STORE, "out of memory");
}

static int read_monitor(const struct store_command *command, struct store_import *import)
{
    struct registrations all = {.sm_notify_ran = machine_ran_sm_notify(),
                                .boot_ns = machine_booted_ns(),
                                .content = malloc(STATD_IMPORT_CONTENT_MAX)};
    int result = all.content != NULL
                     ? read_registrations(command, &all, import)
                     : store_command_fail(command, STORE_COMMAND_STORE, "out of memory");
    for (uint64_t i = 0; i < all.count; i++)
        free((void *)(uintptr_t)all.at[i].record.mon_name.at);
    free(all.at);
    free(all.content);
    return result;
}

int store_from_statd(const struct store_command *command, struct store_import *import)
{
    if (command->config.role == CONFIG_MONITOR && command->skip_unresolved)
        return store_command_fail(command, STORE_COMMAND_USAGE,
                                  "--skip-unresolved: a status monitor keeps every name and "
                                  "resolves it by itself; leave it out with --role monitor");
    import->server = (struct record_server){.next_id = 1};
    int result = command->config.role == CONFIG_MONITOR ? read_monitor(command, import)
                                                        : read_clients(command, import);
    import->has_server = result == 0;
    return result;
}
