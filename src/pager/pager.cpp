#include "pager/pager.hpp"

#include "base/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>

namespace tonari::pager {

namespace {

constexpr std::size_t pages_in(std::size_t bytes) noexcept { return bytes / page_bytes; }

std::size_t checked_limit(std::size_t limit_bytes) {
  if (limit_bytes >= Options::limit_bytes_min) return limit_bytes;
  throw SetupError("a pager with a limit of " + std::to_string(limit_bytes) + " bytes: give it " +
                   std::to_string(Options::limit_bytes_min) + " or more");
}

// Blocks signals while a thread is made: the thread inherits that, and signals go to the program's own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  SignalsBlocked(SignalsBlocked&&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Pager::Pager(Space& space, const Options& options)
    : space_(space), process_(::getpid()), page_mover_(space, checked_limit(options.limit_bytes), options.on_failure) {
  if (options.movers >= workers_max) {
    throw SetupError("a pager with " + std::to_string(options.movers) + " movers: give it fewer than " +
                     std::to_string(workers_max));
  }
  if (options.movers == 0) requests_.stop();  // no thread would serve requests
  const SignalsBlocked blocked;
  try {
    start("pager-faults", [this](WorkerContext& context) {
      context.reserve = Buffer{0};
      serve_faults(context);
    });
    for (unsigned mover = 0; mover < options.movers; ++mover) {
      start("pager-mover", [this](WorkerContext& context) { move_pages(context); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

Pager::~Pager() {
  if (::getpid() != process_) {
    // In a forked child the threads do not exist.
    for (std::jthread& each : threads_) each.detach();
    return;
  }
  while (const auto start = regions_.first()) (void)remove(*start);
  stop();
}

template <class Body>
void Pager::start(const char* name, Body body) {
  WorkerContext& context = *contexts_.emplace_back(std::make_unique<WorkerContext>(space_.scratch(contexts_.size())));
  threads_.emplace_back([body, name, &context] {
    ::pthread_setname_np(::pthread_self(), name);
    body(context);
  });
}

void Pager::stop() noexcept {
  requests_.stop();
  space_.stop_waiting();
  threads_.clear();
  page_mover_.rest();
}

void Pager::add(Address start, std::size_t bytes, Source& source, Contents contents) {
  add(start, bytes, source, contents, Pages::absent);
}

void Pager::add_in_use(Address start, std::size_t bytes, Source& source) {
  add(start, bytes, source, Contents::zeros, Pages::may_be_present);
}

void Pager::add(Address start, std::size_t bytes, Source& source, Contents contents, Pages pages) {
  const std::span<std::byte> tables = space_.tables(start, bytes, RegionTables::bytes_for(start, bytes));
  auto added = std::make_unique<Region>(start, bytes, source, contents, tables);
  added->has_unknown_pages.store(pages == Pages::may_be_present, std::memory_order_relaxed);
  Region& region = regions_.add(std::move(added));
  try {
    space_.prepare(region.start(), region.bytes());
    space_.faults().watch(region.start(), region.bytes());
  } catch (...) {
    (void)remove(start);
    throw;
  }
}

Status Pager::remove(Address start) noexcept {
  const std::unique_ptr<Region> region = regions_.remove(start);
  if (region == nullptr) return Status::invalid;
  page_mover_.forget(*region);
  space_.faults().unwatch(region->start(), region->bytes());
  return Status::ok;
}

// Calls visit(region, block, pages) for each block of the range, or for each that was ever held, and holds it
// meanwhile. Returns the last error of visit().
template <class Visit>
Status Pager::hold_each(Address start, std::size_t bytes, Blocks blocks, Visit visit) noexcept {
  if (start % page_bytes != 0 || bytes % page_bytes != 0) return Status::invalid;
  const auto region = regions_.find(start);
  if (!region || bytes > (*region)->end() - start) return Status::bounds;
  Status result = Status::ok;
  for (Address at = start; at < start + bytes;) {
    std::size_t block = (*region)->block_at(at);
    if (blocks == Blocks::known && (*region)->contents() == Contents::zeros) {
      block = (*region)->next_known(block);
      at = std::max(at, (*region)->address_of(block));
      if (at >= start + bytes) break;
    }
    const Address base = (*region)->address_of(block);
    const Address end = std::min(start + bytes, base + block_bytes);
    while (!(*region)->block(block).try_hold()) {
      if (space_.has_ended()) return Status::peer_gone;  // with a thread that held it
      std::this_thread::yield();
    }
    const BlockLock hold = page_mover_.adopt(**region, block);
    const Status status = visit(**region, block, PageSet::of(pages_in(at - base), pages_in(end - at)));
    if (status != Status::ok) result = status;
    at = end;
  }
  return result;
}

// Untouched blocks are zeros already.
Status Pager::discard(Address start, std::size_t bytes) noexcept {
  return hold_each(start, bytes, Blocks::known, [this](Region& region, std::size_t block, const PageSet& pages) {
    return page_mover_.discard(region, block, pages);
  });
}

Status Pager::know_present(Address start, std::size_t bytes) noexcept {
  const Status status =
      hold_each(start, bytes, Blocks::all, [this](Region& region, std::size_t block, const PageSet& pages) {
        page_mover_.know_present(region, block, pages);
        return Status::ok;
      });
  if (page_mover_.resident() > page_mover_.marks().high) requests_.ask_for_room();
  return status;
}

Status Pager::know_all_present(Address start) noexcept {
  const auto region = regions_.find(start);
  if (!region || (*region)->start() != start) return Status::invalid;
  (*region)->has_unknown_pages.store(false, std::memory_order_relaxed);
  return Status::ok;
}

Status Pager::hide(Address start, std::size_t bytes) noexcept {
  return hold_each(start, bytes, Blocks::all, [this](Region& region, std::size_t block, const PageSet& /*pages*/) {
    page_mover_.hide(region, block);
    return Status::ok;
  });
}

std::shared_ptr<Snapshot> Pager::take_snapshot(Snapshot::MakeKept make_kept) {
  auto snapshot = std::make_shared<Snapshot>(page_mover_, regions_.all(), std::move(make_kept));
  page_mover_.set_newest(snapshot);
  return snapshot;
}

void Pager::set_limit(std::size_t bytes) noexcept {
  page_mover_.set_limit(std::max(bytes, Options::limit_bytes_min));
  requests_.ask_for_room();
}

Statistics Pager::statistics() const noexcept {
  const Tally& tally = page_mover_.tally();
  Statistics result = tally.counters.read();
  result.resident_bytes = tally.resident() * page_bytes;
  result.resident_peak_bytes = tally.resident_peak() * page_bytes;
  result.touched_bytes = tally.touched() * page_bytes;
  return result;
}

}  // namespace tonari::pager
