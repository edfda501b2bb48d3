/*
 * nodes.c -- network namespaces as machines; see nodes.h.
 */
#include "nodes.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int here = -1, nodes[NODES_COUNT] = {-1, -1, -1};
static pid_t anchor; /* somebody in our own namespace, for ip to name it by */

__attribute__((format(printf, 1, 2))) static bool run(const char *format, ...)
{
    char command[256];
    int status = -1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        return true;
    printf("\"%s\" failed\n", command);
    return false;
}

static int own_namespace(void)
{
    return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static bool enter(int namespace)
{
    return setns(namespace, CLONE_NEWNET) == 0;
}

static pid_t stay_here(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

uint32_t nodes_address(uint32_t node)
{
    return UINT32_C(0x0a630001) + node;
}

static bool make_node(uint32_t node)
{
    if (unshare(CLONE_NEWNET) != 0 || (nodes[node] = own_namespace()) < 0)
        return false;
    bool is_made = run("ip link set lo up && ip link add eth0 address 02:00:00:00:00:0%u type veth "
                       "peer name node%u netns %d "
                       "&& ip addr add 10.99.0.%u/24 dev eth0 && ip link set eth0 up",
                       node + 1, node, (int)anchor, node + 1);
    return enter(here) && is_made && run("ip link set node%u master bridge up", node);
}

bool nodes_init(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) {
        printf("skipped: network namespaces need root\n");
        return false;
    }
    here = own_namespace();
    anchor = stay_here();
    bool is_made = here >= 0 && anchor > 0 &&
                   run("ip link set lo up && ip link add bridge type bridge forward_delay 0 && "
                       "ip link set bridge up && ip addr add 10.99.0.254/24 dev bridge");
    for (uint32_t i = 0; i < NODES_CLIENTS && is_made; i++)
        is_made = run("ip addr add 10.99.0.%u/24 dev bridge", 11 + i);
    for (uint32_t node = 0; node < NODES_COUNT && is_made; node++)
        is_made = make_node(node);
    if (!is_made)
        printf("skipped: the network could not be made\n");
    return is_made;
}

void nodes_done(void)
{
    if (anchor > 0) {
        kill(anchor, SIGKILL);
        waitpid(anchor, NULL, 0);
    }
}

void nodes_enter(uint32_t node)
{
    HARNESS_EXPECT(enter(node == NODES_HERE ? here : nodes[node]), "node %u cannot be entered",
                   node);
}

void nodes_run(uint32_t node, const char *command)
{
    nodes_enter(node);
    HARNESS_EXPECT(run("%s", command), "node %u", node);
    nodes_enter(NODES_HERE);
}

bool nodes_try(const char *command)
{
    return run("%s", command);
}

void nodes_spawn(uint32_t node, struct harness_server *server)
{
    nodes_enter(node);
    harness_spawn(server);
    nodes_enter(NODES_HERE);
}

void nodes_set_link(uint32_t node, bool is_up)
{
    HARNESS_EXPECT(run("ip link set node%u %s", node, is_up ? "up" : "down"), "the link of node %u",
                   node);
}

void nodes_move_service(uint32_t node)
{
    HARNESS_EXPECT(run("ip neigh replace 10.99.0.100 lladdr 02:00:00:00:00:0%u dev bridge "
                       "nud permanent",
                       node + 1),
                   "neighbours");
}

void nodes_forget_neighbours(void)
{
    HARNESS_EXPECT(run("ip neigh flush dev bridge"), "neighbours");
}
