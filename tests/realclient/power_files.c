/*
 * power_files.c -- fake NFS clients of a server whose power is cut, and what they remember of its
 * answers.
 *
 * usage: power_files fill ADDRESS PORT DIRECTORY LEDGER    works until the server is gone
 *        power_files check ADDRESS PORT DIRECTORY LEDGER   is everything there that was answered?
 *
 * Eight processes have a directory each and do one thing after the other to one item after the
 * other: a file is created, written (FILE_SYNC, or unstable and committed), linked, renamed, cut,
 * given another mode, or removed, a directory and a symbolic link are made. Each writes into
 * LEDGER.N what it asks for, and that it was answered:
 *
 *   ? STEP ITEM   under way: nobody knows what the disk has
 *   + STEP ITEM   answered: the disk must have it after any cut of the power
 *
 * The check prints how many answers it looked at. The exit status is 1 when one of them is not
 * true.
 */
#include "peer/peer_mount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 8, ITEMS_MAX = 20000, DATA_LEN = 3000, CUT_LEN = 1000, PATIENCE_MS = 5000 };

/* Done to an item in this order; which of them depends on its number. */
enum step {
    STEP_CREATE,
    STEP_WRITE,  /* FILE_SYNC, or COMMIT after it */
    STEP_MODE,   /* 0600 */
    STEP_LINK,   /* a second name, l */
    STEP_RENAME, /* f to g */
    STEP_CUT,    /* to CUT_LEN */
    STEP_REMOVE,
    STEP_MKDIR,
    STEP_SYMLINK,
    STEP_COUNT,
};

static const char *const step_names[STEP_COUNT] = {"create", "write",  "mode",  "link",   "rename",
                                                   "cut",    "remove", "mkdir", "symlink"};

static struct peer_link link_of_process;
static struct peer_nfs_fh home;
static struct peer_nfs_res res;
static const char *directory, *address;
static uint16_t port;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "power_files: %s\n", what);
    exit(2);
}

static bool is_done_to(enum step step, uint32_t item)
{
    static const uint32_t each[STEP_COUNT] = {1, 1, 2, 3, 2, 5, 4, 3, 7};
    return item % each[step] == 0;
}

static void name_of(char ret[24], char letter, uint32_t item)
{
    snprintf(ret, 24, "%c%u", letter, item);
}

static void fill_data(uint8_t data[DATA_LEN], uint32_t item)
{
    for (uint32_t i = 0; i < DATA_LEN; i++)
        data[i] = (uint8_t)(item * 31 + i * 7 + i / 251);
}

static uint32_t ask(uint32_t procedure, const struct peer_nfs_args *args)
{
    uint32_t status;
    do
        status = peer_nfs_call(&link_of_process, procedure, args, &res);
    while (status == PEER_NFS_IS_JUKEBOX);
    return status;
}

static void open_home(uint32_t process, bool is_new)
{
    struct dial_route route = {0};
    struct peer_mount_res mounted = {0};
    char name[24];
    if (!dial_endpoint_parse(address, port, &route.server) ||
        !peer_link_init(&link_of_process, &route))
        die("cannot dial");
    link_of_process.is_hard = true;
    link_of_process.timeout_ms = 20000;
    if (peer_mount_call(&link_of_process, PEER_MOUNT_MNT, peer_nfs_text(directory), &mounted) != 0)
        die("cannot mount");
    name_of(name, 'p', process);
    struct peer_nfs_args args = {
        .fh = mounted.fh, .name = peer_nfs_text(name), .sattr = {.has_mode = true, .mode = 0755}};
    if (is_new && ask(PEER_NFS_MKDIR, &args) != PEER_NFS_IS_OK)
        die("cannot make a directory");
    if (ask(PEER_NFS_LOOKUP, &args) != PEER_NFS_IS_OK)
        die("the directory of a process is gone");
    home = res.fh;
    link_of_process.is_hard = false;
    link_of_process.timeout_ms = PATIENCE_MS;
}

/* ---- fill ---- */

