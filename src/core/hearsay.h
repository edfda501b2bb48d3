/*
 * hearsay.h -- notices that wait until the resolver has said whose name it is (D7).
 *
 * SM_NOTIFY carries a name, and nobody but the host of that name may announce its reboot. A lock
 * client is known here by name and address (reboot.h), an address speaks for itself; of any other
 * name the resolver says which addresses it has. It is asked off the loop, and the notice is kept
 * here meanwhile, in memory; its answer waits (withheld.h). Then it is believed and relayed, or
 * refused and logged; if the resolver knows nothing of the name, its sender is to say it again.
 *
 *               hearsay_add            hearsay_next_lookup          hearsay_resolved
 *   (nothing) -------------> WAITING ---------------------> ASKING ------------------> (nothing)
 *
 * Notices take turns by sender: one name of each address is asked at a time, and at most 50 per
 * second altogether, after a burst of as many. An address has HEARSAY_SHARE of the HEARSAY_MAX
 * places. So a stranger keeps nobody else's notice waiting for long, nor the resolver busy.
 */
#ifndef CORE_HEARSAY_H
#define CORE_HEARSAY_H

#include "base/list.h"
#include "base/table.h"
#include "core/message.h"

struct core;
struct core_lookup;

#define HEARSAY_MAX   1024
#define HEARSAY_SHARE 16

struct hearsay {
    uint32_t mon_name; /* slot in core->names, with a reference */
    uint32_t quota;    /* of its sender, with a reference */
    uint32_t state;
    bool is_asking;
    bool is_minor;     /* its sender is known by another name: a refusal is no event */
    struct list queue; /* on `ready`, or on its sender's list while another one of it is */
};

struct hearsays {
    struct table table; /* of struct hearsay */
    struct list ready;  /* to be asked, one of each sender */
    uint64_t paced_ns;  /* when the names that were asked would have been, one by one */
};

__attribute__((warn_unused_result)) int hearsay_init(struct core *core, const uint32_t slots[]);
void hearsay_done(struct core *core);

/* Keeps this notice of a name that is no address, or this state for one that is kept. False: no
 * place, or no bytes. */
bool hearsay_add(struct core *core, const struct address *from, struct bytes mon_name,
                 uint32_t state, bool is_minor);

/* The notice of this name from this address that waits here; SLOT_NONE: there is none. */
uint32_t hearsay_find(const struct core *core, const struct address *from, struct bytes mon_name);
struct bytes hearsay_name(const struct core *core, uint32_t slot);

bool hearsay_next_lookup(struct core *core, struct core_lookup *ret);
uint64_t hearsay_deadline_ns(const struct core *core);
/* The name has these addresses; none: it is unknown, or nobody could say. */
void hearsay_resolved(struct core *core, uint64_t handle, const struct address *addresses,
                      uint32_t address_count);

void hearsay_check(const struct core *core);

#endif
