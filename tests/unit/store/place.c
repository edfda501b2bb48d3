/*
 * place.c -- temporary directories and child processes for store tests; see place.h.
 */
#include "place.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void place_init(struct place *place)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == '\0')
        parent = P_tmpdir;
    int len = snprintf(place->base, sizeof place->base, "%s/holdfast-store-XXXXXX", parent);
    assert_true(len > 0 && (size_t)len < sizeof place->base);
    assert_non_null(mkdtemp(place->base));
    (void)snprintf(place->path, sizeof place->path, "%s/store", place->base);
    (void)snprintf(place->url, sizeof place->url, "lmdb:%s", place->path);
}

static void remove_all(const char *path)
{
    DIR *directory = opendir(path);
    if (directory == NULL) {
        (void)unlink(path);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        char inner[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int len = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (len > 0 && (size_t)len < sizeof inner)
            remove_all(inner);
    }
    (void)closedir(directory);
    (void)rmdir(path);
}

void place_done(struct place *place)
{
    remove_all(place->base);
}

void place_fixture(void **state, uint32_t slots)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    place_init(&fixture->place);
    model_init(&fixture->model, slots);
    *state = fixture;
}

int place_fixture_done(void **state)
{
    struct fixture *fixture = *state;
    model_done(&fixture->model);
    place_done(&fixture->place);
    free(fixture);
    return 0;
}

const char *place_file(const struct place *place, const char *name)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", place->path, name);
    return path;
}

bool place_has(const struct place *place, const char *name)
{
    return access(place_file(place, name), F_OK) == 0;
}

void place_write(const struct place *place, const char *name, const void *bytes, size_t len)
{
    int fd = open(place_file(place, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(close(fd), 0);
}

size_t place_read(const struct place *place, const char *name, char *buffer, size_t len)
{
    int fd = open(place_file(place, name), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t got = read(fd, buffer, len);
    assert_true(got >= 0);
    buffer[got] = '\0';
    assert_int_equal(close(fd), 0);
    return (size_t)got;
}

uint64_t place_len(const struct place *place, const char *name)
{
    struct stat status;
    assert_int_equal(stat(place_file(place, name), &status), 0);
    return (uint64_t)status.st_size;
}

void place_set_journal(const char *len)
{
    assert_int_equal(
        len == NULL ? unsetenv("HOLDFAST_JOURNAL_LEN") : setenv("HOLDFAST_JOURNAL_LEN", len, 1), 0);
}

unsigned place_rounds(void)
{
    const char *text = getenv("HOLDFAST_CONTRACT_ROUNDS");
    unsigned long rounds = text == NULL ? 0 : strtoul(text, NULL, 10);
    return rounds == 0 ? 10 : (unsigned)rounds;
}

struct store *place_open(const char *url, bool sync_process)
{
    struct store_failure failure = {0};
    struct store *store =
        store_open(url, &(struct store_options){.sync_process = sync_process}, &failure);
    if (store == NULL)
        fail_msg("%s does not open: %s", url, failure.text);
    return store;
}

void place_refused(const char *url, bool sync_process, int exit_code, const char *word,
                   const char *other_word)
{
    struct store_failure failure = {0};
    struct store *store =
        store_open(url, &(struct store_options){.sync_process = sync_process}, &failure);
    if (store != NULL) {
        store_close(store);
        fail_msg("%s opens", url);
    }
    if (failure.exit_code != exit_code || strstr(failure.text, word) == NULL ||
        strstr(failure.text, other_word) == NULL)
        fail_msg("exit code %d, \"%s\" and \"%s\" expected; got %d: %s", exit_code, word,
                 other_word, failure.exit_code, failure.text);
    /* Every refusal says what to do next, after a semicolon. */
    assert_non_null(strstr(failure.text, "; "));
}

int place_in_child(int (*function)(void *context), void *context)
{
    int status = 0;
    (void)fflush(NULL); /* what is buffered must not come out twice */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(function(context));
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
