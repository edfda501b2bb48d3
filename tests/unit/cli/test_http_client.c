/*
 * test_http_client.c -- shows that a change is waited for as long as the server replies to others,
 * and no longer.
 *
 * http_client.c is built with a patience of one second. The server is a process of this test: each
 * connection has a child, which answers GET at once, until `deaf` is written to, and a change after
 * three seconds.
 */
#include "cli/http_client.h"
#include "unit/test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHANGE_S = 3 };

static char root[] = "/tmp/holdfast-test-http-XXXXXX";
static char path[64];
static pid_t server;
static volatile bool *is_deaf; /* shared with it */

/* What the arguments say, in the place of arguments.c. */
const char *arguments_value(const struct arguments *arguments, const char *name)
{
    return arguments != NULL && strcmp(name, "control") == 0 ? path : NULL;
}

bool arguments_read(const struct command *command, int argc, char **argv, struct arguments *ret,
                    int *ret_exit_code)
{
    *ret = (struct arguments){.command = command};
    *ret_exit_code = argc > 0 && argv != NULL ? EXIT_OK : EXIT_USAGE;
    return *ret_exit_code == EXIT_OK;
}

int arguments_finish(void)
{
    return EXIT_OK;
}

static void serve(int fd)
{
    static const char reply[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    char request[4096];
    ssize_t len = read(fd, request, sizeof request);
    bool is_change = len > 0 && request[0] != 'G';
    if (is_change)
        (void)nanosleep(&(struct timespec){.tv_sec = CHANGE_S}, NULL);
    while (*is_deaf)
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (len > 0 && write(fd, reply, sizeof reply - 1) < 0)
        _exit(1);
    _exit(0);
}

static void run_server(int listener)
{
    (void)signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fork() == 0)
            serve(fd);
        (void)close(fd);
    }
}

TEST_FIXTURE(set_up)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_non_null(mkdtemp(root));
    (void)snprintf(path, sizeof path, "%s/control.sock", root);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    is_deaf =
        mmap(NULL, sizeof *is_deaf, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(is_deaf != MAP_FAILED);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 16), 0);
    server = fork();
    if (server == 0) {
        (void)setpgid(0, 0);
        run_server(listener);
    }
    (void)setpgid(server, server);
    assert_int_equal(close(listener), 0);
}

TEST_FIXTURE(tear_down)
{
    *is_deaf = false;
    assert_int_equal(kill(-server, SIGKILL), 0);
    assert_int_equal(waitpid(server, NULL, 0), server);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(root), 0);
}

static int change(void)
{
    static const struct command command = {.name = "release"};
    struct arguments arguments = {.command = &command};
    struct http_client *http = http_client_find(&arguments);
    assert_non_null(http);
    struct http_client_reply reply;
    int exit_code = http_client_ask(http, "DELETE", "/api/v1/clients/c1", &reply);
    assert_true(exit_code != EXIT_OK || reply.status == 200);
    http_client_reply_done(&reply);
    http_client_free(http);
    return exit_code;
}

TEST(test_http_client__a_change_may_take_longer_than_a_read)
{
    assert_true(CHANGE_S > 2 * HTTP_CLIENT_PATIENCE_S);
    assert_int_equal(change(), EXIT_OK);
}

TEST(test_http_client__a_server_that_is_deaf_is_not_waited_for)
{
    *is_deaf = true;
    assert_int_equal(change(), EXIT_UNREACHABLE);
}

TEST_MAIN(NULL, NULL, set_up, tear_down)
