/* A model of the protocol of guarded data (src/share/guarded/replica.hpp). `make check-model` checks every interleaving
   of RANKS ranks, each of which does OPERATIONS operations of any kind. Readers are invalidated or, with -DUPDATE,
   updated. Data travel in messages or, with -DPUT, are put in place by the rank that gives them; a put takes time, and a
   message follows it.

   Checked:
   - While a rank writes, no other rank reads or writes.
   - No rank reads or writes bytes that are not the newest.
   - Each request is served: when no rank can move any more, no rank waits.

     model                    runtime
     handle()                 Replica::receive: take() and advance() under the lock, in one step for all other ranks
     to[from * RANKS + to]    the ordered ring between two ranks; here a rank's heads to itself are not handled at once
     queue[rank]              Replica::queue_; L_ turns are of the rank's one thread, R_ turns are deeds for other ranks
     last                     the end of GuardedHome::chain_
     stop to the first of two ranks, which tells the other: the trees of more ranks consist of this step; so do updates
     version, have            the data are the number of the write that made them; a copy carries it (Mover::owner_puts)
     sendings[rank]           Replica::sendings_ where data are put; otherwise all is sent at once
     bytes[rank]              the bytes in place at the rank; 0: half of a put
     flying[rank]             the number of puts to the rank that have begun and not ended; flying_version: their write
     truth                    the version that a read must see

   Not modelled: deaths, data in several pieces of which some find no room, tries, several threads of a rank, and askers
   that fetch data. For the latter, permission is the same. A rank without its data counts as a rank that has not entered,
   and its reply to a stop waits (fetching_). */

#ifndef RANKS
#define RANKS 3
#endif
#ifndef OPERATIONS
#define OPERATIONS 2
#endif
#define HOME 0
#define BIT(rank) (1 << (rank))

mtype = { WANT, DEED, COPY, OWNERSHIP, STOP, STOPPED };
#define L_READ 0
#define L_WRITE 1
#define R_COPY 2
#define R_OWNERSHIP 3
#define R_DROP 4

typedef Guard {
  bool owner, valid, reading, writing, has_read;
  bool asked, awaits_update, dropped;
  byte version, have, epoch;
  byte copies, stopped;   /* sets of ranks */
  byte children, parent;  /* of a round of stops */
  bool stopping;
};

Guard at[RANKS];
chan to[RANKS * RANKS] = [6] of { mtype, byte, byte, byte, byte };
chan queue[RANKS] = [6] of { byte, byte, byte };
byte last = HOME;
byte truth = 1;
bool waits[RANKS];
byte left[RANKS];
#ifdef PUT
chan sendings[RANKS] = [6] of { mtype, byte, byte, byte, byte, byte };
bool putting[RANKS];
byte bytes[RANKS], flying[RANKS], flying_version[RANKS];
#define ALL_SENT(rank) (len(sendings[rank]) == 0)
#define GIVE(from, peer, kind, a, b, c, d) assert(nfull(sendings[from])); sendings[from]!kind, peer, a, b, c, d
#else
#define ALL_SENT(rank) true
#define GIVE(from, peer, kind, a, b, c, d) POST(from, peer, kind, a, b, c, d)
#endif
#define ASKED 1   /* a bit of c in COPY: the receiver has asked for the copy */
#define NO_DATA 2 /* a bit of c in COPY and OWNERSHIP: the message carries no data */

#define POST(from, peer, kind, a, b, c, d) assert(nfull(to[(from) * RANKS + (peer)])); to[(from) * RANKS + (peer)]!kind, a, b, c, d

inline lowest(set, result) {
  result = 0;
  do
  :: (set & BIT(result)) -> break
  :: else -> result++
  od
}

/* Replica::stop: tells the first rank of the set, which tells the others. */
inline tell_stop(me, set) {
  if
  :: (set) ->
     lowest(set, first);
     at[me].children = at[me].children | BIT(first);
     POST(me, first, STOP, at[me].epoch, 0, (set) & ~BIT(first), 0)
  :: else
  fi
}

