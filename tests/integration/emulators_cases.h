/*
 * emulators_cases.h -- what the test of the emulators consists of, beside the common cycle.
 */
#ifndef INTEGRATION_EMULATORS_CASES_H
#define INTEGRATION_EMULATORS_CASES_H

/* emulators_grants.c: callbacks answered in every way, polling, places in the queue. */
void emulators_grants_run(void);
/* emulators_identity.c: who is who, and who is not. */
void emulators_identity_run(void);

#endif
