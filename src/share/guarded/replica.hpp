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

/// What is the same for a variable at all ranks.
struct GuardedPlan {
  std::uint32_t number;
  std::size_t bytes;
  GuardedOptions options;
  std::size_t branches;  // of what this rank tells several
};

/// A guarded variable at one rank of a job of several hosts: its copy, who of this rank has it locked and who waits,
/// what the rank may do with it, and what others ask of the rank. docs/modules/guarded.md has the drawings.
///
/// One queue holds threads that wait and deeds for other ranks, in order of arrival. Its front is done when it may be:
/// that alone keeps the order, and keeps deeds for a time when this rank is the owner.
///
/// Invariants (tests/model/guarded.pml): G1 one rank is the owner, or ownership is on its way to one. G2 who may read
/// is the owner, or in its copies_, or is being told that it may, or that it may no more. G3 while one writes, copies_
/// is empty and nobody stops. G4 nobody has bytes of a version that is not written yet, and a version's bytes stay
/// where they are as long as somebody may need them. G9 who puts data is the owner, or in copies_, or stops: so nothing
/// is being put while one writes.
///
/// Threads: any. receive() and retry() by the progress lock's holder, or in the place of it.
class Replica {
 public:
  /// Has its memory, unless that comes with open().
  Replica(fabric::Engine& engine, fabric::SendQueue& send_queue, std::atomic<std::size_t>& held,
          const GuardedPlan& plan);
  Replica(Replica&&) = delete;
  ~Replica();

  /// All ranks have made it. Before anything else is called. `initial`: at the home. `window`: of all copies, where
  /// data are not sent; `put`: how they are put there, else askers get them.
  void open(std::span<const std::byte> initial, std::optional<Window> window,
            std::unique_ptr<window::Put> put) noexcept;
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  Status enter(Use use) noexcept;
  Status try_enter(Use use) noexcept;
  /// Answers ok; invalid: nobody has entered so; peer_gone.
  Status leave(Use use) noexcept;
  [[nodiscard]] bool has_entered(Use use) noexcept;
  void prefetch() noexcept;
  Status update_now() noexcept;
  void drop() noexcept;
  /// The program needs it no more: from now on it is there for others.
  void free() noexcept;
  /// No rank needs it, nor is anything being sent.
  [[nodiscard]] bool is_over() noexcept;

  void receive(const fabric::Head& head) noexcept;
  void retry() noexcept;
  void died(int rank) noexcept;

 private:
  enum class Outcome : std::uint8_t { waiting, entered, failed, to_get };
  struct Waiter {
    std::atomic<Outcome> outcome{Outcome::waiting};  // release: the data, and what other holders did
    bool is_patient = true;                          // it will yet wakeup whom it waits for
  };
  struct Turn {
    enum class What : std::uint8_t { local, copy, ownership, drop };
    What what;
    Use use = Use::read;       // local, as the next
    Waiter* waiter = nullptr;  // null: nobody waits for what it brings
    int rank = -1;             // of another
    std::uint64_t have = 0;    // what that rank has
  };
  enum class PendingRequest : std::uint8_t { nothing, to_read, to_write };
  struct Sending {
    int rank;
    GivenTag tag;
    std::uint64_t version;
    std::uint32_t epoch;
    ShortRank source;
    std::vector<ShortRank> listed{};
    bool begun = false;  // to be put
    std::uint32_t piece = 0;
    std::uint32_t allowed = pieces_ahead_max;  // pieces that may be sent
  };
  struct Child {
    int rank;
    std::vector<ShortRank> below;
  };
  static constexpr std::uint32_t pieces_ahead_max = 32;
  static constexpr std::uint32_t pieces_told_of = 16;
  static constexpr std::uint32_t entries_between_looks = 64;

  // guard.cpp: threads of this rank, and the queue
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

