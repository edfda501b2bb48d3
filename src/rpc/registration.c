/*
 * registration.c -- the passes of registration.h.
 *
 * A listing says of each service of ours what rpcbind has in its place; the goal decides what
 * follows from that:
 *
 *   found        LOOK       CLAIM                         KEEP       DROP
 *   nothing      -          SET                           SET        -
 *   ours         -          -                             -          UNSET
 *   moved        -          UNSET, SET                    -          -
 *   theirs       FOREIGN    FOREIGN, or with --force      FOREIGN    -
 *                           UNSET, SET
 *
 * A CLAIM that finds somebody else changes nothing at all: half a registration would send some
 * clients to us and some to them. KEEP sets what is missing even so, because that was ours.
 *
 * "moved" is corrected once, by CLAIM, and then left alone: two servers on two addresses of one
 * machine with one port would otherwise correct each other forever.
 *
 * Always true:
 *  (1) A call is in flight only in LISTING, CHANGING and VERIFYING, and only one.
 *  (2) An UNSET names one network id, and only an entry that was listed as ours, or that CLAIM may
 *      replace (U31). Version 2 cannot: there UNSET waits until no other protocol of the same
 *      program version is somebody else's.
 *  (3) DONE after a SET means that a second listing showed the entry.
 */
#include "rpc/registration.h"

#include "base/check.h"

void registration_init(struct registration *registration, bool takes_over, uint32_t first_xid)
{
    *registration = (struct registration){
        .takes_over = takes_over, .vers = PORTMAP_VERSION_RPCB4, .xid = first_xid};
}

void registration_add(struct registration *registration, const struct portmap_service *service)
{
    CHECK(registration->count < REGISTRATION_MAX);
    CHECK(registration->state == REGISTRATION_IDLE);
    registration->entries[registration->count++] = (struct registration_entry){.service = *service};
}

static void set_state(struct registration *r, enum registration_state state)
{
    switch (state) {
    case REGISTRATION_IDLE:
        UNREACHABLE();
    case REGISTRATION_LISTING:
        break; /* also again, in another version */
    case REGISTRATION_CHANGING:
        CHECK(r->state == REGISTRATION_LISTING);
        break;
    case REGISTRATION_VERIFYING:
        CHECK(r->state == REGISTRATION_CHANGING);
        break;
    case REGISTRATION_ENDED:
        CHECK(r->state != REGISTRATION_IDLE);
        CHECK(r->state != REGISTRATION_ENDED);
        break;
    }
    r->state = state;
    r->is_waiting = false;
}

static void end(struct registration *r, enum registration_outcome outcome)
{
    set_state(r, REGISTRATION_ENDED);
    r->outcome = outcome;
}

void registration_begin(struct registration *r, enum registration_goal goal)
{
    r->goal = goal;
    r->outcome = REGISTRATION_UNDER_WAY;
    r->vers = PORTMAP_VERSION_RPCB4;
    r->index = 0;
    r->set_count = r->refused_count = 0;
    set_state(r, REGISTRATION_LISTING);
}

/* Version 2 has no word for IPv6. */
static bool is_expressible(const struct registration *r, const struct registration_entry *entry)
{
    return r->vers != PORTMAP_VERSION_PMAP || entry->service.address.family == 4;
}

static void put_service(const struct registration *r, const struct portmap_service *service,
                        uint32_t proc, struct xdr_out *out)
{
    if (r->vers == PORTMAP_VERSION_PMAP) {
        struct portmap_mapping mapping = {service->prog, service->vers, service->prot,
                                          service->port};
        portmap_xdr_put_mapping(out, &mapping);
        return;
    }
    char uaddr[PORTMAP_UADDR_MAX] = "";
    if (proc == PORTMAP_SET)
        portmap_uaddr_put(&service->address, service->port, uaddr);
    struct portmap_rpcb rpcb = {
        .prog = service->prog,
        .vers = service->vers,
        .netid = bytes_of_text(portmap_netid(service->prot, service->address.family)),
        .uaddr = bytes_of_text(uaddr),
        .owner = bytes_of_text("holdfast"), /* rpcbind puts what it knows itself in its place */
    };
    portmap_xdr_put_rpcb(out, &rpcb);
}

