// The part of PMIx that a job needs from its launcher, and nothing else: each rank puts its address, all wait for all,
// and each rank gets the others' addresses. Prints one line per rank. With an argument, it then sleeps for so many
// seconds. EXCHANGE_KEY replaces the key under which addresses are put.

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(pmix_status_t status, const char* what) {
  if (status == PMIX_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", what, PMIx_Error_string(status));
  exit(1);
}

static unsigned job_number(const pmix_proc_t* job, const char* key) {
  pmix_value_t* value;
  check(PMIx_Get(job, key, NULL, 0, &value), key);
  const unsigned number = value->data.uint32;
  PMIX_VALUE_RELEASE(value);
  return number;
}

static void address_of(unsigned rank, const char* host, char address[64]) {
  snprintf(address, 64, "rank %u on %s", rank, host);
}

int main(int count, char** arguments) {
  pmix_proc_t me;
  check(PMIx_Init(&me, NULL, 0), "PMIx_Init");
  pmix_proc_t job;
  PMIX_LOAD_PROCID(&job, me.nspace, PMIX_RANK_WILDCARD);
  const unsigned ranks = job_number(&job, PMIX_JOB_SIZE);
  const unsigned neighbours = job_number(&job, PMIX_LOCAL_SIZE);

  const char* const key = getenv("EXCHANGE_KEY") ? getenv("EXCHANGE_KEY") : "exchange.address";
  char host[32] = "";
  gethostname(host, sizeof host - 1);
  char mine[64];
  address_of(me.rank, host, mine);
  pmix_value_t value = {.type = PMIX_STRING, .data.string = mine};
  check(PMIx_Put(PMIX_GLOBAL, key, &value), "PMIx_Put");
  check(PMIx_Commit(), "PMIx_Commit");

  pmix_info_t collect;
  const bool yes = true;
  PMIX_INFO_CONSTRUCT(&collect);
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  check(PMIx_Fence(&job, 1, &collect, 1), "PMIx_Fence");

  unsigned elsewhere = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    pmix_proc_t peer;
    PMIX_LOAD_PROCID(&peer, me.nspace, rank);
    pmix_value_t* theirs;
    check(PMIx_Get(&peer, key, NULL, 0, &theirs), "PMIx_Get");
    char expected[64];
    address_of(rank, host, expected);
    elsewhere += strcmp(theirs->data.string, expected) != 0;
    PMIX_VALUE_RELEASE(theirs);
  }
  printf("rank %u of %u on %s: %u here, %u elsewhere\n", me.rank, ranks, host, neighbours, elsewhere);
  fflush(stdout);
  if (count > 1) sleep((unsigned)atoi(arguments[1]));

  check(PMIx_Fence(&job, 1, NULL, 0), "PMIx_Fence");
  check(PMIx_Finalize(NULL, 0), "PMIx_Finalize");
  return 0;
}
