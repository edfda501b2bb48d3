/*
 * trial.h -- starts a server on a disk image and looks at what it found there.
 *
 * What a server makes of an image depends on the image alone, so each different one is tried once
 * and remembered: most cuts share their images with their neighbours.
 */
#ifndef POWERLOSS_TRIAL_H
#define POWERLOSS_TRIAL_H

#include "history.h"
#include "image.h"

struct trials;

/* `directory`: an existing one to work in. */
struct trials *trial_new(const char *directory, const char *sync);
void trial_free(struct trials *trials);

/* Valid until trial_free. */
const struct history_found *trial_run(struct trials *trials, const struct image *image);
/* How many different images were tried. */
uint32_t trial_count(const struct trials *trials);
/* The log of the last server that was started, and the store it left. */
const char *trial_log(const struct trials *trials);
const char *trial_store(const struct trials *trials);

#endif
