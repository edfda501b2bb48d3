/*
 * bad_input_nlm.h -- the part of bad_input.c that speaks NLM.
 */
#ifndef INTEGRATION_BAD_INPUT_NLM_H
#define INTEGRATION_BAD_INPUT_NLM_H

#include "talk.h"

/* A lock that must survive everything; then the steps, each after which it is still held. */
void bad_input_nlm_begin(struct talk *talk);
void bad_input_nlm_demand_witness(struct talk *talk, const char *what);

void bad_input_nlm_cut_bodies(struct talk *talk);
void bad_input_nlm_unknown_calls(struct talk *talk);
void bad_input_nlm_bad_values(struct talk *talk);
void bad_input_nlm_statuses(struct talk *talk);
void bad_input_nlm_lenient(struct talk *talk);
void bad_input_nlm_strangers(struct talk *talk);
/* One call with a few bytes changed; LOCK and SHARE only with handles that nobody has. */
void bad_input_nlm_damaged(struct talk *talk, uint64_t *seed, struct packet *ret);

#endif
