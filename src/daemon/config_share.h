/*
 * config_share.h -- the values of --share: named sets of files, known by how their handles begin
 * (D14).
 */
#ifndef DAEMON_CONFIG_SHARE_H
#define DAEMON_CONFIG_SHARE_H

#include "base/text.h"
#include "core/core.h"

#define CONFIG_SHARE_MAX        (FILE_SETS_MAX - 1) /* beside "default" */
#define CONFIG_SHARE_NAME_MAX   63
#define CONFIG_SHARE_PREFIX_MAX 64 /* bytes: no handle is longer */

struct config_share {
    char name[CONFIG_SHARE_NAME_MAX + 1];
    uint32_t prefix_len; /* at least 1 */
    uint8_t prefix[CONFIG_SHARE_PREFIX_MAX];
};

struct config_shares {
    uint32_t count;
    struct config_share at[CONFIG_SHARE_MAX];
};

/* Adds NAME=HEXPREFIX. 0, or -EINVAL with the cause and what is allowed in *ret_why; nothing is
 * then added. */
__attribute__((warn_unused_result)) int config_share_parse(struct config_shares *shares,
                                                           const char *value, struct text *ret_why);
/* In the form that config_share_parse reads. */
void config_share_add_text(struct text *text, const struct config_share *share);

/* For the core: "default" first. Views into *shares, FILE_SETS_MAX at most. Returns the count. */
uint32_t config_share_list(const struct config_shares *shares, struct file_set *ret);

#endif
