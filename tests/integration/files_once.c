/*
 * files_once.c -- a repeat machine: the server is killed inside calls that change names and
 * attributes, and every call without an answer is sent again with its xid to the next one.
 *
 * Six clients have eight calls in flight each. Six of the eight are workers: each goes through a
 * list of calls in a directory of its own, and after each call the answer, what is in the directory
 * and the inodes of that are what the list says, also where it says EXIST, NOENT, NOTEMPTY or
 * NOT_SYNC. The other two are fighters: in each round all fighters of all clients send the same
 * call, such as an MKDIR of one name, and exactly one of them wins.
 *
 * In each round all send, and the server is killed some microseconds later. What has no answer is
 * repeated, half of the time from another port; sometimes the server is killed then, too. Passing
 * shows that there is no spurious EXIST, NOENT, NOTEMPTY or NOT_SYNC, no object twice, and nothing
 * lost. The metric of the server shows that repeats were judged at all.
 */
#include "files_stage.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINKS = 6,
    SLOTS = 8,
    WORKERS = 6, /* of the slots of a link; the others fight */
    CALLS = LINKS * SLOTS,
    FIGHTERS = LINKS * (SLOTS - WORKERS),
    DELAY_US = 6000,
    OLD_TIME = 1000000,
    USER = 1000,
};

/* One call of a list. Names are letters. */
struct step {
    uint32_t procedure;
    char name, to;
    uint32_t how; /* of CREATE */
    uint32_t wanted;
    const char *names; /* in the directory afterwards; NULL: it is gone */
};

/* clang-format off */
static const struct step steps[] = {
    {PEER_NFS_MKDIR, 0, 0, 0, PEER_NFS_IS_OK, ""},
    {PEER_NFS_MKDIR, 0, 0, 0, PEER_NFS_IS_EXIST, ""},
    {PEER_NFS_CREATE, 'f', 0, PEER_NFS_GUARDED, PEER_NFS_IS_OK, "f"},
    {PEER_NFS_SETATTR, 'f', 0, 0, PEER_NFS_IS_OK, "f"},
    {PEER_NFS_SETATTR, 'f', 1, 0, PEER_NFS_IS_NOT_SYNC, "f"},
    {PEER_NFS_CREATE, 'f', 0, PEER_NFS_GUARDED, PEER_NFS_IS_EXIST, "f"},
    {PEER_NFS_LINK, 'f', 'g', 0, PEER_NFS_IS_OK, "fg"},
    {PEER_NFS_LINK, 'f', 'g', 0, PEER_NFS_IS_EXIST, "fg"},
    {PEER_NFS_RENAME, 'f', 'h', 0, PEER_NFS_IS_OK, "gh"},
    {PEER_NFS_RENAME, 'f', 'h', 0, PEER_NFS_IS_NOENT, "gh"},
    {PEER_NFS_CREATE, 'k', 0, PEER_NFS_UNCHECKED, PEER_NFS_IS_OK, "ghk"},
    {PEER_NFS_RENAME, 'k', 'h', 0, PEER_NFS_IS_OK, "gh"},
    {PEER_NFS_SYMLINK, 's', 0, 0, PEER_NFS_IS_OK, "ghs"},
    {PEER_NFS_MKNOD, 'p', 0, 0, PEER_NFS_IS_OK, "ghps"},
    {PEER_NFS_CREATE, 'e', 0, PEER_NFS_EXCLUSIVE, PEER_NFS_IS_OK, "eghps"},
    {PEER_NFS_REMOVE, 'g', 0, 0, PEER_NFS_IS_OK, "ehps"},
    {PEER_NFS_REMOVE, 'g', 0, 0, PEER_NFS_IS_NOENT, "ehps"},
    {PEER_NFS_REMOVE, 'h', 0, 0, PEER_NFS_IS_OK, "eps"},
    {PEER_NFS_REMOVE, 's', 0, 0, PEER_NFS_IS_OK, "ep"},
    {PEER_NFS_REMOVE, 'p', 0, 0, PEER_NFS_IS_OK, "e"},
    {PEER_NFS_RMDIR, 0, 0, 0, PEER_NFS_IS_NOTEMPTY, "e"},
    {PEER_NFS_REMOVE, 'e', 0, 0, PEER_NFS_IS_OK, ""},
    {PEER_NFS_RMDIR, 0, 0, 0, PEER_NFS_IS_OK, NULL},
    {PEER_NFS_RMDIR, 0, 0, 0, PEER_NFS_IS_NOENT, NULL},
};

