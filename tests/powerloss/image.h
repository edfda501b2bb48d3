/*
 * image.h -- what a disk holds of the store directory after a power cut.
 */
#ifndef POWERLOSS_IMAGE_H
#define POWERLOSS_IMAGE_H

#include "content.h"

#include <stdbool.h>

#define IMAGE_FILES_MAX 16
#define IMAGE_NAME_MAX  40

struct image {
    bool has_directory;
    uint32_t count;
    struct image_file {
        char name[IMAGE_NAME_MAX];
        struct content content;
    } files[IMAGE_FILES_MAX];
};

void image_free(struct image *image);
/* Two images with the same number are the same, for all that this test will ever see. */
uint64_t image_digest(const struct image *image);
/* Writes it below `path`, which must not exist. Zeros become holes: they read the same, and the
 * space that the store reserves by writing them is not what this test asks for. 0 or negative
 * errno. */
int image_write(const struct image *image, const char *path);
/* Gives a file that the image has another content. */
void image_replace(struct image *image, const char *name, const char *text);
bool image_has(const struct image *image, const char *name);

/* NULL when the directory holds exactly the image, or what differs. Valid until the next call. */
const char *image_compare(const struct image *image, const char *path);

#endif