/* Replica::stop_readers */
inline stop_readers(me, except) {
  at[me].copies = at[me].copies & ~(except);
  if
  :: (at[me].children == 0 && at[me].copies != 0) ->
     at[me].epoch++;
     at[me].stopped = at[me].stopped | at[me].copies;
     some = at[me].copies;
     at[me].copies = 0;
     tell_stop(me, some)
  :: else
  fi
}

/* Replica::send_to_groups, along a chain like that of tell_stop() */
inline tell_update(me, set, version_, epoch_, flags) {
  if
  :: (set) ->
     lowest(set, first);
     GIVE(me, first, COPY, version_, epoch_, flags, (set) & ~BIT(first))
  :: else
  fi
}

inline update_copies(me) {
  some = at[me].stopped;
  at[me].copies = at[me].copies | some;
  at[me].stopped = 0;
  tell_update(me, some, at[me].version, at[me].epoch, 0)
}

inline ask(me, act) {
  if
  :: (!at[me].asked && !(act == L_READ && at[me].awaits_update)) ->
     at[me].asked = true;
     POST(me, HOME, WANT, me, act, at[me].have, 0)
  :: else
  fi
}

inline check_entry(me, writes) {
  assert(at[me].have == truth);
#ifdef PUT
  assert(bytes[me] == truth && (flying[me] == 0 || (!writes && flying_version[me] == truth)));
#endif
  other = 0;
  do
  :: (other < RANKS) ->
     assert(other == me || !at[other].writing);
     assert(other == me || !writes || !at[other].reading);
     other++
  :: else -> break
  od
}

/* Replica::step, repeated until it returns false */
inline steps(me) {
  do
  :: nempty(queue[me]) ->
     queue[me]?<turn, who, had>;
     if
     :: (turn == L_READ && !at[me].owner && !at[me].valid) -> ask(me, L_READ); break
     :: (turn == L_READ && (at[me].owner || at[me].valid)) ->
        queue[me]?turn, who, had;
        check_entry(me, false);
        at[me].reading = true;
        at[me].has_read = true;
        waits[me] = false
     :: (turn == L_WRITE && !at[me].owner) -> ask(me, L_WRITE); break
     :: (turn == L_WRITE && at[me].owner) ->
        if
        :: ALL_SENT(me)
        :: !ALL_SENT(me) -> break
        fi;
        stop_readers(me, 0);
        if
        :: (at[me].children) -> break
        :: else
        fi;
        queue[me]?turn, who, had;
        check_entry(me, true);
        at[me].writing = true;
        waits[me] = false
     :: (turn >= R_COPY && (!at[me].owner || at[me].writing)) -> break
     :: (turn == R_COPY && at[me].owner && !at[me].writing) ->
        queue[me]?turn, who, had;
        at[me].stopped = at[me].stopped & ~BIT(who);
        at[me].copies = at[me].copies | BIT(who);
        GIVE(me, who, COPY, at[me].version, at[me].epoch, ASKED | (had == at[me].version -> NO_DATA : 0), 0)
     :: (turn == R_DROP && at[me].owner && !at[me].writing) ->
        queue[me]?turn, who, had;
        at[me].stopped = at[me].stopped & ~BIT(who);
        at[me].copies = at[me].copies & ~BIT(who)
     :: (turn == R_OWNERSHIP && at[me].owner && !at[me].writing) ->
        if
        :: ALL_SENT(me)
        :: !ALL_SENT(me) -> break
        fi;
        stop_readers(me, BIT(who));
        if
        :: (at[me].children || at[me].reading) -> break
        :: else
        fi;
        queue[me]?turn, who, had;
        at[me].stopped = at[me].stopped & ~BIT(who);
#ifdef UPDATE
        at[me].awaits_update = at[me].has_read;
        if
        :: (at[me].has_read) -> at[me].stopped = at[me].stopped | BIT(me)
        :: else
        fi;
#else
        at[me].stopped = 0;
#endif
        GIVE(me, who, OWNERSHIP, at[me].version, at[me].epoch, (had == at[me].version -> NO_DATA : 0), at[me].stopped);
        at[me].stopped = 0;
        at[me].owner = false;
        at[me].valid = false;
        at[me].has_read = false
     fi
  :: else -> break
  od
}