/* What fighters send; `wanted` is what the others get. */
static const struct step fights[] = {
    {PEER_NFS_MKDIR, 'x', 0, 0, PEER_NFS_IS_EXIST, "ax"},
    {PEER_NFS_RMDIR, 'x', 0, 0, PEER_NFS_IS_NOENT, "a"},
    {PEER_NFS_CREATE, 'x', 0, PEER_NFS_GUARDED, PEER_NFS_IS_EXIST, "ax"},
    {PEER_NFS_RENAME, 'x', 'y', 0, PEER_NFS_IS_NOENT, "ay"},
    {PEER_NFS_REMOVE, 'y', 0, 0, PEER_NFS_IS_NOENT, "a"},
    {PEER_NFS_LINK, 'a', 'x', 0, PEER_NFS_IS_EXIST, "ax"},
    {PEER_NFS_SETATTR, 'a', 0, 0, PEER_NFS_IS_NOT_SYNC, "ax"},
    {PEER_NFS_REMOVE, 'x', 0, 0, PEER_NFS_IS_NOENT, "a"},
    {PEER_NFS_SYMLINK, 'x', 0, 0, PEER_NFS_IS_EXIST, "ax"},
    {PEER_NFS_RENAME, 'x', 'y', 0, PEER_NFS_IS_NOENT, "ay"},
    {PEER_NFS_REMOVE, 'y', 0, 0, PEER_NFS_IS_NOENT, "a"},
    {PEER_NFS_MKNOD, 'x', 0, 0, PEER_NFS_IS_EXIST, "ax"},
    {PEER_NFS_REMOVE, 'x', 0, 0, PEER_NFS_IS_NOENT, "a"},
};
/* clang-format on */
enum { STEPS = sizeof(steps) / sizeof(steps[0]), FIGHTS = sizeof(fights) / sizeof(fights[0]) };

/* A directory, and what is known of it. */
struct place {
    char path[512], name[16];
    struct peer_nfs_fh parent, fh;
    struct peer_nfs_fh objects[128]; /* by name */
    uint64_t inodes[128];            /* 0: not known */
    struct peer_nfs_time ctime;      /* of the file that SETATTR changes */
};

struct slot {
    uint32_t at;         /* in the list */
    struct place *place; /* its own, or that of all fighters */
    bool is_open;
    char name[2], to[2];
    const struct step *step;
    struct peer_nfs_args args;
    struct peer_link_call call;
    struct peer_nfs_res res;
};

static struct files_stage stage;
static struct peer_link links[LINKS];
static struct slot slots[CALLS];
static struct place places[LINKS * WORKERS], arena;
static uint64_t seed, repeats, judged;
static uint32_t kills, kills_max;

static uint32_t choose(uint32_t count)
{
    return (uint32_t)(harness_random(&seed) % count);
}

static bool is_fighter(uint32_t index)
{
    return index % SLOTS >= WORKERS;
}

/* ---- what is sent ---- */

static void fill_new(struct slot *slot)
{
    const struct step *step = slot->step;
    struct peer_nfs_sattr *sattr = &slot->args.sattr;
    slot->args.how = step->how;
    *sattr = (struct peer_nfs_sattr){.has_mode = true, .mode = 0640};
    if (step->procedure == PEER_NFS_MKDIR)
        sattr->mode = 02770; /* not with mkdir alone */
    if (step->procedure == PEER_NFS_MKNOD)
        slot->args.type = PEER_NFS_FIFO;
    slot->args.path = peer_nfs_text("nowhere");
    if (step->how == PEER_NFS_UNCHECKED && step->procedure == PEER_NFS_CREATE) {
        sattr->has_size = true;
        sattr->mtime_how = PEER_NFS_CLIENT_TIME;
        sattr->mtime = (struct peer_nfs_time){OLD_TIME, 0};
    }
    for (uint32_t i = 0; i < PEER_NFS_VERF_LEN; i++)
        slot->args.verf[i] = (uint8_t)harness_random(&seed);
}

static void fill_set(struct slot *slot)
{
    bool is_wrong = slot->step->to == 1;
    slot->args.fh = slot->place->objects[(uint8_t)slot->step->name];
    slot->args.sattr = (struct peer_nfs_sattr){.has_mode = true, .mode = 0604};
    slot->args.has_guard = true;
    slot->args.guard = is_wrong ? (struct peer_nfs_time){1, 1} : slot->place->ctime;
}

