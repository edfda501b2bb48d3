/*
 * reload_report.h -- what a reload changes, as it is told to operators.
 */
#ifndef DAEMON_RELOAD_REPORT_H
#define DAEMON_RELOAD_REPORT_H

#include "admin/admin.h"
#include "daemon/config.h"
#include "file/export_table.h"

struct reload_report {
    struct admin_reload told;     /* points to what follows */
    char why[1024];               /* of a refusal */
    struct admin_change *changes; /* owned, with their texts */
    uint32_t change_max;
    const char *needs_restart[CONFIG_OPTION_MAX];
};

/* Nothing has changed, and `why` is about to say why. */
void reload_report_begin(struct reload_report *report);
void reload_report_done(struct reload_report *report);

/* All that differs; exports by their tables, NULL: none are served. False: no memory. */
__attribute__((warn_unused_result)) bool
reload_report_compare(struct reload_report *report, const struct config *now,
                      const struct config *fresh, const struct export_table *exports_now,
                      const struct export_table *exports);

#endif
