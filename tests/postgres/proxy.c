/*
 * proxy.c -- see proxy.h.
 *
 * One thread, poll() over a handful of connections. libpq sends a batch in one piece unless it is
 * large, so "the next thing that is said" is a whole transaction.
 */
#include "proxy.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_NAME "/.s.PGSQL.5432" /* as libpq looks for it */

enum { PAIRS_MAX = 32, PIECE_MAX = 1 << 16 };

/* Orders for the thread. */
enum { END = 'e', CUT = 'c', MEND = 'm', RELEASE = 'r' };

struct pair {
    int near_fd, far_fd; /* the server's and PostgreSQL's; -1: none */
    bool drops;          /* what PostgreSQL says next is lost, and the pair with it */
    bool is_held;        /* what PostgreSQL says waits */
    bool is_left;        /* only PostgreSQL's side is open, until the end */
};

struct proxy {
    char directory[160], target[160];
    int listener;
    int wake[2]; /* orders for the thread */
    pthread_t thread;
    atomic_int deed, deeds;
    bool is_cut; /* the thread's own */
    struct pair pairs[PAIRS_MAX];
};

static bool address_of(const char *directory, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t len = strlen(directory);
    if (len + sizeof SOCKET_NAME > sizeof ret->sun_path)
        return false;
    memcpy(ret->sun_path, directory, len);
    memcpy(ret->sun_path + len, SOCKET_NAME, sizeof SOCKET_NAME);
    return true;
}

static void close_pair(struct pair *pair)
{
    if (pair->near_fd >= 0)
        close(pair->near_fd);
    if (pair->far_fd >= 0)
        close(pair->far_fd);
    *pair = (struct pair){.near_fd = -1, .far_fd = -1};
}

static void accept_one(struct proxy *proxy)
{
    int near_fd = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    if (near_fd < 0)
        return;
    struct sockaddr_un target;
    address_of(proxy->target, &target);
    int far_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pair *free_pair = NULL;
    for (int i = 0; i < PAIRS_MAX; i++)
        if (proxy->pairs[i].near_fd < 0 && proxy->pairs[i].far_fd < 0)
            free_pair = &proxy->pairs[i];
    if (free_pair == NULL || far_fd < 0 ||
        connect(far_fd, (const struct sockaddr *)&target, sizeof target) != 0) {
        close(near_fd);
        if (far_fd >= 0)
            close(far_fd);
        return;
    }
    *free_pair = (struct pair){.near_fd = near_fd, .far_fd = far_fd};
}

