/*
 * files_model.c -- several clients change trees at the same time, the server is killed in the
 * middle of it, and every answer is held against a model.
 *
 * Each client works in a directory of its own, as a user of its own. In each round all of them send
 * one call; in some rounds the server is killed with SIGKILL while it works on them, and started
 * again. Calls without an answer are then sent once more with their xid, from the port they had, as
 * a hard mount does. Answered calls are at times sent again, too. Passing shows that a repeat is
 * answered as the first execution was, or would have been; that what was answered is there; that
 * handles, attributes and content outlive the server; and that the write verifier changes with each
 * start and at no other time.
 */
#include "files_stage.h"
#include "files_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CLIENTS = 4, LOOK_EVERY = 60 };

struct client {
    struct peer_link link;
    struct files_tree tree;
    struct files_tree_step step;
    struct peer_nfs_args args;
    struct peer_link_call call;
    struct peer_nfs_res res;
    bool is_sent;
};

static struct files_stage stage;
static struct client clients[CLIENTS];
static struct peer_link visitor; /* root: looks at everybody's tree */
static uint64_t seed, repeats, steps;
static bool has_verf;
static uint8_t verf[PEER_NFS_VERF_LEN];

static bool report(uint32_t index, const char *wrong)
{
    return HARNESS_EXPECT(wrong == NULL, "client %u, step %llu, start %u: %s", index,
                          (unsigned long long)steps, stage.starts, wrong);
}

static void send_step(struct client *client)
{
    files_tree_choose(&client->tree, &seed, &client->step);
    files_tree_args(&client->tree, &client->step, &client->args);
    peer_nfs_begin(&client->link, &client->call, client->step.procedure, &client->args);
    client->is_sent = peer_link_send(&client->link, &client->call) == 0;
    steps++;
}

/* The answer that is on its way; or the call once more, until there is one. */
static const char *collect(struct client *client)
{
    struct packet_reply reply = {0};
    int result = client->is_sent ? 0 : -1;
    while (result == 0) {
        result = peer_link_receive(&client->link, &reply);
        if (result == 0 && reply.xid == client->call.xid)
            break;
    }
    if (result != 0) {
        peer_link_close(&client->link);
        repeats++;
        result = peer_link_exchange(&client->link, &client->call, &reply);
    }
    if (result != 0)
        return "no answer";
    if (!peer_nfs_finish(&reply, client->step.procedure, &client->res))
        return packet_reply_text(&reply);
    while (client->res.status == PEER_NFS_IS_JUKEBOX) {
        usleep(10000);
        if (peer_nfs_call(&client->link, client->step.procedure, &client->args, &client->res) ==
            PEER_NFS_IS_NOTHING)
            return "no answer after JUKEBOX";
    }
    return NULL;
}

/* The same call once more, answered already: the same status and object, and no second effect. */
static const char *repeat(struct client *client)
{
    struct packet_reply reply;
    struct peer_nfs_res res;
    uint32_t procedure = client->step.procedure;
    if (procedure != PEER_NFS_SETATTR && (procedure < PEER_NFS_CREATE || procedure > PEER_NFS_LINK))
        return NULL;
    if (peer_link_exchange(&client->link, &client->call, &reply) != 0 ||
        !peer_nfs_finish(&reply, procedure, &res))
        return "a repeat has no answer";
    if (res.status != client->res.status)
        return "a repeat is answered in another way";
    if (res.has_fh && !peer_nfs_same_fh(&res.fh, &client->res.fh))
        return "a repeat names another object";
    return NULL;
}

static const char *check_verf(const struct client *client)
{
    if (client->step.procedure != PEER_NFS_WRITE && client->step.procedure != PEER_NFS_COMMIT)
        return NULL;
    bool is_same = memcmp(verf, client->res.verf, sizeof(verf)) == 0;
    if (has_verf && !is_same)
        return "the write verifier has changed without a restart";
    if (!has_verf && stage.starts > 1 && is_same)
        return "the write verifier is the one of the last start";
    has_verf = true;
    memcpy(verf, client->res.verf, sizeof(verf));
    return NULL;
}

