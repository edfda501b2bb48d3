/*
 * test_registration.c -- what is asked of rpcbind and what follows from its answers, against a fake
 * rpcbind with the tests' own XDR: version 4, or version 2 only; with owners; that refuses, errs
 * and garbles. Passing proves that a foreign entry stops the start and is named (U11, U12), that
 * only our own entries are removed, one network id at a time (U31), and that what is lost is
 * restored.
 */
#include "peer/packet.h"
#include "rpc/registration.h"
#include "unit/test.h"

enum { SET = 1, UNSET = 2, DUMP = 4, STATUS = 100024, ENTRIES_MAX = 32 };

struct entry {
    uint32_t prog, vers;
    char netid[16], uaddr[64], owner[16];
};

/* An rpcbind. SET keeps what is there; UNSET obeys the owner only. */
struct fake {
    struct entry at[ENTRIES_MAX];
    uint32_t count;
    uint32_t version_max;
    const char *caller; /* whom it takes us for */
    bool refuses, errs;
    uint32_t calls, changes;
    struct packet answer;
};

static struct registration registration;

static struct entry *find(struct fake *fake, uint32_t prog, uint32_t vers, const char *netid)
{
    for (uint32_t i = 0; i < fake->count; i++)
        if (fake->at[i].prog == prog && fake->at[i].vers == vers &&
            strcmp(fake->at[i].netid, netid) == 0)
            return &fake->at[i];
    return NULL;
}

static void put(struct fake *fake, uint32_t prog, uint32_t vers, const char *netid,
                const char *uaddr, const char *owner)
{
    assert_true(fake->count < ENTRIES_MAX);
    struct entry *entry = &fake->at[fake->count++];
    *entry = (struct entry){.prog = prog, .vers = vers};
    (void)snprintf(entry->netid, sizeof entry->netid, "%s", netid);
    (void)snprintf(entry->uaddr, sizeof entry->uaddr, "%s", uaddr);
    (void)snprintf(entry->owner, sizeof entry->owner, "%s", owner);
}

static uint32_t set(struct fake *fake, const struct entry *wanted)
{
    const struct entry *old = find(fake, wanted->prog, wanted->vers, wanted->netid);
    if (fake->refuses || old != NULL)
        return !fake->refuses && strcmp(old->uaddr, wanted->uaddr) == 0;
    put(fake, wanted->prog, wanted->vers, wanted->netid, wanted->uaddr, fake->caller);
    return 1;
}

static uint32_t unset(struct fake *fake, uint32_t prog, uint32_t vers, const char *netid)
{
    struct entry *entry = find(fake, prog, vers, netid);
    if (entry == NULL || fake->refuses ||
        (strcmp(fake->caller, "superuser") != 0 && strcmp(entry->owner, fake->caller) != 0))
        return 0;
    *entry = fake->at[--fake->count];
    return 1;
}

static void get_text(struct packet_reader *args, char *ret, size_t size)
{
    uint32_t len;
    const uint8_t *at = packet_get_opaque(args, (uint32_t)size - 1, &len);
    assert_false(args->failed);
    memcpy(ret, at, len);
    ret[len] = '\0';
}

static void serve_v4(struct fake *fake, uint32_t proc, struct packet_reader *args)
{
    if (proc == DUMP) {
        for (uint32_t i = 0; i < fake->count; i++) {
            packet_put_u32(&fake->answer, 1);
            packet_put_u32(&fake->answer, fake->at[i].prog);
            packet_put_u32(&fake->answer, fake->at[i].vers);
            packet_put_text(&fake->answer, fake->at[i].netid);
            packet_put_text(&fake->answer, fake->at[i].uaddr);
            packet_put_text(&fake->answer, fake->at[i].owner);
        }
        packet_put_u32(&fake->answer, 0);
        return;
    }
    struct entry wanted = {0};
    wanted.prog = packet_get_u32(args);
    wanted.vers = packet_get_u32(args);
    get_text(args, wanted.netid, sizeof wanted.netid);
    get_text(args, wanted.uaddr, sizeof wanted.uaddr);
    get_text(args, wanted.owner, sizeof wanted.owner);
    assert_true(strlen(wanted.netid) > 0); /* never all network ids at once (U31) */
    packet_put_u32(&fake->answer, proc == SET
                                      ? set(fake, &wanted)
                                      : unset(fake, wanted.prog, wanted.vers, wanted.netid));
}

