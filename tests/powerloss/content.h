/*
 * content.h -- the bytes of a file in memory, in blocks, where blocks of zeros take no room.
 */
#ifndef POWERLOSS_CONTENT_H
#define POWERLOSS_CONTENT_H

#include <stdint.h>

enum { CONTENT_BLOCK_LEN = 4096 };

struct content {
    uint64_t len;
    uint32_t block_count;
    uint8_t **blocks; /* owned, each as well; NULL: zeros */
};

void content_free(struct content *content);
void content_copy(const struct content *content, struct content *ret);
void content_resize(struct content *content, uint64_t len);
/* `data` NULL: zeros. */
void content_write(struct content *content, uint64_t offset, const uint8_t *data, uint64_t len);

#endif
