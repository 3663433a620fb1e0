#ifndef TONARI_FAR_H
#define TONARI_FAR_H

/* Far memory by its name, for programs in C and others. docs/guide/far-memory.md says what it is.
 *
 * Under `tonari far` these take from the arena whose pages may be with a server; anywhere else they are malloc and
 * free, and hints do nothing, so that a program may always call them. Any thread may. */

#include <stddef.h>

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

#ifdef __cplusplus
}
#endif

#endif