static void fill(struct slot *slot)
{
    const struct step *step = slot->step;
    struct place *place = slot->place;
    bool is_inside = step->name != 0;
    slot->name[0] = step->name;
    slot->to[0] = step->to;
    slot->args = (struct peer_nfs_args){
        .fh = is_inside ? place->fh : place->parent,
        .name = peer_nfs_text(is_inside ? slot->name : place->name),
        .to_fh = place->fh,
        .to_name = peer_nfs_text(slot->to),
    };
    if (step->procedure == PEER_NFS_LINK)
        slot->args.fh = place->objects[(uint8_t)step->name];
    else if (step->procedure == PEER_NFS_SETATTR)
        fill_set(slot);
    else if (step->procedure <= PEER_NFS_MKNOD)
        fill_new(slot);
}

static void begin(uint32_t index, const struct step *step)
{
    struct slot *slot = &slots[index];
    slot->step = step;
    fill(slot);
    peer_nfs_begin(&links[index / SLOTS], &slot->call, step->procedure, &slot->args);
    slot->is_open = true;
}

/* ---- answers ---- */

static struct slot *slot_of(uint32_t link, uint32_t xid)
{
    for (uint32_t i = link * SLOTS; i < (link + 1) * SLOTS; i++)
        if (slots[i].is_open && slots[i].call.xid == xid)
            return &slots[i];
    return NULL;
}

static uint32_t count_open(uint32_t link)
{
    uint32_t count = 0;
    for (uint32_t i = link * SLOTS; i < (link + 1) * SLOTS; i++)
        count += slots[i].is_open;
    return count;
}

static void send_open(uint32_t link)
{
    uint32_t first = choose(SLOTS);
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &slots[link * SLOTS + (first + i) % SLOTS];
        if (slot->is_open && peer_link_send(&links[link], &slot->call) != 0)
            return;
    }
}

/* JUKEBOX: another call, later. */
static void take(uint32_t link, struct slot *slot, const struct packet_reply *reply)
{
    slot->is_open = false;
    if (!peer_nfs_finish(reply, slot->step->procedure, &slot->res)) {
        HARNESS_EXPECT(false, "%s: %s", peer_nfs_procedure_text(slot->step->procedure),
                       packet_reply_text(reply));
        slot->res = (struct peer_nfs_res){.status = PEER_NFS_IS_NOTHING};
    } else if (slot->res.status == PEER_NFS_IS_JUKEBOX) {
        slot->is_open = true;
        peer_nfs_begin(&links[link], &slot->call, slot->step->procedure, &slot->args);
        usleep(5000);
        (void)peer_link_send(&links[link], &slot->call);
    }
}

/* Until all is answered, or the connection is lost. */
static void receive(uint32_t link)
{
    struct packet_reply reply;
    while (count_open(link) > 0 && peer_link_receive(&links[link], &reply) == 0) {
        struct slot *slot = slot_of(link, reply.xid);
        if (slot)
            take(link, slot, &reply);
    }
}

/* ---- the server ---- */

static bool crash(uint32_t delay_us)
{
    usleep(choose(delay_us));
    if (harness_stop(&stage.server, SIGKILL) != 128 + SIGKILL)
        return HARNESS_EXPECT(false, "the server ended before it was killed");
    kills++;
    for (uint32_t i = 0; i < LINKS; i++) {
        receive(i);
        peer_link_close(&links[i]);
        if (choose(2) == 0)
            dial_endpoint_parse(i % 2 ? "127.0.0.2" : "127.0.0.1", 0, &links[i].route.source);
    }
    return files_stage_start(&stage);
}

/* All calls that are open are answered. */
static bool finish(void)
{
    for (uint32_t round = 0;; round++) {
        uint32_t open = 0;
        for (uint32_t i = 0; i < LINKS; i++)
            open += count_open(i);
        if (open == 0)
            return true;
        repeats += round > 0 ? open : 0;
        for (uint32_t i = 0; i < LINKS; i++)
            send_open(i);
        if (round == 0 || choose(4) == 0) {
            if (!crash(DELAY_US))
                return false;
            continue;
        }
        for (uint32_t i = 0; i < LINKS; i++) {
            receive(i);
            if (count_open(i) > 0)
                peer_link_close(&links[i]);
        }
        if (!HARNESS_EXPECT(round < 100, "no answers"))
            return false;
    }
}

/* ---- what must be so ---- */

