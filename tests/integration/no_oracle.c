/*
 * no_oracle.c -- stands in for oracle_client where rpcgen or libtirpc is missing, and says so.
 */
#include <stdio.h>

int main(void)
{
    puts("SKIP oracle_client: rpcgen, rpcsvc/sm_inter.x or libtirpc was missing at build time; "
         "install rpcsvc-proto and libtirpc-dev");
    return 77;
}
