#pragma once

#include "share/coherence/copyset.hpp"
#include "share/coherence/diffs.hpp"
#include "share/coherence/requests.hpp"

#include <tonari/share.hpp>
#include <tonari/status.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tonari::share {

class Array;
class SharedMemory;

/// What a rank has to tell others when it releases: changes to the homes of pages, then notices to who has copies.
///
///   this rank                     home                          who has copies
///      |-- changes ----------------->|  stores them                   |
///      |<------------ copies --------|  says who has some             |
///      |-- notices ---------------------------------------------------->|  stale from its next acquire on
///      |<------------------------------------------------- noted -------|
///      |-- told -------------------->|  forgets them, if none was given since
///
/// Many who have copies of the same are told down a tree (relays.hpp).
///
/// When it has ended, whoever acquires later sees all that was changed: it has it, or it has a notice.
///
/// Threads: one at a time.
class Release {
 public:
  explicit Release(SharedMemory& sharing);

  void begin(Others others) noexcept {
    wakeup_ = others == Others::will_come ? fabric::Wakeup::later : fabric::Wakeup::now;
  }
  /// Changes of a page, change_bytes_max at most, are to be written here, and added then.
  [[nodiscard]] std::byte* room() noexcept { return changes_.data() + used_; }
  void add_change(Array& array, int home, std::uint64_t page, std::size_t bytes);
  /// There is room for the changes of a block. Sends what there is: with no block's lock.
  void make_room();
  /// A page that has its home here was changed, and has copies. Its change, if copies are updated, is in the room; of
  /// no bytes if they are not.
  void add_own(Array& array, const Entry& entry, std::size_t bytes);
  /// Pages that were unmapped with changes that are added here: they must not come again before those are stored.
  void add_suspended(Array& array, std::uint64_t first, Mask pages) { suspended_.push_back({&array, first, pages}); }

  /// Returns when all is told. Answers ok, or peer_gone.
  Status end() noexcept;

 private:
  struct Sent {  // a change
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
    PendingRequest asked;
    std::size_t first = 0;  // of sent_
    std::size_t count = 0;
    Ranks ranks = 0;  // who is told by it, down a tree
  };
  /// What is told of copies in one message: of one array, changes or notices.
  struct Telling {
    Array* array = nullptr;
    bool updates = false;
    std::vector<std::byte> changes{};
    std::vector<PageRun> runs{};

    /// False: not in the same message.
    [[nodiscard]] bool add(const Copied& copied, const std::byte* all_changes);
    void clear() noexcept;
  };

  void send_changes();
  void send_to(int home, std::size_t first, std::size_t count);
  Message& next_message();
  void finish(Message& message);
  void await(const PendingRequest& asked);
  void take_reply(Message& message);
  void resend(Sent change, std::uint64_t home);
  void finish_all();
  void tell();
  // releasing_telling.cpp
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
  std::size_t sent_until_ = 0;  // of sent_: on their way
  std::vector<Copied> copied_{};
  std::vector<Suspended> suspended_{};
  Telling telling_{};
  Ranks missed_ = 0;  // whom a tree has not reached
  std::array<Message, 8> messages_;
  std::size_t begun_ = 0;
  std::size_t finished_ = 0;
};

}  // namespace tonari::share