/* Version 2: IPv4 only, and UNSET takes TCP and UDP. */
static void serve_v2(struct fake *fake, uint32_t proc, struct packet_reader *args)
{
    static const char *const netids[] = {"tcp", "udp"};
    if (proc == DUMP) {
        for (uint32_t i = 0; i < fake->count; i++) {
            unsigned high, low;
            assert_int_equal(sscanf(fake->at[i].uaddr, "0.0.0.0.%u.%u", &high, &low), 2);
            packet_put_u32(&fake->answer, 1);
            packet_put_u32(&fake->answer, fake->at[i].prog);
            packet_put_u32(&fake->answer, fake->at[i].vers);
            packet_put_u32(&fake->answer, strcmp(fake->at[i].netid, "tcp") == 0 ? 6 : 17);
            packet_put_u32(&fake->answer, high << 8 | low);
        }
        packet_put_u32(&fake->answer, 0);
        return;
    }
    struct entry wanted = {0};
    wanted.prog = packet_get_u32(args);
    wanted.vers = packet_get_u32(args);
    uint32_t prot = packet_get_u32(args), port = packet_get_u32(args);
    (void)snprintf(wanted.netid, sizeof wanted.netid, "%s", netids[prot == 17]);
    (void)snprintf(wanted.uaddr, sizeof wanted.uaddr, "0.0.0.0.%u.%u", port >> 8, port & 255);
    uint32_t done = proc == SET ? set(fake, &wanted) : 0;
    for (int i = 0; i < 2 && proc == UNSET; i++)
        done |= unset(fake, wanted.prog, wanted.vers, netids[i]);
    packet_put_u32(&fake->answer, done);
}

static void serve(struct fake *fake, struct bytes call)
{
    struct packet_reader reader = {call.at, call.len, false};
    uint32_t words[10];
    for (int i = 0; i < 10; i++)
        words[i] = packet_get_u32(&reader);
    assert_int_equal(words[1], 0);      /* a call */
    assert_int_equal(words[3], 100000); /* the program */
    uint32_t vers = words[4], proc = words[5];
    fake->calls++;
    fake->changes += proc != DUMP;
    packet_clear(&fake->answer);
    packet_put_u32(&fake->answer, words[0]);
    packet_put_u32(&fake->answer, 1); /* a reply, accepted, with AUTH_NONE */
    for (int i = 0; i < 3; i++)
        packet_put_u32(&fake->answer, 0);
    if (vers > fake->version_max) {
        packet_put_u32(&fake->answer, PACKET_PROG_MISMATCH);
        packet_put_u32(&fake->answer, 2);
        packet_put_u32(&fake->answer, fake->version_max);
        return;
    }
    packet_put_u32(&fake->answer, fake->errs ? PACKET_SYSTEM_ERR : PACKET_SUCCESS);
    if (fake->errs)
        return;
    if (vers == 4)
        serve_v4(fake, proc, &reader);
    else
        serve_v2(fake, proc, &reader);
    assert_true(proc == DUMP || packet_is_done(&reader));
}

static enum registration_outcome pass(struct fake *fake, enum registration_goal goal)
{
    uint8_t buffer[REGISTRATION_CALL_MAX];
    fake->calls = fake->changes = 0;
    registration_begin(&registration, goal);
    for (;;) {
        struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
        registration_check(&registration);
        if (!registration_next_call(&registration, &out))
            break;
        registration_check(&registration);
        serve(fake, (struct bytes){buffer, xdr_out_len(&out)});
        registration_answer(&registration, (struct bytes){fake->answer.bytes, fake->answer.len});
    }
    registration_check(&registration);
    assert_int_not_equal(registration_outcome(&registration), REGISTRATION_UNDER_WAY);
    return registration_outcome(&registration);
}

