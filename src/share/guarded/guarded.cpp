#include "share/guarded/guarded.hpp"

#include "job/memory.hpp"
#include "share/agreement.hpp"
#include "share/guarded/heads.hpp"
#include "share/misuse.hpp"
#include "share/share_runtime.hpp"
#include "window/state/layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace tonari::share {

namespace {

constexpr std::array<std::string_view, 2> on_write_names{"invalidate", "update"};
constexpr std::array<std::string_view, 3> mover_names{"owner_puts", "asker_asks", "asker_gets"};

using Names = std::span<const std::string_view>;

std::string text_of(std::uint64_t value, Names names) {
  return value < names.size() ? std::string(names[value]) : fmt::format("{}", value);
}

std::size_t bytes_of(std::size_t count, std::size_t element_bytes) {
  if (count == 0) throw SetupError("making guarded data: there are no bytes to guard");
  if (count > window::part_bytes_max / element_bytes) {
    throw SetupError(fmt::format("making guarded data: {} elements of {} bytes: no program has so many bytes", count,
                                 element_bytes));
  }
  return count * element_bytes;
}

void expect_one_of(std::string_view option, std::uint64_t value, Names names) {
  if (value < names.size()) return;
  throw SetupError(fmt::format("making guarded data: {} is {}, and none of {}", option, value, fmt::join(names, ", ")));
}

void check(const Job& job, const GuardedOptions& options) {
  expect_one_of("GuardedOptions::on_write", static_cast<std::uint64_t>(options.on_write), on_write_names);
  expect_one_of("GuardedOptions::mover", static_cast<std::uint64_t>(options.mover), mover_names);
  if (options.home < 0 || options.home >= job.size()) {
    throw SetupError(fmt::format("making guarded data: GuardedOptions::home is {}, no rank of the job of {}",
                                 options.home.value(), job.size()));
  }
  if (job.size() > std::numeric_limits<ShortRank>::max()) throw SetupError("making guarded data: too many ranks");
}

SetupError no_memory(std::size_t bytes, int copies) {
  const bool by_each = copies > 1;
  return SetupError(
      fmt::format("making guarded data: {} were asked for{}, but {}: guard less{}, or raise the limit: see ulimit -v",
                  job::memory_text(bytes), by_each ? fmt::format(" by each of {} ranks", copies) : "",
                  job::available_memory_text(), by_each ? ", use fewer ranks on a host" : ""));
}

// Checks that there is enough memory: the kernel would grant it, and kill a process later. Skipped for small sizes,
// since the check is slow.
void expect_memory(std::size_t bytes, int copies) {
  constexpr std::size_t little_bytes = 1 << 20;
  const std::size_t all = bytes * static_cast<std::size_t>(copies);
  if (all > little_bytes && all > job::available_memory_bytes()) throw no_memory(bytes, copies);
}

// Returns true if this rank can put the data.
bool may_put(job::Session& session, std::size_t bytes, const GuardedOptions& options) {
  return options.mover != Mover::asker_gets && bytes >= session.settings().put_bytes &&
         bytes > GuardGiven::data_bytes_max && fabric::Engine::of(session).by_key() != nullptr;
}

// Throws in all ranks if one cannot continue, or if their arguments differ. Returns true if all ranks can put.
bool agree_on(Communicator& ranks, const std::exception_ptr& failure, std::size_t bytes, const GuardedOptions& options,
              bool puts) {
  struct Argument {
    std::string_view name;
    Names names;
  };
  constexpr std::array<Argument, 4> arguments{
      {{"bytes", {}}, {"on_write", on_write_names}, {"mover", mover_names}, {"home", {}}}};
  const std::array<std::uint64_t, arguments.size() + 1> mine{
      bytes, static_cast<std::uint64_t>(options.on_write), static_cast<std::uint64_t>(options.mover),
      static_cast<std::uint64_t>(options.home.value()), puts ? 1u : 0u};
  const auto said = agree(ranks, failure, "guarded data", mine);
  std::string differing;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (said[i].is_one()) continue;
    const auto text = [names = arguments[i].names](std::uint64_t value) { return text_of(value, names); };
    differing += fmt::format("{} from {} to {}, here {}; ", arguments[i].name, text(said[i].least),
                             text(said[i].greatest), text(mine[i]));
  }
  if (differing.empty()) return said.back().least != 0;
  throw SetupError(
      fmt::format("making guarded data: the ranks ask for different ones: {}they must be the same in all", differing));
}

