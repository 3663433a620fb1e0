#ifndef TONARI_FAR_H
#define TONARI_FAR_H

/* Far memory by its name, for programs in C and others. docs/guide/far-memory.md says what it is.
 *
 * Under `tonari far` these take from the arena whose pages may be with a server; anywhere else they are malloc and
 * free, and hints do nothing, so that a program may always call them. Any thread may. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a program is about to do with a range. */
enum tonari_far_hint {
  TONARI_FAR_DISCARD = 0,    /* its bytes may be forgotten: zeros from now on; whole pages of 4096 bytes only */
  TONARI_FAR_WILL_NEED = 3,  /* it is used soon: bring it */
  TONARI_FAR_DONE_WITH = 4,  /* it is not used soon: take it away first */
  TONARI_FAR_SEQUENTIAL = 5, /* from now on it is gone through from one end to the other */
  TONARI_FAR_RANDOM = 6      /* from now on it is read here and there: bring single pages */
};

/* Far memory of `bytes`, however few: whole pages. Where there is none, what malloc gives. Null: no memory. To be given
 * back to tonari_far_free or free. */
void* tonari_far_malloc(size_t bytes);
void tonari_far_free(void* start);

/* 0; or EINVAL: no such hint, or a discard of what is not whole pages; ENOMEM: some of the range is no far memory, for
 * which nothing was done. */
int tonari_far_advise(void* start, size_t bytes, int hint);

/* 1 in a program that has far memory. */
int tonari_far_available(void);

/* What far memory has done for this process so far. */
struct tonari_far_statistics {
  uint64_t in_use_bytes;      /* allocated */
  uint64_t local_bytes;       /* in this host's memory for the process: in place or in buffers */
  uint64_t limit_bytes;       /* that those may be, now */
  uint64_t faults;            /* touches of what was not in place */
  uint64_t fault_ns;          /* that answering them took, all together */
  uint64_t blocks_read_ahead; /* of 2 MiB */
  uint64_t read_ahead_hits;   /* of these, those that were touched then */
  uint64_t bytes_in;          /* from servers */
  uint64_t bytes_out;         /* to servers */
};

/* Writes the first `bytes` of them, which is sizeof(struct tonari_far_statistics): a program may be older than what it
 * runs under, or newer, whose rest is 0 then. All are 0 where there is no far memory. Takes as long as a fault. 0; or
 * EINVAL: `into` is null. */
int tonari_far_get_statistics(struct tonari_far_statistics* into, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