static struct fake fake;

/* An empty rpcbind, and the status monitor on port 12049 (47.17), everywhere. */
static void begin(bool takes_over, uint32_t version_max)
{
    fake = (struct fake){.version_max = version_max, .caller = "superuser"};
    registration_init(&registration, takes_over, 1000);
    for (uint32_t i = 0; i < 4; i++)
        registration_add(&registration, &(struct portmap_service){
                                            .prog = STATUS,
                                            .vers = 1,
                                            .prot = i % 2 == 0 ? TRANSPORT_TCP : TRANSPORT_UDP,
                                            .address = {.family = i < 2 ? 4 : 6},
                                            .port = 12049});
}

static bool has(const char *netid, const char *uaddr)
{
    const struct entry *entry = find(&fake, STATUS, 1, netid);
    return entry != NULL && strcmp(entry->uaddr, uaddr) == 0;
}

static bool has_all(void)
{
    return has("tcp", "0.0.0.0.47.17") && has("udp", "0.0.0.0.47.17") && has("tcp6", "::.47.17") &&
           has("udp6", "::.47.17");
}

static const char *explain(void)
{
    static char buffer[512];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    registration_explain(&registration, &text);
    return buffer;
}

TEST(test_registration__claim_keep_drop)
{
    begin(false, 4);
    put(&fake, 100000, 4, "local", "/run/rpcbind.sock", "superuser");
    put(&fake, 100005, 3, "tcp", "0.0.0.0.8.1", "superuser");
    assert_int_equal(pass(&fake, REGISTRATION_LOOK), REGISTRATION_DONE);
    assert_int_equal(fake.changes, 0);
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_DONE);
    assert_true(has_all());
    assert_int_equal(fake.count, 6);
    assert_int_equal(fake.calls, 6); /* listed, four set, listed again */
    assert_int_equal(pass(&fake, REGISTRATION_KEEP), REGISTRATION_DONE);
    assert_int_equal(fake.calls, 1);
    assert_int_equal(registration_restored(&registration), 0);
    assert_int_equal(pass(&fake, REGISTRATION_DROP), REGISTRATION_DONE);
    assert_int_equal(fake.count, 2); /* the others' */
}

TEST(test_registration__stale_entries_of_our_port_are_fine)
{
    begin(false, 4);
    put(&fake, STATUS, 1, "tcp", "0.0.0.0.47.17", "superuser");
    put(&fake, STATUS, 1, "udp6", "::1.47.17", "superuser"); /* left by another --listen */
    assert_int_equal(pass(&fake, REGISTRATION_LOOK), REGISTRATION_DONE);
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_DONE);
    assert_true(has_all());
}

TEST(test_registration__foreign)
{
    begin(false, 4);
    put(&fake, STATUS, 1, "udp", "0.0.0.0.2.150", "29\n");
    put(&fake, STATUS, 1, "tcp6", "::.2.151", "");
    for (enum registration_goal goal = REGISTRATION_LOOK; goal <= REGISTRATION_CLAIM; goal++) {
        assert_int_equal(pass(&fake, goal), REGISTRATION_FOREIGN);
        assert_int_equal(fake.changes, 0);
        assert_string_equal(explain(), "rpcbind has program 100024 version 1 on udp port 662 "
                                       "(owner 29\\x0a), on tcp6 port 663");
    }
    assert_int_equal(pass(&fake, REGISTRATION_DROP), REGISTRATION_DONE);
    assert_int_equal(fake.count, 2);
}

