#pragma once

#include "base/file_descriptor.hpp"
#include "base/mapping.hpp"
#include "pager/userfaultfd.hpp"
#include "share/array/fault_streams.hpp"
#include "share/array/page_block.hpp"
#include "share/array/placement.hpp"
#include "share/coherence/copyset.hpp"
#include "share/coherence/fetches.hpp"
#include "share/coherence/heads.hpp"
#include "window/local/diff.hpp"

#include <tonari/share.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace tonari::share {

struct Change;
class Release;
class SharedMemory;

/// One rank's side of an array whose pages have homes on several hosts. A memory file holds the pages that have their
/// home here, and copies of other pages. The file is mapped twice: for the program, where the protocol maps and
/// protects each page, and for the runtime, where every page is always readable and writable. PageState has the states
/// of a page.
///
/// Invariants: docs/modules/share.md, I1 to I11.
/// Threads:    answer(): the fault thread. serve(), arrived(): the holder of the progress lock. The rest: any.
class Array final : public detail::Memory {
 public:
  Array(SharedMemory& shared_memory, std::uint32_t number, std::byte* start, PagePlacement plan,
        const ArrayOptions& options);
  ~Array() override;  // collective

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// Returns ArrayOptions::updates.
  [[nodiscard]] bool updates() const noexcept { return updates_; }
  [[nodiscard]] bool contains(const void* byte) const noexcept {
    const auto place = static_cast<std::size_t>(static_cast<const std::byte*>(byte) - bytes().data());
    return byte >= bytes().data() && place < bytes().size();
  }
  /// Returns true if this rank is the page's home at present.
  [[nodiscard]] bool is_home(std::uint64_t page) noexcept;
  /// Number of threads and fetches that use the array without owning it.
  [[nodiscard]] std::atomic<std::uint32_t>& users() noexcept { return users_; }
  [[nodiscard]] JobRank home_of(std::uint64_t offset) const noexcept override;
  void wrote(std::uint64_t offset, std::uint64_t bytes) noexcept override;
  void prefetch(std::uint64_t offset, std::uint64_t bytes) noexcept override;
  Status barrier_with_multicast(std::uint64_t offset, std::uint64_t bytes) noexcept override;

  // array_faults.cpp
  void answer(const pager::Fault& fault) noexcept;
  void arrived(const Fetch& fetch) noexcept;

  // array_home.cpp
  /// Serves a request or a notice of another rank. Returns false if there is no room for the reply: call it again
  /// later.
  bool serve(Kind kind, int peer, const Words& request, std::span<const std::byte> tail) noexcept;

  // array_epochs.cpp
  /// Adds all that this rank has changed to `release`.
  void collect(Release& release);
  /// Unmaps stale pages, but not the ones that renew() will fetch again. Adds this rank's changes of them to `release`.
  void drop_stale(Release& release);
  /// Allows fetches of pages of the block that begins with page `first`: their homes have this rank's changes now.
  void end_suspension(std::uint64_t first, Mask pages) noexcept;
  /// Fetches, for writing, the pages that drop_stale() kept mapped. Their homes have this rank's changes now.
  void renew() noexcept;  // array_migratory.cpp
  /// Makes this rank the home of a page, as the old home has replied. Sets entry.copies_given.
  void adopt(Entry& entry) noexcept;
  /// Removes entry.ranks, which were told of the change, from the copyset of a page at home.
  void told(const Entry& entry) noexcept;

 private:
  [[nodiscard]] PageBlock& block(std::size_t index) noexcept;  // lock and begin() it before use
  [[nodiscard]] std::size_t blocks() const noexcept { return (plan_.pages() + pages_per_block - 1) / pages_per_block; }
  void begin(PageBlock& block, std::size_t index) const noexcept;
  [[nodiscard]] pager::Address address_of(std::uint64_t page) const noexcept {
    return reinterpret_cast<pager::Address>(bytes().data()) + page * page_bytes;
  }
  [[nodiscard]] std::byte* data_of(std::uint64_t page) const noexcept {
    return file_bytes_.bytes().data() + page * page_bytes;
  }
  [[nodiscard]] std::byte* twin_of(std::uint64_t page) const noexcept {
    return twins_.bytes().data() + page * page_bytes;
  }

  bool serve_fetch(int peer, const Words& request) noexcept;
  bool serve_changes(int peer, const Words& request, std::span<const std::byte> changes) noexcept;
  void take_notice(std::uint64_t first, std::uint64_t count) noexcept;
  void take_update(const Change& change) noexcept;
  template <class Take>
  void pass_on(Kind kind, int peer, const Words& request, std::span<const std::byte> tail, Take take);
  void note(int peer, const Words& request) noexcept;

