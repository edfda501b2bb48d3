/*
 * test_main.c -- shows how the `holdfast` command finds its subcommands and the server.
 *
 * The program itself is run: argv[1] is its path. Its copy is put into a directory of its own
 * beside a small script in the server's place, which prints the arguments it was given and ends
 * with a code that nothing else uses.
 */
#include "unit/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SCRIPT_CODE = 23, OUTPUT_MAX = 8192 };

static char root[] = "/tmp/holdfast-test-cli-XXXXXX";
static const char *const directories[] = {"bin", "sbin", "path", NULL};
static char program[128];
static const char *program_given;

static const char *in_root(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    (void)snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void copy_program(const char *from)
{
    char buffer[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    assert_true(in >= 0 && out >= 0);
    ssize_t len;
    while ((len = read(in, buffer, sizeof buffer)) > 0)
        assert_int_equal(write(out, buffer, (size_t)len), len);
    assert_int_equal(len, 0);
    assert_int_equal(close(in), 0);
    assert_int_equal(close(out), 0);
}

/* A server that says where it lies and what it was given. */
static void put_script(const char *place)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s/holdfastd", place);
    FILE *file = fopen(in_root(name), "w");
    assert_non_null(file);
    assert_true(fprintf(file,
                        "#!/bin/sh\necho in %s\nfor word in \"$@\"; do echo \"<$word>\"; done\n"
                        "exit %d\n",
                        place, SCRIPT_CODE) > 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(in_root(name), 0755), 0);
}

static void remove_script(const char *place)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s/holdfastd", place);
    (void)unlink(in_root(name));
}

/* Runs the program with these words; its exit code, and both outputs in one. */
static int run_words(const char *const *words, char *ret_output)
{
    char *argv[10] = {program};
    for (int i = 0; words[i] != NULL; i++)
        argv[i + 1] = strdup(words[i]);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)setenv("PATH", in_root("path"), 1);
        (void)execv(program, argv);
        _exit(99);
    }
    assert_int_equal(close(ends[1]), 0);
    size_t used = 0;
    ssize_t len;
    while ((len = read(ends[0], ret_output + used, OUTPUT_MAX - 1 - used)) > 0)
        used += (size_t)len;
    ret_output[used] = '\0';
    assert_int_equal(close(ends[0]), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    for (int i = 1; argv[i] != NULL; i++)
        free(argv[i]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define RUN(output, ...) run_words((const char *const[]){__VA_ARGS__, NULL}, (output))

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

TEST(test_main__help_and_version)
{
    static const char *const help[] = {"help", "--help", "-h"};
    static const char *const version[] = {"version", "--version"};
    char output[OUTPUT_MAX];
    for (size_t i = 0; i < sizeof help / sizeof help[0]; i++) {
        assert_int_equal(RUN(output, help[i]), 0);
        assert_contains(output, "Usage: holdfast COMMAND");
        assert_contains(output, "\n  serve ");
    }
    for (size_t i = 0; i < sizeof version / sizeof version[0]; i++) {
        assert_int_equal(RUN(output, version[i]), 0);
        assert_string_equal(output, "holdfast " HOLDFAST_VERSION "\n");
    }
}

TEST(test_main__what_is_no_command_is_refused)
{
    char output[OUTPUT_MAX];
    assert_int_equal(RUN(output, NULL), 2);
    assert_contains(output, "Usage: holdfast COMMAND");
    assert_int_equal(RUN(output, "sevre", "--port", "1"), 2);
    assert_contains(output, "holdfast: unknown command \"sevre\"; did you mean serve?\n");
    assert_contains(output, "\n  version ");
    assert_int_equal(RUN(output, "quux"), 2);
    assert_contains(output, "holdfast: unknown command \"quux\"\n");
    assert_int_equal(RUN(output, "version", "now"), 2);
    assert_contains(output, "holdfast version: takes no arguments: \"now\"");
}

TEST(test_main__serve_becomes_the_server)
{
    char output[OUTPUT_MAX];
    put_script("bin");
    put_script("sbin");
    put_script("path");
    assert_int_equal(RUN(output, "serve", "--port", "1 2", "", "--help"), SCRIPT_CODE);
    assert_string_equal(output, "in bin\n<--port>\n<1 2>\n<>\n<--help>\n");
    remove_script("bin");
    assert_int_equal(RUN(output, "serve", "--help"), SCRIPT_CODE);
    assert_string_equal(output, "in sbin\n<--help>\n");
    remove_script("sbin");
    assert_int_equal(RUN(output, "serve"), SCRIPT_CODE);
    assert_string_equal(output, "in path\n");
    remove_script("path");
    assert_int_equal(RUN(output, "serve"), 2);
    assert_contains(output, "holdfast serve: cannot run holdfastd: No such file or directory");
    assert_contains(output, "../sbin");
}

TEST_FIXTURE(set_up)
{
    assert_non_null(mkdtemp(root));
    for (int i = 0; directories[i] != NULL; i++)
        assert_int_equal(mkdir(in_root(directories[i]), 0700), 0);
    (void)snprintf(program, sizeof program, "%s/bin/holdfast", root);
    copy_program(program_given);
}

TEST_FIXTURE(tear_down)
{
    (void)unlink(program);
    for (int i = 0; directories[i] != NULL; i++) {
        remove_script(directories[i]);
        (void)rmdir(in_root(directories[i]));
    }
    assert_int_equal(rmdir(root), 0);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: test_main PATH-OF-HOLDFAST\n");
        return 2;
    }
    program_given = argv[1];
    return test_run(NULL, NULL, set_up, tear_down);
}