static uint32_t write_data(struct peer_nfs_fh fh, uint32_t item)
{
    static uint8_t data[DATA_LEN];
    uint8_t verf[PEER_NFS_VERF_LEN];
    bool is_stable = item % 2 == 0;
    fill_data(data, item);
    struct peer_nfs_args args = {.fh = fh,
                                 .count = DATA_LEN,
                                 .data = {data, DATA_LEN},
                                 .stable = is_stable ? PEER_NFS_FILE_SYNC : PEER_NFS_UNSTABLE};
    uint32_t status = ask(PEER_NFS_WRITE, &args);
    if (status != PEER_NFS_IS_OK || is_stable)
        return status;
    memcpy(verf, res.verf, sizeof(verf));
    status = ask(PEER_NFS_COMMIT, &args);
    return status == PEER_NFS_IS_OK && memcmp(verf, res.verf, sizeof(verf)) != 0 ? PEER_NFS_IS_IO
                                                                                 : status;
}

static uint32_t do_step(enum step step, uint32_t item, struct peer_nfs_fh *fh)
{
    char f[24], g[24], l[24], other[24];
    bool is_renamed = is_done_to(STEP_RENAME, item);
    name_of(f, 'f', item);
    name_of(g, 'g', item);
    name_of(l, 'l', item);
    struct peer_nfs_args args = {.fh = home,
                                 .name = peer_nfs_text(f),
                                 .to_fh = home,
                                 .how = PEER_NFS_GUARDED,
                                 .path = peer_nfs_text("target"),
                                 .sattr = {.has_mode = true, .mode = 0640}};
    uint32_t status;
    switch (step) {
    case STEP_CREATE:
        status = ask(PEER_NFS_CREATE, &args);
        *fh = res.fh;
        return status;
    case STEP_WRITE:
        return write_data(*fh, item);
    case STEP_MODE:
        args.fh = *fh;
        args.sattr.mode = 0600;
        return ask(PEER_NFS_SETATTR, &args);
    case STEP_LINK:
        args.fh = *fh;
        args.to_name = peer_nfs_text(l);
        return ask(PEER_NFS_LINK, &args);
    case STEP_RENAME:
        args.to_name = peer_nfs_text(g);
        return ask(PEER_NFS_RENAME, &args);
    case STEP_CUT:
        args.fh = *fh;
        args.sattr = (struct peer_nfs_sattr){.has_size = true, .size = CUT_LEN};
        return ask(PEER_NFS_SETATTR, &args);
    case STEP_REMOVE:
        args.name = peer_nfs_text(is_renamed ? g : f);
        return ask(PEER_NFS_REMOVE, &args);
    case STEP_MKDIR:
    case STEP_SYMLINK:
        name_of(other, step == STEP_MKDIR ? 'd' : 's', item);
        args.name = peer_nfs_text(other);
        return ask(step == STEP_MKDIR ? PEER_NFS_MKDIR : PEER_NFS_SYMLINK, &args);
    case STEP_COUNT:
        break;
    }
    return PEER_NFS_IS_NOTHING;
}

static _Noreturn void fill(const char *path, uint32_t process)
{
    FILE *ledger = fopen(path, "w");
    if (ledger == NULL)
        die(path);
    open_home(process, true);
    for (uint32_t item = 0; item < ITEMS_MAX; item++) {
        struct peer_nfs_fh fh = {0};
        for (uint32_t step = 0; step < STEP_COUNT; step++) {
            if (!is_done_to((enum step)step, item))
                continue;
            fprintf(ledger, "? %u %u\n", step, item);
            fflush(ledger);
            uint32_t status = do_step((enum step)step, item, &fh);
            if (status == PEER_NFS_IS_NOTHING)
                exit(0);
            if (status != PEER_NFS_IS_OK) {
                printf("process %u: %s of item %u: %s\n", process, step_names[step], item,
                       peer_nfs_status_text(status));
                exit(1);
            }
            fprintf(ledger, "+ %u %u\n", step, item);
            fflush(ledger);
        }
    }
    exit(0);
}

/* ---- the reckoning ---- */

static uint32_t answers, wrong;

static void accuse(uint32_t item, const char *what)
{
    wrong++;
    printf("item %u: %s\n", item, what);
}

/* The status of a name; its attributes and handle are in `res`. */
static uint32_t look_up(char letter, uint32_t item)
{
    char name[24];
    name_of(name, letter, item);
    struct peer_nfs_args args = {.fh = home, .name = peer_nfs_text(name)};
    uint32_t status = ask(PEER_NFS_LOOKUP, &args);
    if (status == PEER_NFS_IS_NOTHING)
        die("no answer");
    return status;
}

