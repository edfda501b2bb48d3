/*
 * privilege.h -- switches to the user of `--user` once the ports are bound (R-SEC-10).
 *
 * In this order: privilege_resolve before anything is opened, so that a wrong name costs nothing;
 * privilege_hand_over for the store's directory, as root; privilege_drop when the ports are bound.
 * The store is opened after the drop, so that it can be opened again without root.
 */
#ifndef DAEMON_PRIVILEGE_H
#define DAEMON_PRIVILEGE_H

#include "base/text.h"

#include <sys/types.h>

struct privilege {
    bool is_needed; /* false: there is nothing to drop */
    uid_t uid;
    gid_t gid;
    bool has_group; /* --tracker-group: kept as a second group, so that the socket can be its */
    gid_t group;
};

/*
 * `user` is a name, or NULL for "stay who we are". 0, or a negative errno with a sentence in
 * *ret_why: the user does not exist, or we are not root and cannot switch.
 */
__attribute__((warn_unused_result)) int privilege_resolve(const char *user, struct privilege *ret,
                                                          struct text *ret_why);

/* The same of --tracker-group, a name or a number; after the user. NULL: there is none. */
__attribute__((warn_unused_result)) int
privilege_resolve_group(const char *group, struct privilege *privilege, struct text *ret_why);

/*
 * Makes the directory the user's: creates it with mode 0700 if it is missing (not its parents), and
 * gives it away with the files in it if it is root's and nobody else may write there. One that
 * already belongs to the user is left alone. 0, or a negative errno with a sentence in *ret_why.
 */
__attribute__((warn_unused_result)) int
privilege_hand_over(const struct privilege *privilege, const char *directory, struct text *ret_why);

/*
 * Switches to the user, for good and in every thread; call while there is only one. What stays is
 * the right to bind ports below 1024, for calls to clients. 0, or a negative errno with a sentence.
 */
__attribute__((warn_unused_result)) int privilege_drop(const struct privilege *privilege,
                                                       struct text *ret_why);

#endif