TEST(test_registration__force_takes_over)
{
    begin(true, 4);
    put(&fake, STATUS, 1, "udp", "0.0.0.0.2.150", "29");
    put(&fake, STATUS, 1, "tcp6", "::.2.151", "29");
    put(&fake, STATUS, 2, "tcp6", "::.2.151", "29"); /* not a version of ours */
    assert_int_equal(pass(&fake, REGISTRATION_LOOK), REGISTRATION_DONE);
    assert_int_equal(fake.changes, 0);
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_DONE);
    assert_true(has_all());
    assert_int_equal(fake.count, 5);
}

TEST(test_registration__force_without_the_right)
{
    begin(true, 4);
    fake.caller = "1000";
    put(&fake, STATUS, 1, "udp", "0.0.0.0.2.150", "superuser");
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_FOREIGN);
    assert_true(has("udp", "0.0.0.0.2.150"));
    assert_non_null(strstr(explain(), "on udp port 662 (owner superuser)"));
}

TEST(test_registration__keep_restores_and_does_not_fight)
{
    begin(true, 4); /* also --force fights only at the start */
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_DONE);
    fake.count = 0; /* rpcbind was restarted */
    assert_int_equal(pass(&fake, REGISTRATION_KEEP), REGISTRATION_DONE);
    assert_int_equal(registration_restored(&registration), 4);
    assert_true(has_all());

    fake.count = 0; /* and again, and somebody else was faster on one of them */
    put(&fake, STATUS, 1, "udp", "0.0.0.0.2.150", "29");
    assert_int_equal(pass(&fake, REGISTRATION_KEEP), REGISTRATION_FOREIGN);
    assert_string_equal(explain(),
                        "rpcbind has program 100024 version 1 on udp port 662 (owner 29)");
    assert_true(has("tcp", "0.0.0.0.47.17"));
    assert_true(has("udp", "0.0.0.0.2.150"));
    assert_int_equal(pass(&fake, REGISTRATION_KEEP), REGISTRATION_FOREIGN);
    assert_int_equal(fake.changes, 0);
    assert_int_equal(pass(&fake, REGISTRATION_DROP), REGISTRATION_DONE);
    assert_int_equal(fake.count, 1);
    assert_true(has("udp", "0.0.0.0.2.150"));

    fake.count = 0; /* they are gone: ours again */
    assert_int_equal(pass(&fake, REGISTRATION_KEEP), REGISTRATION_DONE);
    assert_true(has_all());
}

/* Another instance with our port on another address is neither corrected again nor removed. */
TEST(test_registration__our_port_elsewhere)
{
    begin(false, 4);
    put(&fake, STATUS, 1, "tcp", "10.0.0.1.47.17", "superuser");
    assert_int_equal(pass(&fake, REGISTRATION_KEEP), REGISTRATION_DONE);
    assert_true(has("tcp", "10.0.0.1.47.17"));
    assert_int_equal(pass(&fake, REGISTRATION_DROP), REGISTRATION_DONE);
    assert_int_equal(fake.count, 1);
    assert_true(has("tcp", "10.0.0.1.47.17"));
}

TEST(test_registration__refused)
{
    begin(false, 4);
    fake.refuses = true;
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_REFUSED);
    assert_string_equal(explain(), "rpcbind did not take program 100024 version 1 on tcp, on udp, "
                                   "on tcp6, on udp6");
    fake.refuses = false;
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_DONE);
    fake.refuses = true;
    assert_int_equal(pass(&fake, REGISTRATION_DROP), REGISTRATION_REFUSED);
    assert_true(has_all());
}

