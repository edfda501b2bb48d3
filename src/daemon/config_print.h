/*
 * config_print.h -- the option table for people: `--help`, and what is in force for
 * `--check-config`.
 */
#ifndef DAEMON_CONFIG_PRINT_H
#define DAEMON_CONFIG_PRINT_H

#include "daemon/config.h"

#include <stdio.h>

void config_print_help(FILE *out);
/* The manual page holdfastd(8), in mdoc. */
void config_print_manual(FILE *out);

/* The options in force as a configuration file that would set them, each with its origin. */
void config_print_effective(const struct config *config, FILE *out);

#endif