  // guard_taking.cpp: what other ranks say
  void take(const fabric::Head& head) noexcept;
  void take_want(int peer, const GuardWant& want) noexcept;
  void take_deed(int peer, const GuardWant& want) noexcept;
  void take_given(const fabric::Head& head) noexcept;
  void take_piece(const fabric::Head& head) noexcept;
  void take_in_place(std::uint64_t version) noexcept;
  void relay(GivenTag tag, std::uint64_t version, std::uint32_t epoch, ShortRank source,
             std::span<const ShortRank> listed) noexcept;
  void take_gift(const GivenTag& tag, std::uint64_t version, std::uint32_t epoch, ShortRank source,
                 std::span<const ShortRank> listed) noexcept;
  void store(std::uint64_t version, std::uint32_t piece, std::span<const std::byte> bytes) noexcept;
  void take_stop(int parent, const GuardStop& stop) noexcept;
  void take_over() noexcept;
  void be_over() noexcept;
  void lose() noexcept;
  void tell_lost() noexcept;

  // guard_sending.cpp: what goes to others
  template <class Body>
  void post(int peer, fabric::Kind kind, const Body& body, std::uint32_t tag = 0,
            fabric::Wakeup wakeup = fabric::Wakeup::now) noexcept;
  void post(int peer, fabric::Kind kind) noexcept { post(peer, kind, GuardWord{0}); }
  void tell_all(fabric::Kind kind) noexcept;
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
  /// Nothing is being sent, nor put for one that has died.
  [[nodiscard]] bool all_is_sent() const noexcept { return sendings_.empty() && !(put_ && put_->is_under_way()); }

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  std::atomic<std::size_t>& held_;  // variables with something to send; relaxed: whoever raises it rings a doorbell
  const GuardedPlan plan_;
  const int self_;
  std::optional<Window> window_;  // of all copies, where they are not sent
  struct Freeing {
    void operator()(std::byte* bytes) const noexcept;
  };
  std::unique_ptr<std::byte, Freeing> memory_;  // where they are
  std::byte* data_ = nullptr;

  std::mutex mutex_;                  // of the rest
  std::unique_ptr<window::Put> put_;  // null: askers get, or data are sent; set by open()
  std::deque<Turn> queue_;
  std::uint32_t readers_ = 0;  // threads of this rank that have entered
  bool writing_ = false;       // one has
  std::uint32_t entries_ = 0;
  std::uint64_t random_ = 0;
  std::uint32_t tries_in_vain_ = 0;
  bool woke_ = false;  // a thread of this rank, perhaps one that sleeps with the progress lock

  // What this rank may do, and its bytes.
  bool owner_ = false;
  bool valid_ = false;                              // it may read, though not the owner
  bool dropped_ = false;                            // takes no leave to read that it has not asked for
  bool awaits_update_ = false;                      // so it need not ask
  std::uint64_t version_ = 0;                       // that it may read
  std::uint64_t have_ = 0;                          // of its bytes; 0: none, or half of another
  std::uint64_t coming_ = 0;                        // that pieces come of
  std::uint32_t next_piece_ = 0;                    // of that
  int source_ = -1;                                 // has the bytes of version_
  bool fetching_ = false;                           // from there
  std::uint32_t epoch_ = 0;                         // rounds of stops so far: older leave to read is void
  PendingRequest asked_ = PendingRequest::nothing;  // of the home
  std::uint64_t asks_ = 0;
  bool home_gone_ = false;
  bool lost_ = false;

  // As owner.
  RankSet copies_;              // may read
  RankSet stopped_;             // could, before the last writes: to be updated
  bool has_read_ = false;       // since this rank is the owner
  bool update_wanted_ = false;  // by the writer, when it unlocks
  bool tried_ = false;          // in vain: readers are stopped so that the next try may enter

  // A round of stops: as its root, or asked by parent_.
  std::vector<Child> children_;  // have not answered
  bool stopping_ = false;
  int parent_ = -1;
  std::uint16_t later_ = 0;  // they will be updated

  std::deque<Sending> sendings_;
  bool counted_ = false;               // in held_
  std::vector<fabric::Head> to_self_;  // not yet taken
  std::optional<GuardedHome> home_;
  bool over_ = false;
};

}  // namespace tonari::share
