/*
 * files_key.h -- the key of the file handles, kept in the store's directory.
 */
#ifndef DAEMON_FILES_KEY_H
#define DAEMON_FILES_KEY_H

#include "base/mac.h"
#include "base/text.h"

/*
 * The key, made durable before it is used if there is none yet; of a store in memory another one
 * each time. 0 or -errno with a sentence in *ret_why.
 */
__attribute__((warn_unused_result)) int files_key_get(const char *store_url, struct mac_key *ret,
                                                      struct text *ret_why);

/* Where it is, and what else must outlive the process; NULL: the store is in memory. */
const char *files_key_directory(const char *store_url);

#endif