static bool pass(int to, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(to, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static void leave(struct pair *pair)
{
    close(pair->near_fd);
    pair->near_fd = -1;
    pair->is_left = true;
}

/* The server said something. */
static void outward(struct proxy *proxy, struct pair *pair)
{
    static char piece[PIECE_MAX];
    ssize_t n = recv(pair->near_fd, piece, sizeof piece, 0);
    if (n <= 0) {
        close_pair(pair);
        return;
    }
    enum proxy_deed deed = (enum proxy_deed)atomic_exchange(&proxy->deed, PROXY_HONEST);
    if (deed != PROXY_HONEST)
        atomic_fetch_add(&proxy->deeds, 1);
    size_t len = deed == PROXY_CUT_BEFORE ? 0 : deed == PROXY_CUT_HALF ? (size_t)n / 2 : (size_t)n;
    bool is_passed = pass(pair->far_fd, piece, len);
    if (!is_passed || deed == PROXY_CUT_BEFORE || deed == PROXY_CUT_HALF)
        close_pair(pair);
    else if (deed == PROXY_LEAVE)
        leave(pair);
    else if (deed == PROXY_HOLD)
        pair->is_held = true;
    else
        pair->drops = deed == PROXY_CUT_AFTER;
}

/* PostgreSQL did. */
static void inward(struct pair *pair)
{
    static char piece[PIECE_MAX];
    ssize_t n = recv(pair->far_fd, piece, sizeof piece, 0);
    if (pair->is_left && n > 0)
        return;
    if (n <= 0 || pair->drops || !pass(pair->near_fd, piece, (size_t)n))
        close_pair(pair);
}

/* Cut, PostgreSQL's side goes; mended, the server's. */
static void change_link(struct proxy *proxy, bool is_cut)
{
    proxy->is_cut = is_cut;
    for (int i = 0; i < PAIRS_MAX; i++) {
        struct pair *pair = &proxy->pairs[i];
        if (!is_cut)
            close_pair(pair);
        if (pair->far_fd >= 0)
            close(pair->far_fd);
        pair->far_fd = -1;
    }
}

static void *run(void *context)
{
    struct proxy *proxy = context;
    for (;;) {
        struct pollfd fds[2 + 2 * PAIRS_MAX] = {{.fd = proxy->wake[0], .events = POLLIN},
                                                {.fd = proxy->listener, .events = POLLIN}};
        nfds_t count = proxy->is_cut ? 1 : 2 + 2 * PAIRS_MAX;
        for (int i = 0; i < PAIRS_MAX; i++) {
            fds[2 + 2 * i] = (struct pollfd){.fd = proxy->pairs[i].near_fd, .events = POLLIN};
            int far_fd = proxy->pairs[i].is_held ? -1 : proxy->pairs[i].far_fd;
            fds[3 + 2 * i] = (struct pollfd){.fd = far_fd, .events = POLLIN};
        }
        if (poll(fds, count, -1) < 0 && errno != EINTR)
            abort();
        char order = '\0';
        if (fds[0].revents != 0 && read(proxy->wake[0], &order, 1) == 1 && order == END)
            return NULL;
        if (order == CUT || order == MEND)
            change_link(proxy, order == CUT);
        for (int i = 0; order == RELEASE && i < PAIRS_MAX; i++)
            proxy->pairs[i].is_held = false;
        if (proxy->is_cut)
            continue;
        for (int i = 0; i < PAIRS_MAX; i++) {
            struct pair *pair = &proxy->pairs[i];
            if (pair->far_fd >= 0 && fds[3 + 2 * i].revents != 0)
                inward(pair);
            if (pair->near_fd >= 0 && fds[2 + 2 * i].revents != 0)
                outward(proxy, pair);
        }
        if (fds[1].revents != 0)
            accept_one(proxy);
    }
}

struct proxy *proxy_new(const struct cluster *cluster)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);
    struct sockaddr_un address;
    if (proxy == NULL)
        return NULL;
    for (int i = 0; i < PAIRS_MAX; i++)
        proxy->pairs[i].near_fd = proxy->pairs[i].far_fd = -1;
    snprintf(proxy->target, sizeof proxy->target, "%s", cluster->directory);
    snprintf(proxy->directory, sizeof proxy->directory, "%s/proxy", cluster->directory);
    proxy->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (proxy->listener < 0 || mkdir(proxy->directory, 0755) != 0 ||
        !address_of(proxy->directory, &address) ||
        bind(proxy->listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(proxy->listener, 16) != 0 || pipe(proxy->wake) != 0 ||
        pthread_create(&proxy->thread, NULL, run, proxy) != 0) {
        free(proxy);
        return NULL;
    }
    return proxy;
}

static bool order(struct proxy *proxy, char what)
{
    return write(proxy->wake[1], &what, 1) == 1;
}

void proxy_cut(struct proxy *proxy)
{
    (void)order(proxy, CUT);
}

void proxy_mend(struct proxy *proxy)
{
    (void)order(proxy, MEND);
}

void proxy_release(struct proxy *proxy)
{
    (void)order(proxy, RELEASE);
}

void proxy_free(struct proxy *proxy)
{
    if (order(proxy, END))
        pthread_join(proxy->thread, NULL);
    for (int i = 0; i < PAIRS_MAX; i++)
        close_pair(&proxy->pairs[i]);
    close(proxy->listener);
    close(proxy->wake[0]);
    close(proxy->wake[1]);
    free(proxy);
}

const char *proxy_url(const struct proxy *proxy, const char *database)
{
    static char url[256];
    snprintf(url, sizeof url, "postgres:host=%s user=holdfast dbname=%s", proxy->directory,
             database);
    return url;
}

void proxy_arm(struct proxy *proxy, enum proxy_deed deed)
{
    atomic_store(&proxy->deed, deed);
}

int proxy_deeds(struct proxy *proxy)
{
    return atomic_load(&proxy->deeds);
}
