/* The protocol of guarded data: src/share/guard.hpp. `make check-model` checks every interleaving, with RANKS ranks that
   each do OPERATIONS operations, chosen freely, once with invalidation and once, with -DUPDATE, with updates.

   Checked: at most one writer, and no reader beside it; nobody reads or writes bytes that are not the newest; whoever
   asks gets what it asked for: when nothing moves any more, nobody waits.

     here                     there
     handle()                 Guard::receive: take() and advance() under the lock, one step to all others
     to[from * RANKS + to]    the ring between two ranks: in order; a rank's heads to itself are not handled at once here
     queue[rank]              Guard::queue_; L_ turns are of the rank's one thread, R_ turns deeds for other ranks
     last                     the end of GuardHome::chain_
     stop to the first of two, who tells the other: what trees of more ranks are made of; so with updates
     version, have            data are the number of the write they are of; a copy carries them (Mover::owner_puts)
     truth                    what a read must see

   Left out: deaths, data in pieces, tries, several threads of a rank, and askers that fetch: there permission is the
   same, and a rank without its data counts as one that has not entered, whose answer to a stop waits (fetching_). */

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
  byte copies, stopped;   /* sets */
  byte children, parent;  /* a round of stops */
  bool stopping;
};

Guard at[RANKS];
chan to[RANKS * RANKS] = [6] of { mtype, byte, byte, byte, byte };
chan queue[RANKS] = [6] of { byte, byte };
byte last = HOME;
byte truth = 1;
bool waits[RANKS];
byte left[RANKS];

#define POST(from, peer, kind, a, b, c, d) assert(nfull(to[(from) * RANKS + (peer)])); to[(from) * RANKS + (peer)]!kind, a, b, c, d

inline lowest(set, result) {
  result = 0;
  do
  :: (set & BIT(result)) -> break
  :: else -> result++
  od
}

/* Guard::stop: the first, which tells the others. */
inline tell_stop(me, set) {
  if
  :: (set) ->
     lowest(set, first);
     at[me].children = at[me].children | BIT(first);
     POST(me, first, STOP, at[me].epoch, 0, (set) & ~BIT(first), 0)
  :: else
  fi
}

/* Guard::stop_readers */
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

/* Guard::send_to_groups, of a chain as above */
inline tell_update(me, set, version_, epoch_) {
  if
  :: (set) ->
     lowest(set, first);
     POST(me, first, COPY, version_, epoch_, 0, (set) & ~BIT(first))
  :: else
  fi
}

inline update_copies(me) {
  some = at[me].stopped;
  at[me].copies = at[me].copies | some;
  at[me].stopped = 0;
  tell_update(me, some, at[me].version, at[me].epoch)
}

inline ask(me, act) {
  if
  :: (!at[me].asked && !(act == L_READ && at[me].awaits_update)) ->
     at[me].asked = true;
     POST(me, HOME, WANT, me, act, 0, 0)
  :: else
  fi
}

inline check_entry(me, writes) {
  assert(at[me].have == truth);
  other = 0;
  do
  :: (other < RANKS) ->
     assert(other == me || !at[other].writing);
     assert(other == me || !writes || !at[other].reading);
     other++
  :: else -> break
  od
}

/* Guard::step, until it answers false */
inline steps(me) {
  do
  :: nempty(queue[me]) ->
     queue[me]?<turn, who>;
     if
     :: (turn == L_READ && !at[me].owner && !at[me].valid) -> ask(me, L_READ); break
     :: (turn == L_READ && (at[me].owner || at[me].valid)) ->
        queue[me]?turn, who;
        check_entry(me, false);
        at[me].reading = true;
        at[me].has_read = true;
        waits[me] = false
     :: (turn == L_WRITE && !at[me].owner) -> ask(me, L_WRITE); break
     :: (turn == L_WRITE && at[me].owner) ->
        stop_readers(me, 0);
        if
        :: (at[me].children) -> break
        :: else
        fi;
        queue[me]?turn, who;
        check_entry(me, true);
        at[me].writing = true;
        waits[me] = false
     :: (turn >= R_COPY && (!at[me].owner || at[me].writing)) -> break
     :: (turn == R_COPY && at[me].owner && !at[me].writing) ->
        queue[me]?turn, who;
        at[me].stopped = at[me].stopped & ~BIT(who);
        at[me].copies = at[me].copies | BIT(who);
        POST(me, who, COPY, at[me].version, at[me].epoch, 1, 0)
     :: (turn == R_DROP && at[me].owner && !at[me].writing) ->
        queue[me]?turn, who;
        at[me].stopped = at[me].stopped & ~BIT(who);
        at[me].copies = at[me].copies & ~BIT(who)
     :: (turn == R_OWNERSHIP && at[me].owner && !at[me].writing) ->
        stop_readers(me, BIT(who));
        if
        :: (at[me].children || at[me].reading) -> break
        :: else
        fi;
        queue[me]?turn, who;
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
        POST(me, who, OWNERSHIP, at[me].version, at[me].epoch, at[me].stopped, 0);
        at[me].stopped = 0;
        at[me].owner = false;
        at[me].valid = false;
        at[me].has_read = false
     fi
  :: else -> break
  od
}