TEST(test_registration__version_2)
{
    begin(false, 2);
    assert_int_equal(pass(&fake, REGISTRATION_LOOK), REGISTRATION_DONE);
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_DONE);
    assert_int_equal(fake.count, 2);
    assert_true(has("tcp", "0.0.0.0.47.17"));
    assert_true(has("udp", "0.0.0.0.47.17"));
    assert_int_equal(pass(&fake, REGISTRATION_DROP), REGISTRATION_DONE);
    assert_int_equal(fake.count, 0);
    assert_int_equal(fake.changes, 1); /* one UNSET took both */

    put(&fake, STATUS, 1, "udp", "0.0.0.0.2.150", "");
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_FOREIGN);
    assert_string_equal(explain(), "rpcbind has program 100024 version 1 on udp port 662");
    /* Only TCP is ours: an UNSET would take theirs along. */
    put(&fake, STATUS, 1, "tcp", "0.0.0.0.47.17", "");
    assert_int_equal(pass(&fake, REGISTRATION_DROP), REGISTRATION_DONE);
    assert_int_equal(fake.changes, 0);
    assert_int_equal(fake.count, 2);
}

TEST(test_registration__version_2_by_force)
{
    begin(true, 2);
    put(&fake, STATUS, 1, "tcp", "0.0.0.0.47.17", ""); /* ours, and lost with the UNSET of UDP */
    put(&fake, STATUS, 1, "udp", "0.0.0.0.2.150", "");
    assert_int_equal(pass(&fake, REGISTRATION_CLAIM), REGISTRATION_DONE);
    assert_int_equal(fake.count, 2);
    assert_true(has("tcp", "0.0.0.0.47.17"));
    assert_true(has("udp", "0.0.0.0.47.17"));
}

TEST(test_registration__what_is_no_rpcbind)
{
    begin(false, 4);
    fake.errs = true;
    assert_int_equal(pass(&fake, REGISTRATION_LOOK), REGISTRATION_GARBLED);

    /* Every cut and every extension of a listing. */
    begin(false, 4);
    put(&fake, STATUS, 1, "tcp", "0.0.0.0.47.17", "superuser");
    uint8_t buffer[REGISTRATION_CALL_MAX];
    for (uint32_t cut = 0;; cut++) {
        registration_begin(&registration, REGISTRATION_LOOK);
        struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
        assert_true(registration_next_call(&registration, &out));
        serve(&fake, (struct bytes){buffer, xdr_out_len(&out)});
        uint32_t whole = fake.answer.len;
        uint32_t len = cut <= whole ? cut : whole + 4; /* the last one is a word too long */
        if (len > whole)
            packet_put_u32(&fake.answer, 0);
        registration_answer(&registration, (struct bytes){fake.answer.bytes, len});
        registration_check(&registration);
        if (len < 24) /* inside the header: not an answer at all */
            assert_int_equal(registration_outcome(&registration), REGISTRATION_UNDER_WAY);
        else
            assert_int_equal(registration_outcome(&registration),
                             len == whole ? REGISTRATION_DONE : REGISTRATION_GARBLED);
        if (len > whole)
            break;
    }
}

TEST(test_registration__answers_of_others_are_ignored)
{
    begin(false, 4);
    uint8_t buffer[REGISTRATION_CALL_MAX];
    struct xdr_out out = xdr_out_of(buffer, sizeof buffer);
    registration_begin(&registration, REGISTRATION_LOOK);
    assert_true(registration_next_call(&registration, &out));
    assert_false(registration_next_call(&registration, &out));
    serve(&fake, (struct bytes){buffer, xdr_out_len(&out)});
    fake.answer.bytes[3] ^= 1;
    registration_answer(&registration, (struct bytes){fake.answer.bytes, fake.answer.len});
    assert_int_equal(registration_outcome(&registration), REGISTRATION_UNDER_WAY);
    fake.answer.bytes[3] ^= 1;
    registration_answer(&registration, (struct bytes){fake.answer.bytes, fake.answer.len});
    assert_int_equal(registration_outcome(&registration), REGISTRATION_DONE);
    registration_answer(&registration, (struct bytes){fake.answer.bytes, fake.answer.len});
    assert_int_equal(registration_outcome(&registration), REGISTRATION_DONE);
}

TEST_MAIN(NULL, NULL, NULL, NULL)
