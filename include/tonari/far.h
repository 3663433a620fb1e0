#ifndef TONARI_FAR_H
#define TONARI_FAR_H

/* Far memory by name, for programs in C and other languages. docs/guide/far-memory.md explains far memory.
 *
 * Under `tonari far` these functions allocate from the arena whose pages may be stored on a server. Without it they are
 * malloc and free, and hints do nothing, so that a program may always call them. Threads: any. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a program is going to use a range. */
enum tonari_far_hint {
  TONARI_FAR_DISCARD = 0,    /* its contents may be dropped: zeros from now on; whole pages of 4096 bytes only */
  TONARI_FAR_WILL_NEED = 3,  /* it is used soon: fetch it; the call does not wait for that */
  TONARI_FAR_DONE_WITH = 4,  /* it is not used soon: evict it first; only blocks of 2 MiB that are all in the range */
  TONARI_FAR_SEQUENTIAL = 5, /* from now on it is read from one end to the other: ends RANDOM */
  TONARI_FAR_RANDOM = 6      /* from now on it is read at random: fetch single pages */
};

/* Allocates far memory of any size, in whole pages of 4096 bytes, aligned to a page. Without far memory, or room in
 * it, calls malloc. Returns null if there is no memory. Free the result with tonari_far_free or free, which do nothing
 * for null. */
void* tonari_far_malloc(size_t bytes);
void tonari_far_free(void* start);

/* Returns 0; EINVAL: no such hint, or a discard of a range that is not whole pages; ENOMEM: a part of the range is not
 * far memory, and nothing was done for that part. */
int tonari_far_advise(void* start, size_t bytes, int hint);

/* Returns 1 in a program that has far memory, else 0. */
int tonari_far_available(void);

/* Counters of far memory for this process. */
struct tonari_far_statistics {
  uint64_t in_use_bytes;      /* allocated */
  uint64_t local_bytes;       /* in memory of this host: in place or in buffers */
  uint64_t limit_bytes;       /* the present limit of local_bytes */
  uint64_t faults;            /* touches of pages that were not in place */
  uint64_t fault_ns;          /* total time that the keeper spent on them */
  uint64_t blocks_read_ahead; /* blocks of 2 MiB */
  uint64_t read_ahead_hits;   /* the number of these that were touched later */
  uint64_t bytes_in;          /* received from servers */
  uint64_t bytes_out;         /* sent to servers */
  uint64_t wait_ns;           /* total time that threads waited for pages, without the wake-ups */
  uint64_t bytes_in_vain;     /* received for read-ahead that was dropped unused */
};

/* Writes the counters to `into`. `bytes` is sizeof(struct tonari_far_statistics): the program may be older than the
 * runtime, or newer, and then the rest is 0. All counters are 0 without far memory. Takes as long as a fault. Returns
 * 0; EINVAL: `into` is null. */
int tonari_far_get_statistics(struct tonari_far_statistics* into, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