/* Guard::advance */
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
     :: nempty(queue[me]) -> queue[me]?<turn, who>
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
  :: (at[me].stopping && !at[me].reading && at[me].children == 0) ->
     at[me].stopping = false;
     POST(me, at[me].parent, STOPPED, 0, 0, 0, 0)
  :: else
  fi
}

/* Guard::store: never older bytes over newer ones, nor under a reader */
inline store(me, version_) {
  if
  :: (version_ > at[me].have) -> assert(!at[me].reading && !at[me].writing); at[me].have = version_
  :: else
  fi
}

/* Guard::take */
inline take(me, peer) {
  to[peer * RANKS + me]?kind, a, b, c, d;
  if
  :: (kind == WANT) ->
     assert(last != a);
     POST(me, last, DEED, a, b, 0, 0);
     if
     :: (b == L_WRITE) -> last = a
     :: else
     fi
  :: (kind == DEED && b == L_READ) -> queue[me]!R_COPY, a
  :: (kind == DEED && b == L_WRITE) -> queue[me]!R_OWNERSHIP, a
  :: (kind == DEED && b == R_DROP) -> queue[me]!R_DROP, a
  :: (kind == COPY) ->
     store(me, a);
     tell_update(me, d, a, b);
     if
     :: (c) -> at[me].asked = false; at[me].dropped = false
     :: else
     fi;
     if
     :: (b >= at[me].epoch && !at[me].owner && !at[me].dropped) ->
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
     at[me].stopped = c & ~BIT(me)
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

inline clear() { turn = 0; who = 0; first = 0; some = 0; other = 0; kind = 0; a = 0; b = 0; c = 0; d = 0 }

inline handle(me, peer) {
  (peer < RANKS && nempty(to[peer * RANKS + me])) -> take(me, peer); advance(me); clear()
}

proctype Rank(byte me) {
  byte turn, who, first, some, other, a, b, c, d;
  mtype kind;
end:
  do
  :: d_step { handle(me, 0) }
  :: d_step { handle(me, 1) }
#if RANKS > 2
  :: d_step { handle(me, 2) }
#endif
  :: d_step { (left[me] && !waits[me] && !at[me].reading && !at[me].writing) ->
       left[me]--; waits[me] = true; queue[me]!L_READ, me; advance(me); clear() }
  :: d_step { (left[me] && !waits[me] && !at[me].reading && !at[me].writing) ->
       left[me]--; waits[me] = true; queue[me]!L_WRITE, me; advance(me); clear() }
  :: d_step { (at[me].reading) -> at[me].reading = false; advance(me); clear() }
  :: d_step { (at[me].writing) ->
       at[me].writing = false;
       at[me].version++;
       at[me].have = at[me].version;
       truth = at[me].version;
#ifdef UPDATE
       update_copies(me);
#endif
       advance(me); clear() }
  /* Guard::drop */
  :: d_step { (!at[me].owner && (at[me].valid || at[me].awaits_update) && !at[me].reading && !at[me].asked &&
               !at[me].stopping && left[me]) ->
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
    do
    :: (rank < RANKS) -> left[rank] = OPERATIONS; run Rank(rank); rank++
    :: else -> break
    od
  }
  /* Nothing moves any more: all have got what they asked for. */
  timeout;
  rank = 0;
  do
  :: (rank < RANKS) -> assert(!waits[rank] && left[rank] == 0); rank++
  :: else -> break
  od
}