/* Replica::advance */
inline advance(me) {
  steps(me);
  if
  :: (at[me].stopping) -> at[me].valid = false
  :: else
  fi;
#ifdef UPDATE
  if
  :: (at[me].owner && !at[me].writing && at[me].stopped) ->
     turn = R_COPY;
     if
     :: nempty(queue[me]) -> queue[me]?<turn, who, had>
     :: else
     fi;
     if
     :: (turn != L_WRITE && turn != R_OWNERSHIP) -> update_copies(me)
     :: else
     fi
  :: else
  fi;
#endif
  if
  :: (at[me].stopping && !at[me].reading && at[me].children == 0 && ALL_SENT(me)) ->
     at[me].stopping = false;
     POST(me, at[me].parent, STOPPED, 0, 0, 0, 0)
  :: else
  fi
}

/* Replica::store, or Replica::take_in_place where data are put. It never replaces newer bytes by older ones, and never
   changes bytes while this rank reads them. */
inline store(me, version_) {
  if
  :: (!(c & NO_DATA) && version_ > at[me].have) -> assert(!at[me].reading && !at[me].writing); at[me].have = version_
  :: else
  fi
}

/* Replica::take */
inline take(me, peer) {
  to[peer * RANKS + me]?kind, a, b, c, d;
  if
  :: (kind == WANT) ->
     assert(last != a);
     POST(me, last, DEED, a, b, c, 0);
     if
     :: (b == L_WRITE) -> last = a
     :: else
     fi
  :: (kind == DEED && b == L_READ) -> queue[me]!R_COPY, a, c
  :: (kind == DEED && b == L_WRITE) -> queue[me]!R_OWNERSHIP, a, c
  :: (kind == DEED && b == R_DROP) -> queue[me]!R_DROP, a, c
  :: (kind == COPY) ->
     store(me, a);
#ifdef PUT
     /* A stop that has overtaken the copy has also gone to the ranks behind this one. No rank would stop this rank if it
        has dropped its copy. */
     if
     :: (b >= at[me].epoch) -> tell_update(me, d, a, b, (at[me].dropped -> NO_DATA : c & NO_DATA))
     :: else
     fi;
#else
     tell_update(me, d, a, b, 0);
#endif
     if
     :: (c & ASKED) -> at[me].asked = false; at[me].dropped = false
     :: else
     fi;
     if
     :: ((c & NO_DATA) && at[me].have != a) -> at[me].awaits_update = false
     :: (!((c & NO_DATA) && at[me].have != a) && b >= at[me].epoch && !at[me].owner && !at[me].dropped) ->
        at[me].valid = true;
        at[me].version = a;
        at[me].epoch = b;
        at[me].awaits_update = false
     :: else
     fi
  :: (kind == OWNERSHIP) ->
     store(me, a);
     at[me].owner = true;
     at[me].asked = false;
     at[me].dropped = false;
     at[me].awaits_update = false;
     at[me].has_read = false;
     at[me].version = a;
     if
     :: (b > at[me].epoch) -> at[me].epoch = b
     :: else
     fi;
     at[me].stopped = d & ~BIT(me)
  :: (kind == STOP) ->
     assert(!at[me].owner);
     if
     :: (a > at[me].epoch) -> at[me].epoch = a
     :: else
     fi;
     at[me].stopping = true;
     at[me].parent = peer;
#ifdef UPDATE
     at[me].awaits_update = !at[me].dropped;
#endif
     tell_stop(me, c)
  :: (kind == STOPPED) -> at[me].children = at[me].children & ~BIT(peer)
  fi
}