bool registration_next_call(struct registration *r, struct xdr_out *out)
{
    if (r->is_waiting)
        return false;
    switch (r->state) {
    case REGISTRATION_IDLE:
    case REGISTRATION_ENDED:
        return false;
    case REGISTRATION_LISTING:
    case REGISTRATION_VERIFYING:
        rpc_msg_put_call(out, ++r->xid, PORTMAP_PROGRAM, r->vers, PORTMAP_DUMP);
        break;
    case REGISTRATION_CHANGING: {
        const struct registration_entry *entry = &r->entries[r->index];
        uint32_t proc = entry->unset_first ? PORTMAP_UNSET : PORTMAP_SET;
        CHECK(entry->unset_first || entry->set_then);
        rpc_msg_put_call(out, ++r->xid, PORTMAP_PROGRAM, r->vers, proc);
        put_service(r, &entry->service, proc, out);
        break;
    }
    }
    CHECK(!out->overflowed);
    r->is_waiting = true;
    return true;
}

static void keep_owner(struct registration_entry *entry, struct bytes owner)
{
    uint32_t len = owner.len < REGISTRATION_OWNER_MAX - 1 ? owner.len : REGISTRATION_OWNER_MAX - 1;
    if (len > 0)
        memcpy(entry->their_owner, owner.at, len);
    entry->their_owner[len] = '\0';
}

/* One listed entry that has the place of a service of ours, if it has. */
static void note_listed(struct registration *r, const struct portmap_service *listed,
                        struct bytes owner)
{
    bool is_our_port = r->count > 0 && listed->port == r->entries[0].service.port;
    r->has_nfs |= listed->prog == NFS_PROGRAM;
    r->has_nlm |= listed->prog == NLM_PROGRAM && !is_our_port;
    for (uint32_t i = 0; i < r->count; i++) {
        struct registration_entry *entry = &r->entries[i];
        const struct portmap_service *ours = &entry->service;
        if (ours->prog != listed->prog || ours->vers != listed->vers ||
            ours->prot != listed->prot || ours->address.family != listed->address.family)
            continue;
        entry->their_port = listed->port;
        keep_owner(entry, owner);
        if (listed->port != ours->port)
            entry->found = REGISTRATION_THEIRS;
        else if (r->vers == PORTMAP_VERSION_PMAP || address_equal(&listed->address, &ours->address))
            entry->found = REGISTRATION_OURS;
        else
            entry->found = REGISTRATION_MOVED;
    }
}

/* The results of DUMP. False: they cannot be read. */
static bool take_list(struct registration *r, struct bytes results)
{
    struct xdr_in in = xdr_in_of(results);
    r->has_nfs = r->has_nlm = false;
    for (uint32_t i = 0; i < r->count; i++)
        r->entries[i].found = REGISTRATION_NOTHING;
    if (r->vers == PORTMAP_VERSION_PMAP) {
        struct portmap_mapping mapping;
        while (portmap_xdr_next_mapping(&in, &mapping)) {
            struct portmap_service listed = {.prog = mapping.prog,
                                             .vers = mapping.vers,
                                             .prot = mapping.prot,
                                             .address = {.family = 4},
                                             .port = (uint16_t)mapping.port};
            note_listed(r, &listed, (struct bytes){0});
        }
        return xdr_in_done(&in);
    }
    struct portmap_rpcb rpcb;
    while (portmap_xdr_next_rpcb(&in, &rpcb)) {
        struct portmap_service listed = {.prog = rpcb.prog, .vers = rpcb.vers};
        uint32_t family;
        if (!portmap_netid_parse(rpcb.netid, &listed.prot, &family) ||
            !portmap_uaddr_parse(rpcb.uaddr, &listed.address, &listed.port))
            continue; /* a unix socket, or nothing that anybody could connect to */
        listed.address.family = family;
        note_listed(r, &listed, rpcb.owner);
    }
    return xdr_in_done(&in);
}

/* Is the other protocol's entry of this program version somebody else's? */
static bool shares_with_theirs(const struct registration *r, const struct portmap_service *service)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct registration_entry *at = &r->entries[i];
        if (at->service.prog == service->prog && at->service.vers == service->vers &&
            at->service.address.family == 4 && at->found == REGISTRATION_THEIRS)
            return true;
    }
    return false;
}

