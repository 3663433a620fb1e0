#pragma once

#include "fabric/pipeline.hpp"
#include "share/coherence/copyset.hpp"
#include "share/coherence/diffs.hpp"
#include "share/coherence/heads.hpp"

#include <tonari/share.hpp>
#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tonari::share {

class Array;
class SharedMemory;

/// A release: sends changes to the homes of pages, then notices to the ranks with copies.
///
///   this rank                     home                          ranks with copies
///      |-- changes ----------------->|  stores them                   |
///      |<------------ copies --------|  returns the copysets          |
///      |-- notices ---------------------------------------------------->|  stale from its next acquire on
///      |<------------------------------------------------- noted -------|
///      |-- told -------------------->|  removes them from the copyset, if no copy was given since
///
/// If many ranks have copies of the same pages, notices travel down a tree (notice_tree.hpp).
///
/// When a release has ended, every rank that acquires later sees all changes: it has them, or it has a notice.
///
/// Threads: one at a time.
class Release {
 public:
  explicit Release(SharedMemory& shared_memory);

  void begin(Others others) noexcept {
    wakeup_ = others == Others::will_come ? fabric::Wakeup::later : fabric::Wakeup::now;
  }
  /// Returns where the caller writes the diff of a page, at most change_bytes_max bytes, before it adds it.
  [[nodiscard]] std::byte* room() noexcept { return changes_.data() + used_; }
  void add_change(Array& array, int home, std::uint64_t page, std::size_t bytes);
  /// Makes room for the diffs of a whole block, and sends the added ones. Call it without any block's lock.
  void make_room();
  /// Adds a changed page that has its home here and copies elsewhere. If copies are updated, room() holds its diff of
  /// `bytes` bytes; otherwise `bytes` is 0.
  void add_own(Array& array, const Entry& entry, std::size_t bytes);
  /// Adds unmapped pages whose changes were added: they are suspended until their homes have stored the changes.
  void add_suspended(Array& array, std::uint64_t first, Mask pages) { suspended_.push_back({&array, first, pages}); }

  /// Completes the release: returns when all ranks were told.
  /// ok
  /// peer_gone: a rank that had to be told, or a home, died or has destroyed the array.
  Status end() noexcept;

 private:
  struct Sent {  // a diff for a home, at changes_[at]
    Array* array;
    int home;
    std::uint64_t page;
    std::size_t at;
    std::size_t bytes;
  };
  struct Copied {
    Array* array;
    int home;
    Entry entry;
    std::size_t at = 0;
    std::size_t bytes = 0;  // 0: copies are not updated
  };
  struct Suspended {
    Array* array;
    std::uint64_t first;
    Mask pages;
  };
  struct Message {
    PendingRequest pending;
    std::size_t first = 0;  // first of its diffs in sent_
    std::size_t count = 0;
    Ranks ranks = 0;  // the ranks that it reaches, down a tree
  };
  /// The contents of one message to ranks with copies: diffs or notices of one array.
  struct Telling {
    Array* array = nullptr;
    bool updates = false;
    std::vector<std::byte> changes{};
    std::vector<PageRun> runs{};

    /// Returns false if `copied` does not fit into the same message.
    [[nodiscard]] bool add(const Copied& copied, const std::byte* all_changes);
    void clear() noexcept;
  };

  void send_changes();
  void send_to(int home, std::size_t first, std::size_t count);
  Message& next_message();
  void finish(Message& message);
  void await(const PendingRequest& pending);
  void take_reply(Message& message);
  void resend(Sent change, std::uint64_t home);
  void finish_all();
  void tell();
  // release_notices.cpp
  void tell_copies();
  void tell_each(std::span<Copied> copied, Ranks some);
  void tell_by_tree(std::span<Copied> copied);
  void send_telling(int rank, Ranks behind);
  void tell_homes();

  SharedMemory& shared_memory_;
  Status status_ = Status::ok;
  fabric::Wakeup wakeup_ = fabric::Wakeup::now;
  std::vector<std::byte> changes_;
  std::size_t used_ = 0;
  std::vector<Sent> sent_{};
  std::size_t sent_until_ = 0;  // number of elements of sent_ that are on their way
  std::vector<Copied> copied_{};
  std::vector<Suspended> suspended_{};
  Telling telling_{};
  Ranks missed_ = 0;  // the ranks that a tree has not reached
  fabric::Pipeline<Message, 8> messages_;
};

}  // namespace tonari::share
