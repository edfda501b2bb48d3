/*
 * store_file.c -- see store_file.h.
 */
#include "daemon/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct store_file *file, int error)
{
    free(file->path);
    free(file->temporary);
    *file = (struct store_file){0};
    return error == 0 ? EIO : error;
}

/* What a link leads to is replaced, not the link. */
static int open_beside(struct store_file *file, const char *path)
{
    file->path = realpath(path, NULL);
    if (file->path == NULL && errno == ENOENT)
        file->path = strdup(path);
    if (file->path == NULL || asprintf(&file->temporary, "%s.XXXXXX", file->path) < 0) {
        int error = errno;
        file->temporary = NULL;
        return fail(file, error);
    }
    int fd = mkostemp(file->temporary, O_CLOEXEC);
    if (fd < 0)
        return fail(file, errno);
    file->out = fdopen(fd, "w");
    if (file->out != NULL)
        return 0;
    int error = errno;
    (void)close(fd);
    (void)unlink(file->temporary);
    return fail(file, error);
}

int store_file_open(struct store_file *ret, const char *path)
{
    struct stat status;
    *ret = (struct store_file){.out = stdout};
    if (path == NULL)
        return 0;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode))
        return open_beside(ret, path);
    ret->out = fopen(path, "we");
    return ret->out != NULL ? 0 : errno;
}

/* The name is durable when its directory is. */
static int sync_directory(const struct store_file *file)
{
    char *copy = strdup(file->path);
    if (copy == NULL)
        return ENOMEM;
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(copy);
    if (fd < 0)
        return errno;
    int error = fsync(fd) == 0 ? 0 : errno;
    (void)close(fd);
    return error;
}

int store_file_keep(struct store_file *file)
{
    errno = 0;
    bool is_good = fflush(file->out) == 0 && !ferror(file->out);
    int error = is_good ? 0 : errno == 0 ? EIO : errno;
    if (error == 0 && file->temporary != NULL && fsync(fileno(file->out)) != 0)
        error = errno;
    if (error != 0) {
        store_file_drop(file);
        return error;
    }
    if (file->out != stdout && fclose(file->out) != 0)
        error = errno;
    file->out = NULL;
    if (error == 0 && file->temporary != NULL && rename(file->temporary, file->path) != 0)
        error = errno;
    if (error != 0 && file->temporary != NULL)
        (void)unlink(file->temporary);
    if (error == 0 && file->temporary != NULL)
        error = -sync_directory(file);
    (void)fail(file, 0); /* frees the names */
    return error;
}

void store_file_drop(struct store_file *file)
{
    if (file->out != NULL && file->out != stdout)
        (void)fclose(file->out);
    if (file->temporary != NULL)
        (void)unlink(file->temporary);
    (void)fail(file, 0);
}
