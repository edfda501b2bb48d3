/*
 * statd_line.h -- a registration as rpc.statd keeps it: a line in the file of the watched host.
 *
 *   0100007f 000186b5 00000003 00000010 000102030405060708090a0b0c0d0e0f 10.77.0.11 server
 *   address  program  version  procedure priv                            mon_name   my_name
 *
 * The address is whose registration it is, always 127.0.0.1: four bytes in network order, printed
 * as a number of this machine.
 */
#ifndef DAEMON_STATD_LINE_H
#define DAEMON_STATD_LINE_H

#include "base/text.h"
#include "store/record.h"

/* Two names, a priv, four numbers, a newline and a NUL. */
#define STATD_LINE_MAX (2 * RECORD_NAME_MAX + 2 * RECORD_PRIV_LEN + 48)

/* Fills those fields of *ret that are in the line, as views into it; the others are left alone.
 * False: not such a line. */
bool statd_line_get(struct bytes line, struct record_registrant *ret);

/* False: the line cannot say it: a name with blanks or none, or an address other than IPv4's. */
bool statd_line_put(char ret[static STATD_LINE_MAX], const struct record_registrant *record);

#endif
