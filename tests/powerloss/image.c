/*
 * image.c -- disk images: their digest, written to a real directory, compared with one; see
 * image.h.
 */
#include "image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void image_free(struct image *image)
{
    for (uint32_t i = 0; i < image->count; i++)
        content_free(&image->files[i].content);
    *image = (struct image){0};
}

static bool is_zero(const uint8_t *block)
{
    return !block || (block[0] == 0 && memcmp(block, block + 1, CONTENT_BLOCK_LEN - 1) == 0);
}

static uint64_t mix(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return digest ^ digest >> 29;
}

static uint64_t mix_bytes(uint64_t digest, const void *bytes, size_t len)
{
    for (size_t at = 0; at < len; at += 8) {
        uint64_t word = 0;
        memcpy(&word, (const uint8_t *)bytes + at, len - at < 8 ? len - at : 8);
        digest = mix(digest, word);
    }
    return digest;
}

static uint64_t digest_file(const struct image_file *file)
{
    uint64_t digest = mix_bytes(1, file->name, strlen(file->name));
    digest = mix(digest, file->content.len);
    for (uint32_t i = 0; i < file->content.block_count; i++)
        if (!is_zero(file->content.blocks[i]))
            digest = mix_bytes(mix(digest, i), file->content.blocks[i], CONTENT_BLOCK_LEN);
    return digest;
}

uint64_t image_digest(const struct image *image)
{
    uint64_t digest = image->has_directory;
    for (uint32_t i = 0; i < image->count; i++)
        digest += digest_file(&image->files[i]); /* whatever the order of the names */
    return digest;
}

static int write_file(const struct image_file *file, const char *path)
{
    const struct content *content = &file->content;
    int code = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    for (uint32_t i = 0; i < content->block_count && code == 0; i++) {
        if (is_zero(content->blocks[i]))
            continue;
        ssize_t n = pwrite(fd, content->blocks[i], CONTENT_BLOCK_LEN, (off_t)i * CONTENT_BLOCK_LEN);
        if (n != CONTENT_BLOCK_LEN)
            code = n < 0 ? -errno : -ENOSPC;
    }
    if (code == 0 && ftruncate(fd, (off_t)content->len) != 0)
        code = -errno;
    close(fd);
    return code;
}

int image_write(const struct image *image, const char *path)
{
    int code = 0;
    if (!image->has_directory)
        return 0;
    if (mkdir(path, 0700) != 0)
        return -errno;
    for (uint32_t i = 0; i < image->count && code == 0; i++) {
        char name[512];
        snprintf(name, sizeof(name), "%s/%s", path, image->files[i].name);
        code = write_file(&image->files[i], name);
    }
    return code;
}

enum { INTERRUPTED_MAX = 1024 * 1024 };

/* True when the file holds exactly the content. A kill may end a long write of zeros in its middle,
 * before it gets onto the tape: so much may follow. */
static bool is_same(const struct content *content, const char *path)
{
    static const uint8_t zeros[CONTENT_BLOCK_LEN];
    uint8_t block[CONTENT_BLOCK_LEN];
    struct stat status = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool same = fd >= 0 && fstat(fd, &status) == 0;
    uint64_t len = (uint64_t)status.st_size;
    same = same && len >= content->len && len - content->len < INTERRUPTED_MAX;
    for (uint64_t at = 0; same && at < len; at += sizeof(block)) {
        const uint8_t *expected =
            at < content->len ? content->blocks[at / CONTENT_BLOCK_LEN] : NULL;
        ssize_t n = pread(fd, block, sizeof(block), (off_t)at);
        same = n > 0 && memcmp(block, expected ? expected : zeros, (size_t)n) == 0;
    }
    if (fd >= 0)
        close(fd);
    return same;
}

const char *image_compare(const struct image *image, const char *path)
{
    static char text[600];
    uint32_t count = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    if (!directory)
        return image->has_directory ? "there is no directory" : NULL;
    closedir(directory);
    for (uint32_t i = 0; i < image->count; i++) {
        char name[512];
        snprintf(name, sizeof(name), "%s/%s", path, image->files[i].name);
        if (!is_same(&image->files[i].content, name)) {
            snprintf(text, sizeof(text), "%s is not what was recorded", name);
            return text;
        }
    }
    return count == image->count ? NULL : "there are files that were not recorded";
}

bool image_has(const struct image *image, const char *name)
{
    for (uint32_t i = 0; i < image->count; i++)
        if (strcmp(image->files[i].name, name) == 0)
            return true;
    return false;
}

void image_replace(struct image *image, const char *name, const char *text)
{
    for (uint32_t i = 0; i < image->count; i++)
        if (strcmp(image->files[i].name, name) == 0) {
            content_resize(&image->files[i].content, 0);
            content_write(&image->files[i].content, 0, (const uint8_t *)text, strlen(text));
        }
}
