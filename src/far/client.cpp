#include "far/client.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/futex.hpp"
#include "job/memory.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

namespace tonari::far {

namespace {

constexpr std::uint32_t buffers = 64;
constexpr unsigned movers = 2;                // two, so that one can work while the other waits for an agent
constexpr std::uint32_t agents = movers + 2;  // one for the fault thread, and one for requests

// The tables of the arena and of all ranges outside it. Each begins at a page; a block may be shared by two ranges.
std::uint64_t table_bytes(const Order& order) {
  if (order.faults == FaultsBy::keeper) return 0;
  return pager::RegionTables::bytes_for(0, PageStore::places_bytes(order)) +
         Channel::regions_max * 2 * pager::page_bytes;
}

}  // namespace

Client::Client(FileDescriptor socket, Servers& servers, const Order& order, const Program::Lent& lent,
               OnFailure on_failure)
    : servers_(servers),
      order_(order),
      on_failure_(std::move(on_failure)),
      program_(std::move(socket),
               {.arena_bytes = order.arena_bytes,
                .min_bytes = order.min_bytes,
                .buffers = buffers,
                .agents = agents,
                .table_bytes = table_bytes(order)},
               lent),
      identity_(program_.channel().identity),
      pages_(servers, order) {}

Client::~Client() {
  program_.end();
  end();
}

Client::Heard Client::hear() {
  const bool had_begun = has_begun();
  if (!program_.hear()) {
    end();
    return Heard::gone;
  }
  if (had_begun || program_.space() == nullptr) return Heard::nothing;
  begin();
  return Heard::begun;
}

void Client::begin() {
  limit_.store(limit_bytes_min, std::memory_order_relaxed);
  pager_.emplace(*program_.space(), pager::Options{.limit_bytes = limit_bytes_min,
                                                   .movers = movers,
                                                   .on_failure = [this](const auto& what) { page_failed(what); }});
  pager_->add(program_.hello().arena, order_.arena_bytes, pages_);
  parts_end_ = order_.arena_bytes;
  listener_ = std::jthread([this] { serve_requests(); });
}

// A block of the store is changed only by the thread that holds the block of the region. So the range has blocks of the
// store for itself, at the same offsets as its own blocks.
int Client::watch(const Request& request) noexcept {
  using pager::block_bytes;
  const auto [start, bytes] = std::pair(request.start, request.bytes);
  const std::uint64_t before = start % block_bytes;
  const std::uint64_t left = PageStore::places_bytes(order_) - parts_end_;
  if (bytes > left || before + bytes > left) return ENOMEM;
  try {
    SourcePart& part = parts_.emplace_back(pages_, parts_end_ + before);
    request.what == Request::What::watch ? pager_->add(start, bytes, part) : pager_->add_in_use(start, bytes, part);
  } catch (const std::exception&) {
    return EINVAL;
  }
  parts_end_ += (before + bytes + block_bytes - 1) / block_bytes * block_bytes;
  count_use(bytes);
  return 0;
}

// Called when the address space has ended, with all threads that wait in it. Its statistics are still read later.
void Client::end() noexcept {
  RemoteSpace* const space = program_.space();
  if (space == nullptr) return;
  space->end();
  if (!listener_.joinable()) return;
  ring_doorbell(program_.channel().keeper_doorbell);
  listener_.join();
}

void Client::rest() noexcept {
  if (pager_) pager_->stop();
}

std::shared_ptr<pager::Snapshot> Client::take_snapshot() {
  program_.space()->has_forked();
  return pager_->take_snapshot([this] { return std::make_unique<PageStore>(servers_, order_); });
}

void Client::set_limit(std::uint64_t bytes) noexcept {
  if (bytes != limit_.exchange(bytes, std::memory_order_relaxed)) pager_->set_limit(bytes);
}

std::uint64_t Client::touched_bytes() const noexcept { return pager_ ? pager_->statistics().touched_bytes : 0; }

WorkingSet::Finding Client::look_at_working_set() noexcept {
  if (!pager_) return {};
  const WorkingSet::Finding found = working_set_.look(monotonic_ns(), pager_->statistics(), limit_bytes());
  if (found.begins_anew) pager_->count_anew();
  return found;
}

// Called by a thread of the pager.
void Client::page_failed(const pager::Failure& failure) noexcept {
  using What = pager::Failure::What;
  if (failure.what == What::discard) return;  // it still reads as zeros
  if (is_of_file(failure)) return on_failure_(why_file_failed(failure));
  const auto at = failure.region + failure.page * pager::page_bytes;
  if (failure.status == Status::peer_gone) {
    return on_failure_(fmt::format("a server died and the page at {:#x} is lost; {}", at, second_copy(order_)));
  }
  switch (failure.what) {
    case What::wrong_bytes:
      return on_failure_(fmt::format(
          "a server{} returned other bytes for the page at {:#x} than were stored there",
          pages_.file() != nullptr ? fmt::format(", or the file in {},", order_.directory.data()) : "", at));
    case What::fetch:
      return on_failure_(fmt::format("the page at {:#x} could not be fetched: {}", at, explain(failure.status)));
    case What::discard:
    case What::store: break;
  }
  if (failure.status != Status::no_memory) {
    return on_failure_(fmt::format("no server could store the page at {:#x}: {}", at, explain(failure.status)));
  }
  if (servers_.capacity_bytes() == 0) {
    return on_failure_(fmt::format("a server died and there is no place left to store the page at {:#x}; {}", at,
                                   second_copy(order_)));
  }
  on_failure_(why_servers_are_full());
}

std::string Client::why_servers_are_full() const {
  const std::string capacity = job::memory_text(servers_.capacity_bytes());
  const std::string limit = job::memory_text(limit_.load(std::memory_order_relaxed));
  const bool is_sparse = !compresses(order_.store) && servers_.data_bytes() < servers_.used_bytes() / 2;
  if (is_sparse) {
    return fmt::format(
        "out of memory: the servers' {} are full, and so is the program's local limit of {}; the servers hold only {} "
        "of data, but the data are sparse, and each piece of 2 MiB with some of them takes 2 MiB; let the servers pack "
        "pages (--store lz4), give them more (--memory), use more of them, or raise --local",
        capacity, limit, job::memory_text(servers_.data_bytes()));
  }
  return fmt::format(
      "out of memory: the servers' {} are full, and so is the program's local limit of {}; give "
      "the servers more (--memory), use more of them, {}or raise --local",
      capacity, limit, compresses(order_.store) ? "" : "let them compress (--store lz4), ");
}

// With servers and a file, other bytes may come from either.
bool Client::is_of_file(const pager::Failure& failure) const noexcept {
  if (pages_.file() == nullptr || !pages_.has_servers()) return pages_.file() != nullptr;
  return failure.status != Status::peer_gone && failure.what != pager::Failure::What::wrong_bytes &&
         pages_.file()->has_failed();
}

std::string Client::why_file_failed(const pager::Failure& failure) const {
  if (failure.what == pager::Failure::What::wrong_bytes) {
    return fmt::format(
        "the file in {} returned other bytes for the page at {:#x} than were stored there: check the disk",
        order_.directory.data(), failure.region + failure.page * pager::page_bytes);
  }
  if (!pages_.has_servers() || failure.status != Status::no_memory) return pages_.file()->why_it_failed();
  return fmt::format("out of memory: the servers' {} are full, give them more (--memory); and {}",
                     job::memory_text(servers_.capacity_bytes()), pages_.file()->why_it_failed());
}

Statistics Client::statistics() const noexcept {
  if (!pager_) return {};
  Statistics all{.pager = pager_->statistics(),
                 .in_use_bytes = in_use_.load(std::memory_order_relaxed),
                 .in_use_peak_bytes = in_use_peak_bytes(),
                 .limit_bytes = limit_.load(std::memory_order_relaxed),
                 .processes = in_use_peak_bytes() != 0 ? 1U : 0U,
                 .reaches_everything = program_.hello().reaches_everything};
  if (const PackedStore* const packed = pages_.packed()) {
    all.kept_bytes = packed->kept_bytes();
    all.packed_bytes = packed->packed_bytes();
    all.packed_bytes_out = packed->packed_bytes_out();
  }
  if (const FileStore* const file = pages_.file()) {
    all.file_bytes = file->used_bytes();
    all.file_peak_bytes = file->used_peak_bytes();
    all.file_data_peak_bytes = file->data_peak_bytes();
    all.in_file = 1;
    if (!pages_.has_servers()) {
      all.stored_bytes = all.file_bytes;
      all.stored_peak_bytes = all.file_peak_bytes;
      all.stored_data_peak_bytes = all.file_data_peak_bytes;
    }
  }
  if (const TieredStore* const tiered = pages_.tiered()) {
    all.bytes_to_file = tiered->bytes_to_file();
    all.bytes_from_file = tiered->bytes_from_file();
  }
  return all;
}

void Client::serve_requests() noexcept {
  constexpr std::chrono::hours long_time{1};
  Channel& channel = program_.channel();
  for (;;) {
    // Read before the requests: a later request changes it, which ends the sleep below. Acquire: pairs with the release
    // in the program's ask(), so that the requests counted here are seen.
    const std::uint32_t seen = channel.keeper_doorbell.load(std::memory_order_acquire);
    for (Request& each : channel.requests) {
      // Acquire: pairs with the release of `asked` in the program's ask(), which publishes the request.
      if (each.state.load(std::memory_order_acquire) != Request::asked) continue;
      each.error = answer(each);
      each.state.store(Request::answered, std::memory_order_release);  // publishes the reply to ask()
      futex_wake(each.state, 1);
    }
    const RemoteSpace* const space = program_.space();
    if (space == nullptr || space->has_ended()) return;
    futex_wait(channel.keeper_doorbell, seen, long_time);
  }
}

void Client::count_use(std::uint64_t bytes) noexcept {
  const std::uint64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  in_use_peak_.store(std::max(now, in_use_peak_bytes()), std::memory_order_relaxed);
}

int Client::answer(Request& request) noexcept {
  switch (request.what) {
    case Request::What::watch:
    case Request::What::watch_in_use: return watch(request);
    case Request::What::know_present:
      return pager_->know_present(request.start, request.bytes) == Status::ok ? 0 : EINVAL;
    case Request::What::know_all_present: return pager_->know_all_present(request.start) == Status::ok ? 0 : EINVAL;
    case Request::What::hide: return pager_->hide(request.start, request.bytes) == Status::ok ? 0 : EINVAL;
    case Request::What::use: count_use(request.bytes); return 0;
    case Request::What::stop_using:
      in_use_.fetch_sub(std::min(request.bytes, in_use_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
      [[fallthrough]];
    case Request::What::discard: return pager_->discard(request.start, request.bytes) == Status::ok ? 0 : EINVAL;
    case Request::What::will_need: pager_->will_need(request.start, request.bytes); return 0;
    case Request::What::done_with: pager_->done_with(request.start, request.bytes); return 0;
    case Request::What::sequential:
      pager_->expect(request.start, request.bytes, pager::Pager::Pattern::usual);
      return 0;
    case Request::What::random: pager_->expect(request.start, request.bytes, pager::Pager::Pattern::random); return 0;
    case Request::What::statistics: {
      const Statistics now = statistics();
      request.statistics = {.in_use_bytes = now.in_use_bytes,
                            .local_bytes = now.pager.resident_bytes,
                            .limit_bytes = now.limit_bytes,
                            .faults = now.pager.faults,
                            .fault_ns = now.pager.fault_ns,
                            .blocks_read_ahead = now.pager.blocks_read_ahead,
                            .read_ahead_hits = now.pager.read_ahead_hits,
                            .bytes_in = now.pager.bytes_in,
                            .bytes_out = now.pager.bytes_out,
                            .wait_ns = now.pager.wait_ns,
                            .bytes_in_vain = now.pager.bytes_in_vain};
      return 0;
    }
  }
  return EINVAL;
}

}  // namespace tonari::far
