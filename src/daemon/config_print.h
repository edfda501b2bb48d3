/*
 * config_print.h -- the option table for people: `--help`, and what is in force for
 * `--check-config`.
 */
#ifndef DAEMON_CONFIG_PRINT_H
#define DAEMON_CONFIG_PRINT_H

#include "daemon/config.h"

#include <stdio.h>

void config_print_help(FILE *out);

/* Adds a blank and the value's name: the choices themselves where there are some and the row names
 * no other; nothing for a switch. */
void config_print_argument(struct text *text, const struct config_option *option);
/* A blank and a sentence about an option that may change while the server runs; else nothing. */
const char *config_print_reload(const struct config_option *option);

/* The options in force as a configuration file that would set them, each with its origin. */
void config_print_effective(const struct config *config, FILE *out);

#endif
