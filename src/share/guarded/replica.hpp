#pragma once

#include "fabric/send_queue.hpp"
#include "fabric/wakeup.hpp"
#include "share/coherence/rank_set.hpp"
#include "share/guarded/guarded_home.hpp"
#include "window/remote/rdma_put.hpp"

#include <tonari/guarded.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace tonari::share {

enum class Use : std::uint8_t { read, write };

/// Properties of a variable that are the same at all ranks.
struct GuardedPlan {
  std::uint32_t number;
  std::size_t bytes;
  GuardedOptions options;
  std::size_t branches;  // number of groups when this rank tells several ranks the same
};

/// A guarded variable at one rank of a job of several hosts: the rank's copy, its threads that have locked the variable
/// or wait for it, its rights, and the requests of other ranks to it. docs/modules/guarded.md has the drawings.
///
/// One queue holds waiting threads and deeds for other ranks, in order of arrival. Only its front is served, as soon as
/// that is allowed. This alone keeps the order, and keeps deeds until this rank is the owner.
///
/// Invariants (tests/model/guarded.pml):
/// G1 One rank is the owner, or ownership is on its way to one rank.
/// G2 A rank that may read is the owner, or in its copies_, or a message that gives or ends the right is on its way.
/// G3 While a rank writes, copies_ is empty and no round of stops is under way.
/// G4 No rank has bytes of a version that is not written yet; the bytes of a version stay while a rank may need them.
/// G9 A rank that puts data is the owner, or in copies_, or stopping: so nothing is put while a rank writes.
///
/// Threads: any. receive() and retry(): the holder of the progress lock, or a thread that stands in for it.
class Replica {
 public:
  /// Allocates the memory of the data, unless open() brings a window.
  Replica(fabric::Engine& engine, fabric::SendQueue& send_queue, fabric::HeldBack& held, const GuardedPlan& plan);
  Replica(Replica&&) = delete;
  ~Replica();

  /// Called first, when all ranks have made the variable. `initial`: the data, at the home. `window`: has all copies,
  /// if data are not sent in messages. `put`: puts data there; without it, askers get them.
  void open(std::span<const std::byte> initial, std::optional<Window> window,
            std::unique_ptr<window::Put> put) noexcept;
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  Status enter(Use use) noexcept;
  Status try_enter(Use use) noexcept;
  /// ok
  /// invalid: no thread has entered for this use
  /// peer_gone: a rank that was needed died
  Status leave(Use use) noexcept;
  [[nodiscard]] bool has_entered(Use use) noexcept;
  void prefetch() noexcept;
  Status update_now() noexcept;
  void drop() noexcept;
  /// The program no longer uses it. From now on it serves only other ranks.
  void free() noexcept;
  /// Returns true if no rank needs it and nothing is being sent.
  [[nodiscard]] bool is_over() noexcept;

  void receive(const fabric::Head& head) noexcept;
  void retry() noexcept;
  void died(int rank) noexcept;

 private:
  enum class Outcome : std::uint8_t { waiting, entered, failed, to_get };
  struct Waiter {
    std::atomic<Outcome> outcome{Outcome::waiting};  // release: the data, and earlier holders' writes
    bool is_patient = true;                          // it has not yet woken the rank that it waits for
  };
  struct Turn {
    enum class What : std::uint8_t { local, copy, ownership, drop };
    What what;
    Use use = Use::read;       // of a local turn, like the next
    Waiter* waiter = nullptr;  // null: no thread waits for the result
    int rank = -1;             // of a turn for another rank
    std::uint64_t have = 0;    // the version that this rank has
  };
  enum class Wanted : std::uint8_t { nothing, to_read, to_write };
  struct Sending {
    int rank;
    GivenTag tag;
    std::uint64_t version;
    std::uint32_t epoch;
    ShortRank source;
    std::vector<ShortRank> listed{};
    bool begun = false;  // the put has begun
    std::uint32_t piece = 0;
    std::uint32_t allowed = pieces_ahead_max;  // number of pieces that may be sent
  };
  struct Child {
    int rank;
    std::vector<ShortRank> below;
  };
  static constexpr std::uint32_t pieces_ahead_max = 32;
  static constexpr std::uint32_t pieces_told_of = 16;
  static constexpr std::uint32_t entries_between_looks = 64;

  // replica.cpp: threads of this rank, and the queue
  [[nodiscard]] bool has_data() const noexcept { return have_ == version_; }
  [[nodiscard]] bool may_read() const noexcept { return owner_ || valid_; }
  [[nodiscard]] bool can_enter(Use use) const noexcept;
  void hold(Use use) noexcept;
  void ask_for_later(Use use) noexcept;
  std::uint64_t next_patience_ns() noexcept;
  Status wait(Waiter& waiter) noexcept;
  void wait_for_outcome(Waiter& waiter) noexcept;
  void lose_patience(Waiter& waiter) noexcept;
  void get(std::unique_lock<std::mutex>& guard) noexcept;
  void advance() noexcept;
  bool step() noexcept;
  bool step_local(const Turn& turn) noexcept;
  bool step_ownership(const Turn& turn) noexcept;
  void ask(GuardAct act, fabric::Wakeup wakeup) noexcept;
  void end(const Turn& turn, Outcome outcome) noexcept;
  void fail_local() noexcept;
  [[nodiscard]] bool is_about_to_change() const noexcept;