static bool may_unset(const struct registration *r, const struct portmap_service *service)
{
    return r->vers != PORTMAP_VERSION_PMAP || !shares_with_theirs(r, service);
}

/* The table at the top of the file. */
static void plan_one(const struct registration *r, struct registration_entry *entry)
{
    entry->unset_first = entry->set_then = false;
    if (!is_expressible(r, entry))
        return;
    bool claims = r->goal == REGISTRATION_CLAIM;
    switch (entry->found) {
    case REGISTRATION_NOTHING:
        entry->set_then = claims || r->goal == REGISTRATION_KEEP;
        return;
    case REGISTRATION_OURS:
        entry->unset_first = r->goal == REGISTRATION_DROP && may_unset(r, &entry->service);
        return;
    case REGISTRATION_MOVED:
    case REGISTRATION_THEIRS:
        entry->unset_first = entry->set_then = claims;
        return;
    }
}

static bool has_theirs(const struct registration *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->entries[i].found == REGISTRATION_THEIRS)
            return true;
    return false;
}

/* To the next entry with something to do; behind the last one, to the second listing. */
static void go_on(struct registration *r)
{
    while (r->index < r->count && !r->entries[r->index].unset_first &&
           !r->entries[r->index].set_then)
        r->index++;
    r->is_waiting = false;
    if (r->index < r->count)
        return;
    if (r->goal == REGISTRATION_DROP)
        end(r, r->refused_count > 0 ? REGISTRATION_REFUSED : REGISTRATION_DONE);
    else
        set_state(r, REGISTRATION_VERIFYING);
}

/*
 * In version 2 one UNSET removes the entries of both protocols, so whatever it removed must be set
 * again, and is not there to be removed a second time.
 */
static void note_unset(struct registration *r, const struct portmap_service *service)
{
    if (r->vers != PORTMAP_VERSION_PMAP)
        return;
    for (uint32_t i = 0; i < r->count; i++) {
        struct registration_entry *at = &r->entries[i];
        if (at->service.prog != service->prog || at->service.vers != service->vers ||
            !is_expressible(r, at))
            continue;
        at->unset_first = false;
        if (r->goal == REGISTRATION_CLAIM && !at->set_then) {
            at->set_then = true;
            if (i < r->index)
                r->index = i;
        }
    }
}

static void after_listing(struct registration *r)
{
    bool is_blocked = has_theirs(r) &&
                      (r->goal == REGISTRATION_LOOK || r->goal == REGISTRATION_CLAIM) &&
                      !r->takes_over;
    if (is_blocked) {
        end(r, REGISTRATION_FOREIGN);
        return;
    }
    bool has_work = false;
    for (uint32_t i = 0; i < r->count; i++) {
        plan_one(r, &r->entries[i]);
        has_work = has_work || r->entries[i].unset_first || r->entries[i].set_then;
    }
    if (!has_work) {
        bool is_lost = r->goal == REGISTRATION_KEEP && has_theirs(r);
        end(r, is_lost ? REGISTRATION_FOREIGN : REGISTRATION_DONE);
        return;
    }
    set_state(r, REGISTRATION_CHANGING);
    go_on(r);
}

static void after_verifying(struct registration *r)
{
    bool is_missing = false;
    for (uint32_t i = 0; i < r->count; i++)
        is_missing = is_missing || (is_expressible(r, &r->entries[i]) &&
                                    r->entries[i].found == REGISTRATION_NOTHING);
    if (has_theirs(r))
        end(r, REGISTRATION_FOREIGN);
    else
        end(r, is_missing ? REGISTRATION_REFUSED : REGISTRATION_DONE);
}

/* An answer to UNSET or SET. What came of a refusal is seen in the second listing. */
static void after_change(struct registration *r, bool is_done)
{
    struct registration_entry *entry = &r->entries[r->index];
    if (entry->unset_first) {
        entry->unset_first = false;
        r->refused_count += !is_done;
        if (is_done)
            note_unset(r, &entry->service);
        else
            entry->set_then = false; /* it is still there: SET could only fail */
    } else {
        entry->set_then = false;
        r->set_count += is_done;
    }
    go_on(r);
}