static int compare(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

/* The names in a directory, and the inodes behind them. */
static bool check_names(const struct place *place, const char *names, const char *after)
{
    char found[64] = "";
    uint32_t count = 0;
    bool is_right = true;
    DIR *directory = opendir(place->path);
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
        uint8_t name = (uint8_t)entry->d_name[0];
        if (name == '.' || count == sizeof(found) - 1)
            continue;
        found[count++] = (char)name;
        uint64_t inode = name < 128 ? place->inodes[name] : 0;
        is_right &= HARNESS_EXPECT(inode == 0 || inode == entry->d_ino,
                                   "%s/%c is another object after %s", place->name, name, after);
    }
    if (!directory)
        return HARNESS_EXPECT(!names, "%s is gone after %s", place->name, after);
    closedir(directory);
    qsort(found, count, 1, compare);
    return HARNESS_EXPECT(names && strcmp(found, names) == 0, "%s has \"%s\" after %s, not \"%s\"",
                          place->name, found, after, names ? names : "(none)") &&
           is_right;
}

/* An object that was made: the one that is there, with all that was asked for. */
static bool check_made(const struct slot *slot)
{
    char path[600];
    struct stat st;
    const struct step *step = slot->step;
    const char *text = peer_nfs_procedure_text(step->procedure);
    snprintf(path, sizeof(path), "%s%s%s", slot->place->path, step->name ? "/" : "", slot->name);
    if (!HARNESS_EXPECT(slot->res.has_fh && slot->res.has_attr, "%s: no handle", text) ||
        !HARNESS_EXPECT(lstat(path, &st) == 0, "%s is not there", path))
        return false;
    bool is_set = st.st_mtime == OLD_TIME;
    bool is_file = step->procedure == PEER_NFS_CREATE;
    uint32_t mode = step->procedure == PEER_NFS_MKDIR ? 02770 : 0640;
    return HARNESS_EXPECT(st.st_ino == slot->res.attr.fileid, "%s names another object", text) &&
           HARNESS_EXPECT((st.st_mode & 07777) == mode || step->how == PEER_NFS_EXCLUSIVE ||
                              S_ISLNK(st.st_mode),
                          "%s: mode %o", text, st.st_mode) &&
           HARNESS_EXPECT(!is_file || step->how != PEER_NFS_UNCHECKED || is_set,
                          "%s: its time is not set", text);
}

/* What an OK has changed in what is known. */
static void learn(const struct slot *slot)
{
    const struct step *step = slot->step;
    struct place *place = slot->place;
    uint8_t name = (uint8_t)step->name, to = (uint8_t)step->to;
    if (step->procedure == PEER_NFS_RENAME || step->procedure == PEER_NFS_LINK) {
        place->inodes[to] = place->inodes[name];
        place->objects[to] = place->objects[name];
    }
    if (step->procedure == PEER_NFS_SETATTR)
        place->ctime = slot->res.wcc.after.ctime;
    if (step->procedure == PEER_NFS_LINK)
        place->ctime = slot->res.attr.ctime;
    if (step->procedure < PEER_NFS_CREATE || step->procedure > PEER_NFS_MKNOD)
        return;
    if (name == 0) {
        place->fh = slot->res.fh;
        return;
    }
    place->objects[name] = slot->res.fh;
    place->inodes[name] = slot->res.attr.fileid;
    if (step->procedure == PEER_NFS_CREATE)
        place->ctime = slot->res.attr.ctime;
}

static bool check_ok(const struct slot *slot)
{
    learn(slot);
    bool is_make =
        slot->step->procedure >= PEER_NFS_CREATE && slot->step->procedure <= PEER_NFS_MKNOD;
    return !is_make || check_made(slot);
}

static bool check_worker(struct slot *slot)
{
    const struct step *step = slot->step;
    const char *text = peer_nfs_procedure_text(step->procedure);
    bool is_right = HARNESS_EXPECT(slot->res.status == step->wanted,
                                   "step %u of %s: %s answered %s, not %s, after kill %u", slot->at,
                                   slot->place->name, text, peer_nfs_status_text(slot->res.status),
                                   peer_nfs_status_text(step->wanted), kills);
    slot->at = (slot->at + 1) % STEPS;
    if (is_right && slot->res.status == PEER_NFS_IS_OK)
        is_right = check_ok(slot);
    return is_right && check_names(slot->place, step->names, text);
}

