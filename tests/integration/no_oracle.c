/*
 * no_oracle.c -- stands in for oracle_client and oracle_locker where rpcgen or libtirpc is missing,
 * and says so.
 */
#include <stdio.h>

int main(void)
{
    puts("SKIP: rpcgen, a protocol file of rpcsvc or libtirpc was missing at build time; "
         "install rpcsvc-proto and libtirpc-dev");
    return 77;
}