void registration_answer(struct registration *r, struct bytes message)
{
    struct rpc_answer answer;
    if (!r->is_waiting || !rpc_msg_get_answer(message, &answer) || answer.xid != r->xid)
        return; /* not ours; if nothing better comes, the deadline ends the pass */
    bool is_list = r->state == REGISTRATION_LISTING || r->state == REGISTRATION_VERIFYING;
    if (answer.stat != RPC_ANSWER_SUCCESS) {
        if (r->state == REGISTRATION_LISTING && r->vers != PORTMAP_VERSION_PMAP) {
            r->vers = PORTMAP_VERSION_PMAP;
            set_state(r, REGISTRATION_LISTING);
        } else if (is_list) {
            end(r, REGISTRATION_GARBLED);
        } else {
            after_change(r, false); /* an RPC error is how some refuse */
        }
        return;
    }
    if (is_list) {
        if (!take_list(r, answer.results))
            end(r, REGISTRATION_GARBLED);
        else if (r->state == REGISTRATION_LISTING)
            after_listing(r);
        else
            after_verifying(r);
        return;
    }
    struct xdr_in in = xdr_in_of(answer.results);
    bool is_done = false;
    if (portmap_xdr_get_bool(&in, &is_done))
        after_change(r, is_done);
    else
        end(r, REGISTRATION_GARBLED);
}

enum registration_outcome registration_outcome(const struct registration *registration)
{
    return registration->outcome;
}

bool registration_is_served(const struct registration *registration)
{
    return registration->has_nfs && registration->has_nlm;
}

bool registration_has_lock_manager(const struct registration *registration)
{
    return registration->has_nlm;
}

uint32_t registration_restored(const struct registration *registration)
{
    return registration->set_count;
}

static void explain_entry(const struct registration_entry *entry, bool is_same_program,
                          bool is_theirs, struct text *text)
{
    if (!is_same_program) {
        text_add(text, "program ");
        text_add_u64(text, entry->service.prog);
        text_add(text, " version ");
        text_add_u64(text, entry->service.vers);
        text_add_char(text, ' ');
    }
    text_add(text, "on ");
    text_add(text, portmap_netid(entry->service.prot, entry->service.address.family));
    if (!is_theirs)
        return;
    text_add(text, " port ");
    text_add_u64(text, entry->their_port);
    if (entry->their_owner[0] != '\0') {
        text_add(text, " (owner ");
        text_add_escaped(text, bytes_of_text(entry->their_owner), REGISTRATION_OWNER_MAX);
        text_add(text, ")");
    }
}

void registration_explain(const struct registration *r, struct text *text)
{
    bool is_theirs = r->outcome == REGISTRATION_FOREIGN;
    const struct portmap_service *last = NULL;
    text_add(text, is_theirs ? "rpcbind has " : "rpcbind did not take ");
    for (uint32_t i = 0; i < r->count; i++) {
        const struct registration_entry *entry = &r->entries[i];
        bool is_named = is_theirs
                            ? entry->found == REGISTRATION_THEIRS
                            : entry->found == REGISTRATION_NOTHING && is_expressible(r, entry);
        if (!is_named)
            continue;
        bool is_same =
            last != NULL && last->prog == entry->service.prog && last->vers == entry->service.vers;
        text_add(text, last == NULL ? "" : ", ");
        explain_entry(entry, is_same, is_theirs, text);
        last = &entry->service;
    }
}

void registration_check(const struct registration *r)
{
    CHECK(r->count <= REGISTRATION_MAX);
    bool is_over = r->state == REGISTRATION_IDLE || r->state == REGISTRATION_ENDED;
    CHECK(!(r->is_waiting && is_over));
    CHECK((r->state == REGISTRATION_ENDED) == (r->outcome != REGISTRATION_UNDER_WAY));
    if (r->state == REGISTRATION_CHANGING) {
        CHECK(r->index < r->count);
        CHECK(r->entries[r->index].unset_first || r->entries[r->index].set_then);
    }
    for (uint32_t i = 0; i < r->count; i++)
        if (r->goal == REGISTRATION_LOOK)
            CHECK(!r->entries[i].unset_first && !r->entries[i].set_then);
}
