/*
 * monitoring.c -- what STAT, MON, UNMON, UNMON_ALL, SIMU_CRASH and NOTIFY decide; see monitoring.h.
 *
 * Who may register, under which names and with which callback; whose notice is believed is up to
 * reboot.c and notice.c.
 */
#include "core/monitoring.h"

#include "base/check.h"
#include "core/state.h"

/* R-NSM-1: no name that another host's status monitor would take for a path, or that is no text. */
static bool is_acceptable_name(struct bytes name)
{
    if (name.len == 0 || name.at[0] == '.')
        return false;
    for (uint32_t i = 0; i < name.len; i++)
        if (name.at[i] < 0x20 || name.at[i] == 0x7f || name.at[i] == '/')
            return false;
    return true;
}

/* D1: the programs of the RPC core services are not for strangers to have called (CERT CA-99.05).
 */
static bool is_acceptable_program(uint32_t prog)
{
    return prog < 100000 || prog > 100099 || prog == 100021 || prog == 100024;
}

/* A monitor calls the lock manager of its machine, by one of the procedures that those have. */
static bool is_lock_manager(uint32_t prog, uint32_t proc)
{
    return prog == 100021 && (proc == 16 || proc == 24);
}

bool core_may_watch(struct bytes mon_name, uint32_t my_prog, uint32_t my_proc)
{
    return is_acceptable_name(mon_name) && is_lock_manager(my_prog, my_proc);
}

static bool may_register(struct core *core, const struct peer *from)
{
    if (!core->limits.mon_from_loopback || address_is_loopback(&from->address))
        return true;
    event_add(&core->events, EVENT_NOT_ALLOWED, &from->address, (struct bytes){0}, 0);
    return false;
}

static void report(struct core *core, enum event_kind kind, const struct peer *from,
                   struct bytes name, uint64_t value)
{
    event_add(&core->events, kind, &from->address, name, value);
}

/* SM_MON. True: refused. */
static bool refuse_mon(struct core *core, const struct peer *from, const struct request *request)
{
    CHECK(request->priv.len == RECORD_PRIV_LEN);
    if (!may_register(core, from))
        return true;
    if (!is_acceptable_name(request->mon_name)) {
        report(core, EVENT_BAD_NAME, from, request->mon_name, 0);
        return true;
    }
    if (core->limits.is_monitor ? !is_lock_manager(request->my_prog, request->my_proc)
                                : !is_acceptable_program(request->my_prog)) {
        report(core, EVENT_BAD_CALLBACK, from, request->mon_name, request->my_prog);
        return true;
    }
    enum admission admission = registrant_add(core, from, request, core->wall_ns);
    if (admission == ADMIT_NEW)
        event_add(&core->feed, EVENT_REGISTERED, &from->address, request->mon_name, 0);
    return admit_refuses(core, admission, from, request->mon_name, QUOTA_REGISTRANT);
}

static void simulate_crash(struct core *core, const struct peer *from)
{
    if (!address_is_loopback(&from->address) || from->port >= 1024) {
        report(core, EVENT_CRASH_REFUSED, from, (struct bytes){0}, from->port);
        return;
    }
    MARK("simu_crash");
    if (core->limits.is_monitor) {
        watched_restart_notice(core);
        report(core, EVENT_CRASH_SIMULATED, from, (struct bytes){0}, core->server.state);
        return;
    }
    struct record_server before = core->server;
    core_raise_state(core);
    core->server.restart_state = core->server.state;
    grace_begin_anew(core);
    notify_restarted(core, &before);
    core_host_restarted(core, &(struct address){0});
    report(core, EVENT_CRASH_SIMULATED, from, (struct bytes){0}, core->server.state);
}

/* What came of a notice. `is_odd`: nobody has a reason to say that. False: it could not be kept,
 * and must be said again. */
static bool note_heard(struct core *core, const struct peer *from, const struct request *request,
                       enum notice_result result, bool is_odd)
{
    switch (result) {
    case NOTICE_NEW:
        core_host_restarted(core, &from->address);
        report(core, EVENT_NOTICE, from, request->mon_name, request->state);
        callout_notice(core, request->mon_name, &from->address, request->state);
        return true;
    case NOTICE_KNOWN:
    case NOTICE_ASKING:
        return true;
    case NOTICE_UNHEARD:
        if (is_odd)
            report(core, EVENT_NOTICE_IGNORED, from, request->mon_name, request->state);
        return true;
    case NOTICE_CROWDED:
        return false;
    case NOTICE_BYTES:
        report(core, EVENT_NO_BYTES, from, request->mon_name, core->limits.bytes_max);
        return false;
    }
    UNREACHABLE();
}