static bool run_round(bool is_killed)
{
    for (uint32_t i = 0; i < CLIENTS; i++)
        send_step(&clients[i]);
    if (is_killed) {
        usleep((useconds_t)(harness_random(&seed) % 2000));
        if (!files_stage_crash(&stage))
            return false;
        has_verf = false;
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct client *client = &clients[i];
        const char *wrong = collect(client);
        if (!wrong && !is_killed && harness_random(&seed) % 16 == 0)
            wrong = repeat(client);
        if (!wrong)
            wrong = files_tree_judge(&client->tree, &client->step, &client->res);
        if (!wrong && !is_killed)
            wrong = check_verf(client);
        if (!report(i, wrong))
            return false;
    }
    return true;
}

/* The whole tree of a client through somebody else's eyes. */
static bool look(uint32_t index)
{
    static struct files_tree_step step;
    struct files_tree *tree = &clients[index].tree;
    for (uint32_t i = 0; i < FILES_TREE_NODES; i++) {
        static const uint32_t procedures[] = {[PEER_NFS_REG] = PEER_NFS_READ,
                                              [PEER_NFS_DIR] = PEER_NFS_READDIRPLUS,
                                              [PEER_NFS_LNK] = PEER_NFS_READLINK,
                                              [PEER_NFS_FIFO] = PEER_NFS_GETATTR};
        struct peer_nfs_args args;
        if (!tree->nodes[i].is_used)
            continue;
        memset(&step, 0, sizeof(step));
        step.procedure = PEER_NFS_GETATTR;
        for (uint32_t round = 0; round < 2; round++) {
            step.node = step.directory = i;
            step.count = FILES_TREE_SIZE;
            files_tree_args(tree, &step, &args);
            const struct peer_nfs_res *res = files_stage_ask(&visitor, step.procedure, &args);
            if (!report(index, files_tree_judge(tree, &step, res)))
                return false;
            step.procedure = procedures[tree->nodes[i].type];
        }
    }
    return true;
}

static bool set_up(const char *path)
{
    char name[32], directory[512];
    files_stage_link(&visitor, 0, 0);
    struct peer_nfs_fh root = files_stage_mount(&visitor, path);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        uint32_t uid = 1000 + i, gid = 2000 + i;
        snprintf(name, sizeof(name), "client%u", i);
        snprintf(directory, sizeof(directory), "%s/%s", path, name);
        if (mkdir(directory, 0755) != 0 || chown(directory, uid, gid) != 0)
            return false;
        files_stage_link(&clients[i].link, uid, gid);
        const struct peer_nfs_res *res =
            FILES_EXPECT(PEER_NFS_IS_OK, name, &visitor, PEER_NFS_LOOKUP, .fh = root,
                         .name = peer_nfs_text(name));
        if (!res->has_attr || !files_tree_init(&clients[i].tree, &res->fh, &res->attr))
            return false;
    }
    return true;
}

int main(void)
{
    files_stage_init(&stage, "files_model");
    const char *path = files_stage_export(&stage, "files", "*(rw,no_root_squash)");
    uint32_t rounds = harness_number("HOLDFAST_FILES_ROUNDS", 600);
    uint32_t kills = harness_number("HOLDFAST_FILES_KILLS", 12);
    seed = harness_seed() | 1;
    bool is_well = files_stage_start(&stage) && set_up(path);
    uint32_t round = 0, killed = 0;
    for (; is_well && round < rounds; round++) {
        bool is_killed = harness_random(&seed) % rounds < kills;
        is_well = run_round(is_killed);
        killed += is_killed;
        for (uint32_t i = 0; is_well && i < CLIENTS && round % LOOK_EVERY == 0; i++)
            is_well = look(i);
    }
    for (uint32_t i = 0; is_well && i < CLIENTS; i++)
        is_well = look(i);
    HARNESS_EXPECT(round == rounds, "%u of %u rounds", round, rounds);
    printf("%llu steps, %u kills, %llu calls repeated\n", (unsigned long long)steps, killed,
           (unsigned long long)repeats);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (clients[i].link.answer)
            peer_link_done(&clients[i].link);
        files_tree_done(&clients[i].tree);
    }
    peer_link_done(&visitor);
    return files_stage_finish(&stage);
}