#ifdef PUT
/* Replica::send_front, up to the point where it waits for the put */
inline begin_to_send(me) {
  sendings[me]?<kind, who, a, b, c, d>;
  if
  :: (c & NO_DATA) ->
     sendings[me]?kind, who, a, b, c, d;
     POST(me, who, kind, a, b, c, d);
     advance(me)
  :: else ->
     assert(!at[who].writing && bytes[me] == a);
     assert(flying[who] == 0 || flying_version[who] == a);
     if
     :: (bytes[who] != a) -> assert(!at[who].reading); bytes[who] = 0
     :: else
     fi;
     flying[who]++;
     flying_version[who] = a;
     putting[me] = true
  fi
}

/* Replica::send_front, after the put has ended */
inline end_to_send(me) {
  sendings[me]?kind, who, a, b, c, d;
  assert(!at[who].writing && bytes[me] == a && (bytes[who] == a || bytes[who] == 0));
  bytes[who] = a;
  flying[who]--;
  putting[me] = false;
  POST(me, who, kind, a, b, c, d);
  advance(me)
}
#endif

inline clear() { turn = 0; who = 0; had = 0; first = 0; some = 0; other = 0; kind = 0; a = 0; b = 0; c = 0; d = 0 }

inline handle(me, peer) {
  (peer < RANKS && nempty(to[peer * RANKS + me])) -> take(me, peer); advance(me); clear()
}

proctype Rank(byte me) {
  byte turn, who, had, first, some, other, a, b, c, d;
  mtype kind;
end:
  do
  :: d_step { handle(me, 0) }
  :: d_step { handle(me, 1) }
#if RANKS > 2
  :: d_step { handle(me, 2) }
#endif
  :: d_step { (left[me] && !waits[me] && !at[me].reading && !at[me].writing) ->
       left[me]--; waits[me] = true; queue[me]!L_READ, me, 0; advance(me); clear() }
  :: d_step { (left[me] && !waits[me] && !at[me].reading && !at[me].writing) ->
       left[me]--; waits[me] = true; queue[me]!L_WRITE, me, 0; advance(me); clear() }
  :: d_step { (at[me].reading) -> at[me].reading = false; advance(me); clear() }
  :: d_step { (at[me].writing) ->
       at[me].writing = false;
       at[me].version++;
       at[me].have = at[me].version;
       truth = at[me].version;
#ifdef PUT
       bytes[me] = truth;
#endif
#ifdef UPDATE
       update_copies(me);
#endif
       advance(me); clear() }
#ifdef PUT
  :: d_step { (nempty(sendings[me]) && !putting[me]) -> begin_to_send(me); clear() }
  :: d_step { putting[me] -> end_to_send(me); clear() }
#endif
  /* Replica::drop */
  :: d_step { (!at[me].owner && (at[me].valid || at[me].awaits_update) && !at[me].reading && !at[me].asked &&
               !at[me].stopping && ALL_SENT(me) && left[me]) ->
       left[me]--;
       at[me].valid = false;
       at[me].awaits_update = false;
       at[me].dropped = true;
       POST(me, HOME, WANT, me, R_DROP, 0, 0);
       advance(me); clear() }
  od
}

init {
  byte rank = 0;
  atomic {
    at[HOME].owner = true;
    at[HOME].version = 1;
    at[HOME].have = 1;
#ifdef PUT
    bytes[HOME] = 1;
#endif
    do
    :: (rank < RANKS) -> left[rank] = OPERATIONS; run Rank(rank); rank++
    :: else -> break
    od
  }
  /* No rank can move any more: all requests must have been served. */
  timeout;
  rank = 0;
  do
  :: (rank < RANKS) -> assert(!waits[rank] && left[rank] == 0); rank++
  :: else -> break
  od
}