/* SM_NOTIFY to a monitor: a host speaks for itself, whatever name it has for itself; of who is not
 * known by address the resolver is asked whether that name is its. */
static bool hear_watched(struct core *core, const struct peer *from, const struct request *request)
{
    uint32_t state = request->state;
    enum notice_result heard = NOTICE_UNHEARD;
    if (!watched_is_ours(core, &from->address) && state != 0) {
        heard = watched_hear(core, &from->address, state);
        if (heard == NOTICE_UNHEARD)
            heard = notice_hear(core, &from->address, request->mon_name, state, NOTICE_CLAIM);
    }
    return note_heard(core, from, request, heard, true);
}

/* SM_NOTIFY. False: it must be said again. */
static bool hear_notice(struct core *core, const struct peer *from, const struct request *request)
{
    uint32_t state = request->state;
    if (!is_acceptable_name(request->mon_name)) {
        report(core, EVENT_BAD_NAME, from, request->mon_name, 0);
        return true;
    }
    if (core->limits.is_monitor)
        return hear_watched(core, from, request);
    enum reboot_heard heard = reboot_hear(core, &from->address, request->mon_name, state);
    if (heard == REBOOT_AMBIGUOUS)
        return true; /* the notice with the full name does the work, for those who watch it too */
    enum notice_trust trust = heard == REBOOT_NEWS || heard == REBOOT_REPEATED ? NOTICE_TRUE
                              : heard == REBOOT_UNHEARD                        ? NOTICE_CLAIM
                                                                               : NOTICE_MINOR_CLAIM;
    enum notice_result result = notice_hear(core, &from->address, request->mon_name, state, trust);
    return note_heard(core, from, request, result, heard == REBOOT_UNHEARD);
}

/* SM_UNMON_ALL. Beside nfs-ganesha it says that it starts: what is left is of a run that crashed,
 * and --unmon-all notify notifies those hosts, with a state that is new to them. */
static void remove_all(struct core *core, const struct peer *from, const struct request *request)
{
    uint32_t count = registrant_remove_all(core, &from->address, request->my_name);
    if (count > 0 && core->limits.unmon_all_notifies)
        core_raise_state(core);
}

void monitoring_answer(struct core *core, const struct peer *from, const struct request *request,
                       struct response *ret)
{
    bool is_refused = false;
    enum answer_when when = ANSWER_NOW;
    uint32_t ticket = 0;
    switch (request->kind) {
    case REQUEST_NSM_STAT:
        is_refused = !is_acceptable_name(request->mon_name);
        break;
    case REQUEST_NSM_MON:
        is_refused = refuse_mon(core, from, request);
        break;
    case REQUEST_NSM_UNMON:
        if (may_register(core, from))
            (void)registrant_remove(core, from, request); /* the answer is the same (R-NSM-2) */
        break;
    case REQUEST_NSM_UNMON_ALL:
        if (may_register(core, from))
            remove_all(core, from, request);
        break;
    case REQUEST_NSM_SIMU_CRASH:
        simulate_crash(core, from);
        break;
    case REQUEST_NSM_NOTIFY:
        when = hear_notice(core, from, request)
                   ? withheld_keep(core, &from->address, request, &ticket)
                   : ANSWER_NEVER;
        break;
    case REQUEST_NLM_TEST:
    case REQUEST_NLM_LOCK:
    case REQUEST_NLM_CANCEL:
    case REQUEST_NLM_UNLOCK:
    case REQUEST_NLM_GRANTED:
    case REQUEST_NLM_GRANTED_RES:
    case REQUEST_NLM_SHARE:
    case REQUEST_NLM_UNSHARE:
    case REQUEST_NLM_FREE_ALL:
        UNREACHABLE();
    }
    *ret = (struct response){
        .refused = is_refused, .state = core->server.state, .when = when, .ticket = ticket};
}
