/*
 * content.c -- file contents in blocks; see content.h.
 *
 * Always true: a block that is not NULL may hold zeros, but bytes behind the length are zeros, so
 * that a file that grows again reads as it would on a disk.
 */
#include "content.h"

#include <stdlib.h>
#include <string.h>

void content_free(struct content *content)
{
    for (uint32_t i = 0; i < content->block_count; i++)
        free(content->blocks[i]);
    free(content->blocks);
    *content = (struct content){0};
}

static uint8_t *make_block(void)
{
    uint8_t *block = calloc(1, CONTENT_BLOCK_LEN);
    if (!block)
        abort();
    return block;
}

static void make_room(struct content *content, uint64_t len)
{
    uint32_t count = (uint32_t)((len + CONTENT_BLOCK_LEN - 1) / CONTENT_BLOCK_LEN);
    if (count <= content->block_count)
        return;
    uint8_t **grown = realloc(content->blocks, count * sizeof(*grown));
    if (!grown)
        abort();
    memset(grown + content->block_count, 0, (count - content->block_count) * sizeof(*grown));
    content->blocks = grown;
    content->block_count = count;
}

void content_copy(const struct content *content, struct content *ret)
{
    *ret = (struct content){0};
    make_room(ret, (uint64_t)content->block_count * CONTENT_BLOCK_LEN);
    ret->len = content->len;
    for (uint32_t i = 0; i < content->block_count; i++)
        if (content->blocks[i]) {
            ret->blocks[i] = make_block();
            memcpy(ret->blocks[i], content->blocks[i], CONTENT_BLOCK_LEN);
        }
}

void content_resize(struct content *content, uint64_t len)
{
    if (len < content->len) /* what is cut off must not come back */
        content_write(content, len, NULL, content->len - len);
    make_room(content, len);
    content->len = len;
}

void content_write(struct content *content, uint64_t offset, const uint8_t *data, uint64_t len)
{
    make_room(content, offset + len);
    if (offset + len > content->len)
        content->len = offset + len;
    for (uint64_t at = 0; at < len;) {
        uint8_t **block = &content->blocks[(offset + at) / CONTENT_BLOCK_LEN];
        uint64_t begin = (offset + at) % CONTENT_BLOCK_LEN;
        uint64_t part = CONTENT_BLOCK_LEN - begin < len - at ? CONTENT_BLOCK_LEN - begin : len - at;
        if (data && !*block)
            *block = make_block();
        if (data)
            memcpy(*block + begin, data + at, part);
        else if (*block)
            memset(*block + begin, 0, part);
        at += part;
    }
}
