/*
 * identity.c -- see identity.h.
 *
 *              identity_assume(c)
 *      OWN  -----------------------> c -----+ identity_assume(d)
 *       ^                            |  <---+
 *       +------ identity_own --------+
 *
 * setfsuid moves the capabilities of the file system out of the effective set when it leaves uid
 * 0, and back when it returns; a process that has the capabilities without being uid 0 does the
 * same by capset. The library's wrappers would change every thread of the process, hence the raw
 * calls.
 */
#include "file/identity.h"

#include "base/check.h"
#include "base/hash.h"

#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What makes the kernel overlook permissions: the calls of a caller must not have it. */
#define FILE_CAPABILITIES                                                                          \
    (UINT32_C(1) << CAP_CHOWN | UINT32_C(1) << CAP_DAC_OVERRIDE |                                  \
     UINT32_C(1) << CAP_DAC_READ_SEARCH | UINT32_C(1) << CAP_FOWNER | UINT32_C(1) << CAP_FSETID |  \
     UINT32_C(1) << CAP_MKNOD | UINT32_C(1) << CAP_LINUX_IMMUTABLE)

static const struct {
    uint32_t number;
    const char *name;
} needed[] = {
    {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
    {CAP_SETUID, "CAP_SETUID"},
    {CAP_SETGID, "CAP_SETGID"},
    {CAP_CHOWN, "CAP_CHOWN"},
    {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
    {CAP_FOWNER, "CAP_FOWNER"},
    {CAP_MKNOD, "CAP_MKNOD"},
};

/* What the calling thread is now. */
static _Thread_local struct {
    bool is_known, is_own;
    uint32_t own_uid, own_gid; /* of the process: they do not change */
    uint32_t uid, gid, group_count;
    uint32_t groups[IDENTITY_GROUPS_MAX];
} current;

struct capabilities {
    struct __user_cap_data_struct words[2];
};

static struct capabilities get_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct capabilities ret = {0};
    CHECK(syscall(SYS_capget, &header, ret.words) == 0);
    return ret;
}

static void set_capabilities(const struct capabilities *capabilities)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    CHECK(syscall(SYS_capset, &header, capabilities->words) == 0);
}

/* ---- who somebody is ---- */

uint32_t identity_squash_uid(const struct export_rights *rights, uint32_t uid)
{
    bool is_squashed =
        rights->squash == EXPORT_SQUASH_ALL || (rights->squash == EXPORT_SQUASH_ROOT && uid == 0);
    return is_squashed ? rights->anonymous_uid : uid;
}

uint32_t identity_squash_gid(const struct export_rights *rights, uint32_t gid)
{
    bool is_squashed =
        rights->squash == EXPORT_SQUASH_ALL || (rights->squash == EXPORT_SQUASH_ROOT && gid == 0);
    return is_squashed ? rights->anonymous_gid : gid;
}

static void set_mark(struct identity *identity)
{
    uint64_t mark = hash_mix(identity->seed, (uint64_t)identity->uid << 32 | identity->gid);
    struct bytes groups = {(const uint8_t *)identity->groups, identity->group_count * 4};
    identity->mark = hash_mix(mark, hash_bytes(mark, groups));
}

/* UINT32_MAX is no group: the kernel would refuse all of them. */
static void add_groups(struct identity *identity, const struct export_rights *rights,
                       const uint32_t *groups, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (groups[i] != UINT32_MAX)
            identity->groups[identity->group_count++] = identity_squash_gid(rights, groups[i]);
}

void identity_of(const struct rpc_credential *credential, const struct export_rights *rights,
                 uint64_t seed, struct identity *ret)
{
    ret->seed = seed;
    ret->group_count = 0;
    if (credential->flavor != RPC_AUTH_SYS || rights->squash == EXPORT_SQUASH_ALL ||
        (rights->squash == EXPORT_SQUASH_ROOT && credential->uid == 0)) {
        ret->uid = rights->anonymous_uid;
        ret->gid = rights->anonymous_gid;
    } else {
        ret->uid = credential->uid;
        ret->gid = identity_squash_gid(rights, credential->gid);
        add_groups(ret, rights, credential->groups, credential->group_count);
    }
    set_mark(ret);
}

void identity_set_groups(struct identity *identity, const struct export_rights *rights,
                         const uint32_t *groups, uint32_t count)
{
    CHECK(count <= IDENTITY_GROUPS_MAX);
    identity->group_count = 0;
    add_groups(identity, rights, groups, count);
    set_mark(identity);
}

/* ---- the calling thread ---- */

void identity_begin_thread(void)
{
    /* Modes are the caller's; the umask of the process is for the store's files. */
    CHECK(unshare(CLONE_FS) == 0);
    (void)umask(0);
    current.own_uid = geteuid();
    current.own_gid = getegid();
    /* Or no quota would hold for anybody, nor the blocks that are reserved for root. */
    struct capabilities own = get_capabilities();
    own.words[0].effective &= ~(UINT32_C(1) << CAP_SYS_RESOURCE);
    set_capabilities(&own);
}

static void set_file_capabilities(bool is_own)
{
    if (current.own_uid == 0)
        return; /* setfsuid does it */
    struct capabilities now = get_capabilities();
    uint32_t permitted = now.words[0].permitted & FILE_CAPABILITIES;
    now.words[0].effective =
        (now.words[0].effective & ~FILE_CAPABILITIES) | (is_own ? permitted : 0);
    set_capabilities(&now);
}

