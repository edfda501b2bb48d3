/*
 * reliance.h -- who relies on which bytes, as the clients themselves know it, and whether two of
 * them ever do so in conflict (P2).
 *
 * An owner relies on a range from the moment at which GRANTED reaches it until it sends UNLOCK,
 * whatever happens to the server meanwhile. Nothing of this comes from the server or its store.
 * After a restart every range has to be reclaimed once; that changes nothing about who relies on
 * it.
 */
#ifndef INTEGRATION_RELIANCE_H
#define INTEGRATION_RELIANCE_H

#include <stdbool.h>
#include <stdint.h>

#define RELIANCE_CELLS      2048 /* bytes of a file that may be locked */
#define RELIANCE_RANGES_MAX 8    /* of one owner */
#define RELIANCE_NOBODY     UINT32_MAX

/* Both ends are part of it. */
struct reliance_range {
    uint32_t file, first, last;
    bool exclusive;
};

enum reliance_reclaim { RELIANCE_IS_RECLAIMED, RELIANCE_MUST_RECLAIM, RELIANCE_IS_ASKED };

struct reliance_held {
    struct reliance_range range;
    enum reliance_reclaim reclaim;
};

struct reliance;

/* NULL: no memory. */
struct reliance *reliance_new(uint32_t owners, uint32_t files);
void reliance_free(struct reliance *reliance);

/* The owner relies on it from now on; it has nothing in there so far, and room for one more. The
   owner of something that conflicts with it, or RELIANCE_NOBODY. */
uint32_t reliance_take(struct reliance *reliance, uint32_t owner,
                       const struct reliance_range *range);
/* It does not any more, as far as it did; the rest of what it has stays. */
void reliance_drop(struct reliance *reliance, uint32_t owner, const struct reliance_range *range);

uint32_t reliance_count(const struct reliance *reliance, uint32_t owner);
const struct reliance_held *reliance_at(const struct reliance *reliance, uint32_t owner,
                                        uint32_t index);
/* Some byte, or every byte, of the range. */
bool reliance_meets(const struct reliance *reliance, uint32_t owner,
                    const struct reliance_range *range);
bool reliance_covers(const struct reliance *reliance, uint32_t owner,
                     const struct reliance_range *range);

/* The server has restarted and everything must be reclaimed; or, `is_needed` false, nothing. */
void reliance_restart(struct reliance *reliance, uint32_t owner, bool is_needed);
/* The next one to reclaim, which counts as asked from now on; false: none. */
bool reliance_ask(struct reliance *reliance, uint32_t owner, struct reliance_range *ret);
/* It was granted. */
void reliance_reclaimed(struct reliance *reliance, uint32_t owner,
                        const struct reliance_range *range);
/* Does the owner have any range in that state? */
bool reliance_has(const struct reliance *reliance, uint32_t owner, enum reliance_reclaim reclaim);

#endif