LockMode mode_of(Use use) noexcept { return use == Use::write ? LockMode::exclusive : LockMode::shared; }

WindowOptions window_options() {
  WindowOptions options;
  options.notifications = 0;
  return options;
}

/// The way of data to other ranks. Without a window they are sent in messages.
struct Way {
  std::optional<Window> window;
  std::unique_ptr<window::Put> put;
};

// The way is the same in all ranks: if some data were put and some sent, older data could arrive last.
Way make_way(Job& job, Communicator& ranks, std::size_t bytes, const GuardedOptions& options, bool puts) {
  Way way;
  const bool gets = options.mover == Mover::asker_gets;
  if (!gets && !puts) return way;
  try {
    way.window.emplace(job, bytes, window_options());
  } catch (const std::exception&) {  // one rank has no memory, the others learn that a rank failed
    if (gets) throw;
    return way;  // messages need no window
  }
  if (gets) return way;
  way.put.reset(new (std::nothrow)
                    window::Put(*way.window));  // a rank that threw here would be missing in the agreement below
  const std::array<std::uint64_t, 1> opened{way.put && way.put->open() ? 1u : 0u};
  if (agree(ranks, {}, "guarded data", opened)[0].least == 0) return {};
  return way;
}

}  // namespace

Guarded::Guarded(Job& job, std::size_t count, std::size_t element_bytes, const GuardedOptions& options,
                 std::span<const std::byte> initial)
    : session_(job.session()), home_(options.home.value()) {
  ShareRuntime& runtime = ShareRuntime::of(session_);
  Communicator& ranks = runtime.ranks(job);
  const bool is_mapped = job.hosts() == 1;
  const int copies = is_mapped ? 1 : session_.ranks_here();
  std::exception_ptr failure;
  std::size_t bytes = 0;
  std::shared_ptr<Replica> made;
  try {
    bytes = bytes_of(count, element_bytes);
    check(job, options);
    expect_memory(bytes, copies);
    if (!is_mapped) made = runtime.replicas().make(bytes, options);
  } catch (const std::bad_alloc&) {
    failure = std::make_exception_ptr(no_memory(bytes, copies));
  } catch (...) {
    failure = std::current_exception();
  }
  const bool puts = agree_on(ranks, failure, bytes, options, !failure && may_put(session_, bytes, options));
  try {
    if (is_mapped) {
      map(job, bytes, initial);
    } else {
      Way way = make_way(job, ranks, bytes, options, puts);
      runtime.replicas().open(made, initial, std::move(way.window), std::move(way.put));
      replica_ = std::move(made);
    }
  } catch (const std::bad_alloc&) {  // only making a window can fail here, and it fails in all ranks
    throw no_memory(bytes, copies);
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("making guarded data of {}: {}", job::memory_text(bytes), error.what()));
  }
}

void Guarded::map(Job& job, std::size_t bytes, std::span<const std::byte> initial) {
  counter_at_ = (bytes + 7) / 8 * 8;
  window_.emplace(job, job.rank() == home_ ? counter_at_ + 8 : 0, window_options());
  data_ = window_->direct(window_->at(JobRank{home_}), bytes);
  if (job.rank() == home_) std::ranges::copy(initial, data_);
  if (window_->barrier() != Status::ok) throw SetupError("a rank died meanwhile");
}

Guarded::~Guarded() {
  if (!session_.in_own_process()) {
    new std::shared_ptr<Replica>(std::move(replica_));  // in a forked child it belongs to the parent: never freed
    return;
  }
  if (std::uncaught_exceptions() == 0 && is_locked(Use::read)) name_misuse("is freed while it is locked");
  ReplicaTable& replicas = ShareRuntime::of(session_).replicas();
  if (replica_) {
    replicas.free(replica_);
    return;
  }
  // All ranks use the home's part. A counter after the data counts the ranks that no longer need it.
  const GlobalAddress counter = window_->at(JobRank{home_}, counter_at_);
  (void)window_->fetch_add(counter, std::uint64_t{1});
  replicas.keep(std::move(*window_), [counter, ranks = static_cast<std::uint64_t>(session_.size())](Window& window) {
    const auto [status, freed] = window.fetch_add(counter, std::uint64_t{0});
    return status == Status::ok && freed < ranks;
  });
}