  // With the block's lock held:
  void touch_home(PageBlock& block, std::uint64_t page, Touch touch) noexcept;
  void map_home(PageBlock& block, std::uint64_t page, Touch touch) noexcept;
  void upgrade(PageBlock& block, std::uint64_t page) noexcept;
  void make_dirty(PageBlock& block, Mask pages, std::uint64_t first) noexcept;
  void announce_dirty(PageBlock& block, Mask pages, std::uint64_t first) noexcept;
  void protect(Mask pages, std::uint64_t first, pager::Userfaultfd::Writes writes) noexcept;
  [[nodiscard]] Mask end_fetch(PageBlock& block, Mask requested, Mask good, std::uint64_t first) noexcept;
  void place(PageBlock& block, const Fetch& fetch, std::span<const std::byte> data) noexcept;
  void unmap(PageBlock& block, Mask pages, std::uint64_t first) noexcept;
  void give(PageBlock& block, Mask pages, std::uint64_t first, int peer) noexcept;
  [[nodiscard]] bool grant(PageBlock& block, std::size_t page, int peer) const noexcept;
  bool may_move(PageBlock& block, std::size_t page, int peer) const noexcept;
  [[nodiscard]] Mask end_turns(PageBlock& block, Mask pages, std::uint64_t first) noexcept;
  void expect_writes(PageBlock& block, Mask pages, std::uint64_t first) noexcept;
  void expect_given(PageBlock& block, std::uint64_t page, const std::byte* copy) noexcept;
  [[nodiscard]] bool close_unwritten(PageBlock& block, std::uint64_t page) noexcept;
  void collect_pages(PageBlock& block, std::uint64_t first, Mask pages, Release& release);
  void collect_home(PageBlock& block, std::uint64_t first, Mask pages, Release& release);
  Entry take_change(const Change& change, int peer) noexcept;

  void fetch(std::uint64_t page, Touch touch) noexcept;
  void fetch_ahead(Fetches& fetches, std::uint64_t page, const Ahead& ahead, Touch touch) noexcept;
  void request_pages(Fetches& fetches, std::uint64_t first, std::size_t count, int home, Touch touch) noexcept;
  void collect_named(Release& release);
  void collect_named_page(std::uint64_t page, const window::DifferenceMap& map, Release& release);
  Status multicast(std::span<const Region> regions);
  Status release_and_multicast(const Region& own) noexcept;
  void hold(const Region& own) noexcept;
  void let_go(const Region& own) noexcept;
  void bring(const Region& own) noexcept;
  void make_room(const Region& region) noexcept;
  void have_in_twins(std::size_t index, Mask pages, const Region& region) noexcept;
  void have_multicast(std::size_t index, Mask pages) noexcept;
  void wake(std::uint64_t page, std::size_t count) noexcept;
  [[gnu::cold]] void lose(const Fetch& fetch) noexcept;
  void populate(std::uint64_t first, std::size_t count) noexcept;
  void give_memory(std::uint64_t first, std::size_t count) noexcept;
  void store(const PageBlock& block, std::uint64_t page, std::span<const std::byte> data) noexcept;
  [[noreturn, gnu::cold]] void end_without_memory(std::size_t bytes) const noexcept;

  SharedMemory& shared_memory_;
  const std::uint32_t number_;
  const PagePlacement plan_;
  const bool named_;  // ArrayOptions::writes_are_named
  const bool updates_;
  const bool homes_move_;
  FileDescriptor file_;
  Mapping file_bytes_;
  Mapping twins_;      // the twin of each dirty page, at the page's offset
  Mapping table_;      // of PageBlock
  BlockSet dirty_;     // blocks with dirty pages
  BlockSet stale_;     // with pages that other ranks have changed
  BlockSet renewing_;  // with copies to be renewed
  Streams streams_;
  std::atomic<std::uint32_t> users_{0};
  // Set before the barrier of the destructor: relaxed, since homes drop pages only after it.
  std::atomic<bool> leaves_{false};
  std::mutex named_mutex_;  // protects written_
  std::vector<Region> written_{};
};

/// An array in a job on one host: all ranks map the same memory.
class MappedArray final : public detail::Memory {
 public:
  MappedArray(Job& job, SharedMemory& shared_memory, std::byte* start, PagePlacement plan);
  ~MappedArray() override;

  [[nodiscard]] JobRank home_of(std::uint64_t offset) const noexcept override;
  void wrote(std::uint64_t offset, std::uint64_t bytes) noexcept override;
  void prefetch(std::uint64_t, std::uint64_t) noexcept override {}
  Status barrier_with_multicast(std::uint64_t offset, std::uint64_t bytes) noexcept override;

 private:
  SharedMemory& shared_memory_;
  const PagePlacement plan_;
  Window window_;
};

}  // namespace tonari::share