  // replica_receive.cpp: messages of other ranks
  void take(const fabric::Head& head) noexcept;
  void take_want(int peer, const GuardWant& want) noexcept;
  void take_deed(int peer, const GuardWant& want) noexcept;
  void take_given(const fabric::Head& head) noexcept;
  void take_piece(const fabric::Head& head) noexcept;
  void take_in_place(std::uint64_t version) noexcept;
  void pass_on(GivenTag tag, std::uint64_t version, std::uint32_t epoch, ShortRank source,
               std::span<const ShortRank> listed) noexcept;
  void take_gift(const GivenTag& tag, std::uint64_t version, std::uint32_t epoch, ShortRank source,
                 std::span<const ShortRank> listed) noexcept;
  void store(std::uint64_t version, std::uint32_t piece, std::span<const std::byte> bytes) noexcept;
  void take_stop(int parent, const GuardStop& stop) noexcept;
  void take_over() noexcept;
  void be_over() noexcept;
  void lose() noexcept;
  void tell_lost() noexcept;

  // replica_send.cpp: messages to other ranks
  template <class Body>
  void post(int peer, Kind kind, const Body& body, std::uint32_t tag = 0,
            fabric::Wakeup wakeup = fabric::Wakeup::now) noexcept;
  void post(int peer, Kind kind) noexcept { post(peer, kind, GuardWord{0}); }
  void tell_all(Kind kind) noexcept;
  void give(int rank, GivenTag tag, std::uint64_t have) noexcept;
  bool send() noexcept;
  fabric::Wakeup wakeup_for(const Sending& sending) noexcept;
  bool send_front() noexcept;
  bool send_pieces(Sending& sending) noexcept;
  bool send_piece(Sending& sending) noexcept;
  Status put(Sending& sending) noexcept;
  void send_to_groups(std::span<const ShortRank> ranks, const Sending& pattern) noexcept;
  void update_copies() noexcept;
  bool stop_readers(int except, fabric::Wakeup wakeup = fabric::Wakeup::now) noexcept;
  void stop(std::span<const ShortRank> ranks, fabric::Wakeup wakeup = fabric::Wakeup::now) noexcept;
  void tell_stopped() noexcept;
  [[nodiscard]] std::vector<ShortRank> alive_others(std::span<const ShortRank> ranks) const;
  [[nodiscard]] bool is_alive(int rank) const noexcept { return engine_.session().alive(rank); }
  [[nodiscard]] bool is_home(int rank) const noexcept { return rank == plan_.options.home.value(); }
  [[nodiscard]] std::uint32_t pieces() const noexcept {
    return static_cast<std::uint32_t>((plan_.bytes + GuardPiece::bytes_max - 1) / GuardPiece::bytes_max);
  }
  [[nodiscard]] bool updates() const noexcept { return plan_.options.on_write == OnWrite::update; }
  [[nodiscard]] Mover mover() const noexcept { return plan_.options.mover; }
  /// Returns true if nothing is being sent, and nothing is being put for a rank that has died.
  [[nodiscard]] bool all_is_sent() const noexcept { return sendings_.empty() && !(put_ && put_->is_under_way()); }

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  fabric::HeldBack& held_;  // variables with something to send
  const GuardedPlan plan_;
  const int self_;
  std::optional<Window> window_;  // has all copies, if data are not sent in messages
  struct Freeing {
    void operator()(std::byte* bytes) const noexcept;
  };
  std::unique_ptr<std::byte, Freeing> memory_;  // the data, if there is no window
  std::byte* data_ = nullptr;

  std::mutex mutex_;                  // protects the rest
  std::unique_ptr<window::Put> put_;  // null: askers get the data, or they are sent; set by open()
  std::deque<Turn> queue_;
  std::uint32_t readers_ = 0;  // threads of this rank that have entered to read
  bool writing_ = false;       // one has entered to write
  std::uint32_t entries_ = 0;
  std::uint64_t random_ = 0;
  std::uint32_t tries_in_vain_ = 0;
  bool woke_ = false;  // has woken a thread of this rank, which may sleep with the progress lock

  // The rights of this rank, and its bytes.
  bool owner_ = false;
  bool valid_ = false;              // may read without being the owner
  bool dropped_ = false;            // refuses permission to read that it has not asked for
  bool awaits_update_ = false;      // will be updated, so it need not ask
  std::uint64_t version_ = 0;       // the version that it may read
  std::uint64_t have_ = 0;          // the version of its bytes; 0: none, or an incomplete one
  std::uint64_t coming_ = 0;        // the version whose pieces are arriving
  std::uint32_t next_piece_ = 0;    // of that version
  int source_ = -1;                 // the rank that has the bytes of version_
  bool fetching_ = false;           // is fetching them from there
  std::uint32_t epoch_ = 0;         // number of rounds of stops so far: earlier permission to read is void
  Wanted asked_ = Wanted::nothing;  // its request to the home
  std::uint64_t asks_ = 0;
  bool home_gone_ = false;
  bool lost_ = false;

  // Used while this rank is the owner.
  RankSet copies_;              // ranks that may read
  RankSet stopped_;             // ranks that could read before the last writes: to be updated
  bool has_read_ = false;       // this rank has read since it became the owner
  bool update_wanted_ = false;  // the writer wants it when it unlocks
  bool tried_ = false;          // a try failed: readers are stopped so that the next one may enter

  // A round of stops, which this rank has begun or parent_ has passed on.
  std::vector<Child> children_;  // have not replied yet
  bool stopping_ = false;
  int parent_ = -1;
  std::uint16_t later_ = 0;  // number of ranks that will be updated

  std::deque<Sending> sendings_;
  bool counted_ = false;               // is counted in held_
  std::vector<fabric::Head> to_self_;  // heads to itself, not handled yet
  std::optional<GuardedHome> home_;
  bool over_ = false;
};

}  // namespace tonari::share