Status Guarded::lock(Use use) noexcept {
  if (replica_) return replica_->enter(use);
  const Status locked = window_->lock(JobRank{home_}, 0, mode_of(use));
  count(use, locked);
  return locked;
}

Status Guarded::try_lock(Use use) noexcept {
  if (replica_) return replica_->try_enter(use);
  const Status locked = window_->try_lock(JobRank{home_}, 0, mode_of(use));
  count(use, locked);
  return locked;
}

Status Guarded::unlock(Use use) noexcept {
  Status status = Status::invalid;
  if (replica_) {
    status = replica_->leave(use);
  } else if (is_locked(use)) {
    if (use == Use::write) {
      writing_.store(false, std::memory_order_relaxed);
    } else {
      readers_.fetch_sub(1, std::memory_order_relaxed);
    }
    status = window_->unlock(JobRank{home_}, 0);
  }
  if (status == Status::invalid) name_misuse("is unlocked and was not locked");
  return status;
}

std::byte* Guarded::bytes(Use use) const noexcept {
  if (has_assertions && !is_locked(use)) name_misuse("is looked at without its lock");
  return replica_ ? replica_->data() : data_;
}

void Guarded::count(Use use, Status locked) noexcept {
  if (locked != Status::ok && locked != Status::holder_died) return;
  if (use == Use::write) {
    writing_.store(true, std::memory_order_relaxed);
  } else {
    readers_.fetch_add(1, std::memory_order_relaxed);
  }
}

// Returns true if the variable is locked for `use`, or for writing.
bool Guarded::is_locked(Use use) const noexcept {
  if (replica_) return replica_->has_entered(use);
  return writing_.load(std::memory_order_relaxed) ||
         (use == Use::read && readers_.load(std::memory_order_relaxed) != 0);
}

void Guarded::name_misuse(const char* what) const noexcept {
  share::name_misuse(session_.rank(), "guarded data {}", what);
}

}  // namespace tonari::share

namespace tonari {

using share::Use;

namespace {

share::Guarded& used(const std::unique_ptr<share::Guarded>& guarded) noexcept {
  return share::used(guarded, "guarded data");
}

}  // namespace

GuardedBytes::GuardedBytes(Job& job, std::size_t count, std::size_t element_bytes, const GuardedOptions& options,
                           std::span<const std::byte> initial)
    : guarded_(std::make_unique<share::Guarded>(job, count, element_bytes, options, initial)) {}
GuardedBytes::GuardedBytes(GuardedBytes&&) noexcept = default;
GuardedBytes& GuardedBytes::operator=(GuardedBytes&&) noexcept = default;
GuardedBytes::~GuardedBytes() = default;

Status GuardedBytes::lock() noexcept { return used(guarded_).lock(Use::write); }
Status GuardedBytes::try_lock() noexcept { return used(guarded_).try_lock(Use::write); }
Status GuardedBytes::unlock() noexcept { return used(guarded_).unlock(Use::write); }
Status GuardedBytes::lock_shared() noexcept { return used(guarded_).lock(Use::read); }
Status GuardedBytes::try_lock_shared() noexcept { return used(guarded_).try_lock(Use::read); }
Status GuardedBytes::unlock_shared() noexcept { return used(guarded_).unlock(Use::read); }

void GuardedBytes::prefetch() noexcept {
  if (auto* const replica = used(guarded_).replica()) replica->prefetch();
}
Status GuardedBytes::update_now() noexcept {
  auto* const replica = used(guarded_).replica();
  return replica == nullptr ? Status::ok : replica->update_now();
}
void GuardedBytes::drop() noexcept {
  if (auto* const replica = used(guarded_).replica()) replica->drop();
}

std::byte* GuardedBytes::written() const noexcept { return used(guarded_).bytes(Use::write); }
const std::byte* GuardedBytes::read_only() const noexcept { return used(guarded_).bytes(Use::read); }

}  // namespace tonari
