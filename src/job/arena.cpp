#include "job/arena.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/futex.hpp"
#include "job/memory.hpp"
#include "job/signals.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <new>
#include <thread>

namespace tonari::job {

namespace {

// Every rank that sends touches the reply ring and the first pages of bulk memory sooner or later.
constexpr std::size_t reply_bytes_min = 64 * 1024;

std::size_t page_bytes() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

std::size_t whole_pages(std::size_t bytes) noexcept {
  const auto page = page_bytes();
  return (bytes + page - 1) / page * page;
}

std::size_t segment_bytes(const Settings& settings) noexcept {
  return whole_pages(settings.ring_slots * cache_line_bytes + segment_fixed_bytes);
}

std::size_t arena_bytes(std::size_t ranks, std::size_t segment) noexcept {
  return whole_pages(Arena::blocks_bytes(ranks)) + ranks * segment;
}

// The pool begins at a multiple of the granule size.
std::uint64_t pool_start(std::size_t ranks, std::size_t segment) noexcept {
  return (arena_bytes(ranks, segment) + pool_granule_bytes - 1) / pool_granule_bytes * pool_granule_bytes;
}

// Returns as many granules as have numbers, or fewer if a limit (ulimit -f) forbids so long a file.
std::uint32_t pool_granules(std::uint64_t start) noexcept {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (!limited) return pool_granules_max;
  const std::uint64_t room = limit.rlim_cur > start ? limit.rlim_cur - start : 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(room / pool_granule_bytes, pool_granules_max));
}

void check_size(int ranks, const Settings& settings) {
  if (ranks < 1 || ranks > ranks_per_host_max) {
    throw SetupError(fmt::format("{} ranks on one host: must be 1 to {}", ranks, ranks_per_host_max));
  }
  const auto each = settings.ring_slots * cache_line_bytes + reply_bytes_min + sizeof(RankBlock);
  const auto needed = static_cast<std::uint64_t>(ranks) * each;
  if (needed > available_memory_bytes()) {
    throw SetupError(
        fmt::format("{} ranks need at least {} for their rings, but {}: use fewer ranks or a smaller TONARI_RING_SLOTS",
                    ranks, memory_text(needed), available_memory_text()));
  }
}

FileDescriptor make_memory(std::uint64_t bytes) {
  FileDescriptor memory{::memfd_create("tonari-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!memory) throw_system_error("memfd_create for the arena");
  const FileSizeSignalHeld held;
  if (::ftruncate(memory.number(), static_cast<off_t>(bytes)) != 0) {
    throw_system_error(fmt::format("ftruncate of the arena to {} bytes", bytes), "use fewer ranks, or see ulimit -f");
  }
  // Sealed, so that no rank can shrink it while another uses it: access to it never raises SIGBUS.
  if (::fcntl(memory.number(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    throw_system_error("sealing the size of the arena");
  }
  return memory;
}

std::uint64_t sealed_bytes(const FileDescriptor& memory) {
  struct stat status;
  if (::fstat(memory.number(), &status) != 0) throw_system_error("fstat of the arena");
  const int seals = ::fcntl(memory.number(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    throw SetupError(
        "the descriptor received as the arena is not tonari's sealed memory: build the program and the tonari command "
        "from the same version");
  }
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

std::string_view to_string(Phase phase) noexcept {
  constexpr std::array<std::string_view, 6> names{"absent", "joined", "running", "leaving", "left", "dead"};
  const auto index = static_cast<std::size_t>(phase);
  return index < names.size() ? names[index] : "unknown";
}

void CallName::set(std::string_view name) noexcept {
  std::array<std::uint64_t, words> parts{};
  if (!name.empty()) std::memcpy(parts.data(), name.data(), std::min(name.size(), sizeof parts));
  for (std::size_t i = 0; i < words; ++i) text_[i].store(parts[i], std::memory_order_relaxed);
}

std::string CallName::get() const {
  std::array<std::uint64_t, words> parts{};
  for (std::size_t i = 0; i < words; ++i) parts[i] = text_[i].load(std::memory_order_relaxed);
  const std::string_view all(reinterpret_cast<const char*>(parts.data()), sizeof parts);
  return std::string(all.substr(0, all.find('\0')));
}

std::string_view to_string(Wait wait) noexcept {
  constexpr std::array<std::string_view, 18> names{
      "nothing", "send",    "receive",    "probe",      "barrier", "broadcast", "reduce",       "all_reduce", "scan",
      "gather",  "scatter", "all_gather", "all_to_all", "room",    "lock",      "notification", "window",     "leave"};
  const auto index = static_cast<std::size_t>(wait);
  return index < names.size() ? names[index] : "unknown";
}

Statistics Counters::read() const noexcept {
  const auto value = [](const Count& count) { return count.load(std::memory_order_relaxed); };
  return {.messages_sent = value(messages_sent) + value(messages_sent_by_others),
          .messages_received = value(messages_received),
          .bytes_sent = value(bytes_sent) + value(bytes_sent_by_others),
          .bytes_direct = value(bytes_direct),
          .bytes_buffered = value(bytes_buffered),
          .posted_now = value(posted_now),
          .posted_max = value(posted_max),
          .unexpected_now = value(unexpected_now),
          .unexpected_max = value(unexpected_max),
          .unexpected_bytes_now = value(unexpected_bytes_now),
          .unexpected_bytes_max = value(unexpected_bytes_max),
          .held_back = value(held_back),
          .sleeps = value(sleeps),
          .wake_ups = value(wake_ups)};
}

std::size_t Arena::blocks_bytes(std::size_t ranks) noexcept { return sizeof(ArenaHeader) + ranks * sizeof(RankBlock); }

Arena Arena::create(int ranks, const Settings& settings) {
  check_size(ranks, settings);
  const auto count = static_cast<std::size_t>(ranks);
  const std::uint64_t start = pool_start(count, segment_bytes(settings));
  const std::uint32_t granules = pool_granules(start);
  FileDescriptor memory = make_memory(start + granules * pool_granule_bytes);

  const Mapping first{memory.number(), blocks_bytes(count), "the arena's first pages"};
  auto* const header = new (first.bytes().data()) ArenaHeader;
  header->ranks = static_cast<std::uint32_t>(ranks);
  header->segment_bytes = segment_bytes(settings);
  header->ring_slots = settings.ring_slots;
  header->created_ns = monotonic_ns();
  ::randombytes_buf(&header->name, sizeof header->name);
  header->pool_granules = granules;
  header->cores =
      std::max(1u, std::thread::hardware_concurrency());  // the cores that its maker may use; HostRendezvous corrects
                                                          // the count if a launcher binds ranks
  for (std::size_t rank = 0; rank < count; ++rank) new (first.bytes().data() + blocks_bytes(rank)) RankBlock;

  return Arena{std::move(memory)};
}

Arena::Arena(FileDescriptor memory)
    : memory_(std::move(memory)), ringer_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  if (!ringer_) throw_system_error("making a socket", "see ulimit -n");
  const auto bytes = sealed_bytes(memory_);
  if (bytes < sizeof(ArenaHeader)) throw SetupError(fmt::format("an arena of {} bytes is too short", bytes));
  mapping_ = Mapping{memory_.number(), sizeof(ArenaHeader), "the arena's header"};

  const ArenaHeader& found = header();
  if (found.version != arena_version) {
    throw SetupError(
        fmt::format("the arena has version {}, this library reads version {}: build the program and the "
                    "tonari command from the same version",
                    found.version, arena_version));
  }
  const std::uint64_t start = pool_start(found.ranks, found.segment_bytes);
  const std::uint64_t fits = start + found.pool_granules * pool_granule_bytes;
  if (found.ranks < 1 || found.ranks > ranks_per_host_max || bytes != fits) {
    throw SetupError(fmt::format("the arena has {} bytes, which does not match {} ranks with {} bytes each", bytes,
                                 found.ranks, found.segment_bytes));
  }
  mapping_ = Mapping{memory_.number(), arena_bytes(found.ranks, found.segment_bytes), "the arena"};
  pool_ = std::make_unique<Pool>(memory_.number(), start, header());
}

std::span<std::byte> Arena::segment(int rank) const noexcept {
  const auto bytes = header().segment_bytes;
  const auto first = whole_pages(blocks_bytes(header().ranks));
  return mapping_.bytes().subspan(first + static_cast<std::size_t>(rank) * bytes, bytes);
}

void Arena::keep_remote_ranks(const std::vector<bool>& is_remote) {
  remote_.resize(is_remote.size());
  for (std::size_t rank = 0; rank < is_remote.size(); ++rank) {
    if (is_remote[rank]) remote_[rank] = std::make_unique<RankBlock>();
  }
}

Phase Arena::advance(int rank, Phase phase) noexcept {
  auto& current = block(rank).phase;
  Phase seen = current.load(std::memory_order_relaxed);
  // Release: a thread that sees the phase also sees the writes that led to it, including the cause of a death. Acquire:
  // pairs with the release of the phase that was there before.
  while (seen < phase && !current.compare_exchange_weak(seen, phase, std::memory_order_acq_rel)) {
  }
  return seen;
}

void Arena::count_left() noexcept {
  // Release: a thread that sees the final count sees everything that the leaving ranks did before.
  const auto before = header().left.fetch_add(1, std::memory_order_release);
  if (before + 1 >= header().ranks || !remote_.empty()) futex_wake(header().left, INT_MAX);
}

void Arena::mark_leaving(int rank) noexcept {
  if (advance(rank, Phase::leaving) < Phase::leaving) count_left();
}

bool Arena::all_leave() const noexcept {
  // In a job of several hosts the count is incomplete: it holds only what this host's ranks know.
  if (remote_.empty() && header().left.load(std::memory_order_acquire) >= header().ranks) return true;
  // A rank that was killed between the two steps of mark_leaving() is not in the count.
  for (int rank = 0; rank < ranks(); ++rank) {
    if (block(rank).phase.load(std::memory_order_acquire) < Phase::leaving) return false;
  }
  return true;
}

void Arena::mark_dead(int rank, int signal, int exit_status) noexcept {
  RankBlock& dead = block(rank);
  if (dead.phase.load(std::memory_order_acquire) >= Phase::left) return;
  dead.death_signal.store(signal, std::memory_order_relaxed);  // published by the phase
  dead.death_status.store(exit_status, std::memory_order_relaxed);
  const Phase before = advance(rank, Phase::dead);
  if (before >= Phase::left) return;

  if (before < Phase::leaving) count_left();
  header().deaths.fetch_add(1, std::memory_order_release);  // a thread that sees the count also sees the phase
  ring_all_doorbells();
}

void Arena::abort(int rank, int code) noexcept {
  std::uint64_t none = 0;
  const auto word = static_cast<std::uint64_t>(rank + 1) << 32 | static_cast<std::uint32_t>(code);
  header().abort.compare_exchange_strong(none, word, std::memory_order_relaxed);  // the word is all that is published
  ring_all_doorbells();
}

std::optional<Arena::Abort> Arena::aborted() const noexcept {
  const std::uint64_t word = header().abort.load(std::memory_order_relaxed);
  if (word == 0) return std::nullopt;
  return Abort{static_cast<int>(word >> 32) - 1, static_cast<int>(static_cast<std::uint32_t>(word))};
}

void Arena::ring_all_doorbells() noexcept {
  futex_wake(header().deaths, INT_MAX);
  futex_wake(header().left, INT_MAX);
  for (int rank = 0; rank < ranks(); ++rank) {
    ring_doorbell(rank);
    ring_service_doorbell(rank);
  }
}

}  // namespace tonari::job