static void set_groups(const uint32_t *groups, uint32_t count)
{
    if (current.is_known && current.group_count == count &&
        (count == 0 || memcmp(current.groups, groups, count * sizeof groups[0]) == 0))
        return;
    /* In a user namespace that lacks one of them, the caller has none. */
    if (syscall(SYS_setgroups, count, groups) != 0)
        CHECK(syscall(SYS_setgroups, 0, NULL) == 0);
    current.group_count = count;
    if (count > 0)
        memcpy(current.groups, groups, count * sizeof groups[0]);
}

/* They return what was, never a failure; asked once more, they say what is. An id that this user
 * namespace lacks is nobody, as it is where files are shown. */
static uint32_t set_id(long number, uint32_t id)
{
    (void)syscall(number, id);
    uint32_t is_now = (uint32_t)syscall(number, UINT32_MAX);
    if (is_now == id)
        return id;
    (void)syscall(number, EXPORT_ANONYMOUS);
    CHECK((uint32_t)syscall(number, UINT32_MAX) == EXPORT_ANONYMOUS);
    return EXPORT_ANONYMOUS;
}

static void set_ids(uint32_t uid, uint32_t gid)
{
    if (!current.is_known || current.gid != gid)
        current.gid = set_id(SYS_setfsgid, gid);
    if (!current.is_known || current.uid != uid)
        current.uid = set_id(SYS_setfsuid, uid);
}

void identity_assume(const struct identity *identity)
{
    /* UINT32_MAX is nobody's id: the kernel takes it for a question. */
    uint32_t uid = identity->uid == UINT32_MAX ? EXPORT_ANONYMOUS : identity->uid;
    uint32_t gid = identity->gid == UINT32_MAX ? EXPORT_ANONYMOUS : identity->gid;
    set_groups(identity->groups, identity->group_count);
    set_ids(uid, gid);
    if (!current.is_known || current.is_own)
        set_file_capabilities(current.uid == 0);
    current.is_own = false;
    current.is_known = true;
}

void identity_own(void)
{
    if (current.is_known && current.is_own)
        return;
    set_ids(current.own_uid, current.own_gid);
    set_file_capabilities(true);
    /* The groups stay: who may do everything needs none. */
    if (!current.is_known)
        set_groups(NULL, 0);
    current.is_own = true;
    current.is_known = true;
}

/* What a thread with other work was when it entered. */
static _Thread_local struct {
    bool has_own_mask;
    mode_t mask;
    struct capabilities capabilities;
    uint32_t group_count;
    uint32_t groups[IDENTITY_GROUPS_MAX];
} host;

static void set_quota_rules(bool is_host)
{
    const uint32_t resource = UINT32_C(1) << CAP_SYS_RESOURCE;
    struct capabilities now = host.capabilities;
    if ((now.words[0].effective & resource) == 0)
        return;
    if (!is_host)
        now.words[0].effective &= ~resource;
    set_capabilities(&now);
}

bool identity_enter(void)
{
    long count = syscall(SYS_getgroups, IDENTITY_GROUPS_MAX, host.groups);
    if (count < 0)
        return false;
    if (!host.has_own_mask)
        CHECK(unshare(CLONE_FS) == 0);
    host.has_own_mask = true;
    host.mask = umask(0);
    host.capabilities = get_capabilities();
    host.group_count = current.group_count = (uint32_t)count;
    memcpy(current.groups, host.groups, sizeof host.groups[0] * host.group_count);
    current.uid = current.own_uid = geteuid();
    current.gid = current.own_gid = getegid();
    current.is_known = current.is_own = true;
    set_quota_rules(false);
    return true;
}

void identity_leave(void)
{
    identity_own();
    set_groups(host.groups, host.group_count);
    set_quota_rules(true);
    (void)umask(host.mask);
}

/* What to do depends on who took it away: nobody gave it, or a container or service has less. */
static void say_missing(struct text *why, const char *name)
{
    if (geteuid() != 0) {
        text_add(why, "--export needs root, since the server acts for the users of its clients: ");
        text_add(why, name);
        text_add(why, " is missing; start it as root: sudo holdfast serve ...");
        return;
    }
    text_add(why, "--export needs ");
    text_add(why, name);
    text_add(why, ", which was taken from this process; add it: docker run --cap-add ");
    text_add(why, name + strlen("CAP_"));
    text_add(why, " ..., or with systemd in CapabilityBoundingSet=");
}

/* Can the calling thread be this one? */
static bool is_known_here(long number, uint32_t id, uint32_t own)
{
    (void)syscall(number, id);
    bool is_known = (uint32_t)syscall(number, UINT32_MAX) == id;
    (void)syscall(number, own);
    return is_known;
}

/* Who is unknown here is nobody: there must be one. */
static bool check_nobody(struct text *why)
{
    bool has_user = is_known_here(SYS_setfsuid, EXPORT_ANONYMOUS, geteuid());
    if (has_user && is_known_here(SYS_setfsgid, EXPORT_ANONYMOUS, getegid()))
        return true;
    text_add(why, "--export needs ");
    text_add(why, has_user ? "group" : "user");
    text_add(why,
             " 65534 (nobody), as whom unknown callers are served, and this user namespace does "
             "not have it; map ids 0 to 65534 at least, for example with --map-users or "
             "/etc/subuid and /etc/subgid");
    return false;
}

bool identity_check(struct text *ret_why)
{
    struct capabilities own = get_capabilities();
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if ((own.words[0].effective & UINT32_C(1) << needed[i].number) != 0)
            continue;
        say_missing(ret_why, needed[i].name);
        return false;
    }
    return check_nobody(ret_why);
}