static bool check_fight(const struct step *step)
{
    uint32_t winners = 0, others = 0;
    const char *text = peer_nfs_procedure_text(step->procedure);
    for (uint32_t i = 0; i < CALLS; i++) {
        if (!is_fighter(i))
            continue;
        others += slots[i].res.status == step->wanted;
        if (slots[i].res.status != PEER_NFS_IS_OK)
            continue;
        winners++;
        check_ok(&slots[i]);
    }
    return HARNESS_EXPECT(winners == 1 && others == FIGHTERS - 1,
                          "%s: %u of %u won and %u got %s, after kill %u", text, winners,
                          (unsigned)FIGHTERS, others, peer_nfs_status_text(step->wanted), kills) &&
           check_names(&arena, step->names, text);
}

static bool run_round(uint32_t round)
{
    const struct step *fight = &fights[round % FIGHTS];
    for (uint32_t i = 0; i < CALLS; i++)
        begin(i, is_fighter(i) ? fight : &steps[slots[i].at]);
    if (!finish())
        return false;
    judged += files_stage_metric("nfs_restart_repeats_total");
    bool is_well = check_fight(fight);
    for (uint32_t i = 0; i < CALLS; i++)
        is_well &= is_fighter(i) || check_worker(&slots[i]);
    return is_well;
}

/* ---- the beginning ---- */

/* The link's directory, and in it one of each worker. */
static bool set_up_link(uint32_t link, const char *path, struct peer_link *root,
                        struct peer_nfs_fh top)
{
    char name[16], home[400];
    snprintf(name, sizeof(name), "home%u", link);
    snprintf(home, sizeof(home), "%s/%s", path, name);
    if (mkdir(home, 0755) != 0 || chown(home, USER, USER) != 0)
        return false;
    files_stage_link_from(&links[link], link % 2 ? "127.0.0.2" : "127.0.0.1");
    links[link].is_hard = false;
    links[link].next_xid += link << 24;
    links[link].who = (struct peer_link_identity){.uid = USER, .gid = USER};
    struct peer_nfs_fh parent = files_stage_lookup(root, top, name);
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct place *place = &places[link * WORKERS + i];
        slots[link * SLOTS + i].place = i < WORKERS ? place : &arena;
        if (i >= WORKERS)
            continue;
        snprintf(place->name, sizeof(place->name), "d%u", i);
        snprintf(place->path, sizeof(place->path), "%s/%s", home, place->name);
        place->parent = parent;
    }
    return true;
}

static bool set_up(const char *path)
{
    struct peer_link root;
    files_stage_link(&root, 0, 0);
    struct peer_nfs_fh top = files_stage_mount(&root, path);
    snprintf(arena.name, sizeof(arena.name), "arena");
    snprintf(arena.path, sizeof(arena.path), "%s/arena", path);
    bool is_well = mkdir(arena.path, 0777) == 0;
    arena.fh = files_stage_lookup(&root, top, "arena");
    for (uint32_t i = 0; i < LINKS; i++)
        is_well &= set_up_link(i, path, &root, top);
    arena.objects['a'] = files_stage_create(&root, arena.fh, "a", 0666);
    const struct peer_nfs_res *res =
        FILES_ASK(&root, PEER_NFS_SETATTR, .fh = arena.objects['a'],
                  .sattr = {.has_uid = true, .uid = USER, .has_gid = true, .gid = USER});
    arena.ctime = res->wcc.after.ctime;
    peer_link_done(&root);
    return is_well && res->status == PEER_NFS_IS_OK;
}

int main(void)
{
    files_stage_init(&stage, "files_once");
    const char *path = files_stage_export(&stage, "files", "*(rw,no_root_squash)");
    files_stage_metrics(&stage);
    kills_max = harness_number("HOLDFAST_FILES_ONCE_KILLS", 40);
    seed = harness_seed() | 1;
    bool is_well = files_stage_start(&stage) && set_up(path);
    uint64_t began_ns = dial_now_ns();
    uint32_t round = 0;
    for (; is_well && kills < kills_max; round++)
        is_well = run_round(round);
    HARNESS_EXPECT(is_well, "the machine stopped in round %u", round);
    HARNESS_EXPECT(judged > 0, "no repeat was judged: nothing is shown");
    printf("%u rounds, %u kills in %llu ms, %llu calls repeated, %llu of them executed before\n",
           round, kills, (unsigned long long)(dial_now_ns() - began_ns) / 1000000,
           (unsigned long long)repeats, (unsigned long long)judged);
    for (uint32_t i = 0; i < LINKS; i++)
        if (links[i].answer)
            peer_link_done(&links[i]);
    return files_stage_finish(&stage);
}