static void check_data(uint32_t item, struct peer_nfs_fh fh, uint32_t len)
{
    static uint8_t data[DATA_LEN];
    fill_data(data, item);
    struct peer_nfs_args args = {.fh = fh, .count = DATA_LEN + 1};
    if (ask(PEER_NFS_READ, &args) != PEER_NFS_IS_OK || res.data.len != len ||
        memcmp(res.data.at, data, len) != 0)
        accuse(item, "has other bytes");
}

/* `done` are the steps that were answered; `doubt` is the one that was not, or STEP_COUNT. */
static void check_item(uint32_t item, uint32_t done, enum step doubt)
{
    char letter = done & 1u << STEP_RENAME ? 'g' : 'f';
    bool is_gone = done & 1u << STEP_REMOVE;
    if ((done & 1u << STEP_MKDIR) && look_up('d', item) != PEER_NFS_IS_OK)
        accuse(item, "its directory is missing");
    if ((done & 1u << STEP_SYMLINK) && look_up('s', item) != PEER_NFS_IS_OK)
        accuse(item, "its symbolic link is missing");
    if ((done & 1u << STEP_LINK) && look_up('l', item) != PEER_NFS_IS_OK)
        accuse(item, "its second name is missing");
    if (is_gone && (look_up('f', item) == PEER_NFS_IS_OK || look_up('g', item) == PEER_NFS_IS_OK))
        accuse(item, "was removed and is there");
    if (letter == 'g' && look_up('f', item) != PEER_NFS_IS_NOENT)
        accuse(item, "has its old name");
    if (is_gone || !(done & 1u << STEP_CREATE) || doubt == STEP_REMOVE || doubt == STEP_RENAME)
        return;
    if (look_up(letter, item) != PEER_NFS_IS_OK) {
        accuse(item, "is missing");
        return;
    }
    struct peer_nfs_fh fh = res.fh;
    if ((done & 1u << STEP_MODE) && (!res.has_attr || res.attr.mode != 0600))
        accuse(item, "has another mode");
    if ((done & 1u << STEP_WRITE) && doubt != STEP_CUT)
        check_data(item, fh, done & 1u << STEP_CUT ? CUT_LEN : DATA_LEN);
}

static void reckon(const char *path, uint32_t process)
{
    static uint32_t done[ITEMS_MAX];
    FILE *ledger = fopen(path, "r");
    char word;
    uint32_t step, item, count = 0, last_step = STEP_COUNT, last_item = ITEMS_MAX;
    if (ledger == NULL)
        die(path);
    memset(done, 0, sizeof done);
    while (fscanf(ledger, " %c %u %u", &word, &step, &item) == 3 && item < ITEMS_MAX) {
        last_step = word == '?' ? step : STEP_COUNT;
        last_item = item;
        if (word != '+')
            continue;
        done[item] |= 1u << step;
        count = item + 1;
        answers++;
    }
    fclose(ledger);
    open_home(process, false);
    for (item = 0; item < count; item++)
        check_item(item, done[item], item == last_item ? (enum step)last_step : STEP_COUNT);
    peer_link_done(&link_of_process);
}

int main(int argc, char **argv)
{
    bool is_fill = argc == 6 && strcmp(argv[1], "fill") == 0;
    if (!is_fill && (argc != 6 || strcmp(argv[1], "check") != 0)) {
        fputs("usage: power_files fill|check ADDRESS PORT DIRECTORY LEDGER\n", stderr);
        return 2;
    }
    address = argv[2];
    port = (uint16_t)strtol(argv[3], NULL, 10);
    directory = argv[4];
    for (uint32_t process = 1; process <= PROCESSES; process++) {
        char path[512];
        snprintf(path, sizeof path, "%s.%u", argv[5], process);
        pid_t pid = is_fill ? fork() : 0;
        if (pid < 0)
            die("fork");
        if (is_fill && pid == 0)
            fill(path, process);
        if (!is_fill)
            reckon(path, process);
    }
    while (wait(NULL) > 0)
        continue;
    if (!is_fill)
        printf("answered %u wrong %u\n", answers, wrong);
    return wrong > 0;
}
