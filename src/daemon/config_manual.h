/*
 * config_manual.h -- the option table as manual pages, in mdoc(7): holdfastd(8) with the options of
 * the command line, holdfast.conf(5) with the keys of the configuration file.
 */
#ifndef DAEMON_CONFIG_MANUAL_H
#define DAEMON_CONFIG_MANUAL_H

#include <stdio.h>

void config_manual_server(FILE *out);
void config_manual_file(FILE *out);

#endif
