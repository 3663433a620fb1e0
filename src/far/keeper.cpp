#include "far/keeper.hpp"

#include "base/error.hpp"
#include "base/futex.hpp"
#include "job/arena.hpp"
#include "job/handshake.hpp"
#include "job/memory.hpp"
#include "job/session.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace tonari::far {

namespace {

constexpr std::uint64_t limit_bytes_min = 8ULL << 20;  // for less there is no room to work in
constexpr std::uint32_t buffers = 64;
constexpr unsigned movers = 2;                // one waits for an agent while the other does not
constexpr std::uint32_t agents = movers + 2;  // one for the fault thread, and one for requests
constexpr std::uint32_t leave = 0;            // the notification that lets servers go
constexpr int keeper_rank = 0;
constexpr auto second_copy = "--replicas 2 keeps a second copy of all";
constexpr long tick_ns = 10'000'000;

FileDescriptor connect_to(std::string_view front) {
  FileDescriptor connection = job::try_connect(front);
  if (!connection) {
    throw_system_error(fmt::format("reaching the `tonari far` at @{}", front),
                       "`tonari serve` as rank 0 is started by `tonari far`, and on its host");
  }
  if (job::peer_of(connection).user != ::geteuid()) {
    throw SetupError(fmt::format("the `tonari far` at @{} is another user's", front));
  }
  return connection;
}

void ring(const FileDescriptor& bell) noexcept {
  constexpr std::uint64_t one = 1;
  (void)!::write(bell.number(), &one, sizeof one);
}

std::vector<int> servers_of(const Job& job) {
  std::vector<int> ranks;
  for (int rank = 1; rank < job.size(); ++rank) ranks.push_back(rank);
  return ranks;
}

}  // namespace

Keeper::Keeper(Job& job, std::string_view front)
    : job_(job),
      window_(job, 0),
      control_(connect_to(front)),
      deaths_(std::make_shared<FileDescriptor>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
      clock_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      servers_(servers_of(job)) {
  if (!*deaths_ || !clock_) throw_system_error("eventfd, timerfd", "raise the limit of open files: see ulimit -n");
  job.on_death([deaths = deaths_](const Death&) { ring(*deaths); });
  if (window_.barrier() != Status::ok) throw SetupError("a server has gone before it had its memory; see what it said");
  Report ready{.what = Report::What::ready};
  ready.statistics.capacity_bytes = lent_bytes();
  ready.statistics.servers = static_cast<std::uint32_t>(servers_.size());
  job::send_message(control_, &ready, sizeof ready);
}

Keeper::~Keeper() {
  program_has_gone();
  for (const int rank : servers_)
    (void)window_.push_notified(window_.at(rank), {}, leave);  // who is dead need not hear
}

void Keeper::run() {
  while (!closed_) {
    std::array<pollfd, 4> wait{pollfd{control_.number(), POLLIN, 0},
                               {deaths_->number(), POLLIN, 0},
                               {clock_.number(), POLLIN, 0},
                               {program_ ? program_->descriptor() : -1, POLLIN, 0}};
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) throw_system_error("poll");
    if (wait[0].revents != 0) hear_order();
    if (wait[1].revents != 0) count_the_dead();
    if (wait[2].revents != 0) follow_use();
    if (wait[3].revents != 0) hear_program();
  }
}

void Keeper::hear_order() {
  Order order;
  FileDescriptor attached;
  if (job::receive_message(control_, &order, sizeof order, true, &attached) != sizeof order) {
    closed_ = true;  // `tonari far` has all it wants, or is gone
  } else if (order.what == Order::What::keep) {
    begin(order, std::move(attached));
  } else {
    const Report report{.what = Report::What::statistics, .statistics = statistics()};
    job::send_message(control_, &report, sizeof report);
  }
}

void Keeper::begin(const Order& order, FileDescriptor socket) {
  order_ = order;
  try {
    program_.emplace(
        std::move(socket),
        Program::Terms{
            .arena_bytes = order.arena_bytes, .min_bytes = order.min_bytes, .buffers = buffers, .agents = agents},
        lent());
  } catch (const SetupError& error) {
    fail(error.what());
  }
}

std::uint64_t Keeper::lent_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const int rank : servers_) bytes += window_.bytes(rank);
  return bytes;
}

// All servers of this host have their parts in one piece of its arena.
Program::Lent Keeper::lent() {
  std::byte* first = nullptr;
  std::byte* end = nullptr;
  for (const int rank : servers_) {
    std::byte* const part = window_.direct(window_.at(rank), window_.bytes(rank));
    if (part == nullptr) continue;
    first = first == nullptr ? part : std::min(first, part);
    end = std::max(end, part + window_.bytes(rank));
  }
  if (first == nullptr) return {};
  job::Arena& arena = job_.session().arena();
  const auto offset = arena.pool().place_of(first);
  if (!offset) throw SetupError("what servers on this host lend is not where programs can map it: that is our bug");
  return {.memory = {first, end}, .file = arena.memory().number(), .offset = *offset};
}

void Keeper::hear_program() {
  try {
    const bool had_space = program_->space() != nullptr;
    if (!program_->hear()) return program_has_gone();
    if (had_space || program_->space() == nullptr) return;
    pager::Source& source = make_source();
    limit_.store(limit_for(0), std::memory_order_relaxed);
    pager_.emplace(*program_->space(), pager::Options{.limit_bytes = limit_.load(std::memory_order_relaxed),
                                                      .movers = movers,
                                                      .on_failure = [this](const auto& what) { page_failed(what); }});
    pager_->add(program_->hello().arena, order_.arena_bytes, source);
  } catch (const SetupError& error) {
    fail(error.what());
    return program_has_gone();  // as far as we are concerned: its parent ends it
  }
  listener_ = std::jthread([this] { serve_requests(); });
  if (order_.limit.percent != 0) {
    const itimerspec often{.it_interval = {0, tick_ns}, .it_value = {0, tick_ns}};
    ::timerfd_settime(clock_.number(), 0, &often, nullptr);
  }
  const Report kept{.what = Report::What::kept, .statistics = statistics()};
  job::send_message(control_, &kept, sizeof kept);  // before the program can have ended
  program_->go();
}

pager::Source& Keeper::make_source() {
  const bool is_packed = order_.store == StoreKind::lz4;
  store_.emplace(window_, servers_, order_.replicas, is_packed ? lent_bytes() : order_.arena_bytes);
  if (!is_packed) return *store_;
  return packed_.emplace(*store_, order_.arena_bytes);
}

// Its address space is gone, with all that waits in it. What it has done is asked for later.
void Keeper::program_has_gone() noexcept {
  if (!program_) return;
  if (RemoteSpace* const space = program_->space()) space->end();
  if (listener_.joinable()) {
    ring_bell(program_->channel().keeper_bell);
    listener_.join();
  }
  if (pager_) at_end_ = statistics();
  pager_.reset();
  packed_.reset();
  store_.reset();
  program_.reset();
  constexpr itimerspec never{};
  ::timerfd_settime(clock_.number(), 0, &never, nullptr);
}

void Keeper::count_the_dead() {
  std::uint64_t count = 0;
  (void)!::read(deaths_->number(), &count, sizeof count);
  for (const int rank : std::exchange(servers_, {})) {
    if (job_.alive(rank)) {
      servers_.push_back(rank);
      continue;
    }
    const std::uint64_t lost = store_ ? store_->server_died(rank) : 0;
    if (lost == 0) continue;
    fail(fmt::format("server {} is gone, and with it {} of the program's data; {}", rank, job::memory_text(lost),
                     second_copy));
  }
  if (servers_.empty()) fail("no server is left");
}

void Keeper::follow_use() noexcept {
  std::uint64_t ticks = 0;
  (void)!::read(clock_.number(), &ticks, sizeof ticks);
  if (!pager_) return;
  const std::uint64_t limit = limit_for(pager_->statistics().touched_bytes);
  if (limit == limit_.exchange(limit, std::memory_order_relaxed)) return;
  pager_->set_limit(limit);
}

std::uint64_t Keeper::limit_for(std::uint64_t touched_bytes) const noexcept {
  if (order_.limit.percent == 100) return order_.arena_bytes;  // all of what it may ever touch
  const std::uint64_t share = touched_bytes / 100 * order_.limit.percent;
  return std::max(order_.limit.percent != 0 ? share : order_.limit.bytes, limit_bytes_min);
}

// The program cannot go on. Whoever waits for a page waits until `tonari far` has ended it.
void Keeper::fail(std::string_view why) noexcept {
  if (failed_.exchange(true, std::memory_order_relaxed)) return;
  Report report{.what = Report::What::failed};
  report.say(why);
  job::send_message(control_, &report, sizeof report);
}

// By a thread of the pager.
void Keeper::page_failed(const pager::Failure& failure) noexcept {
  using What = pager::Failure::What;
  const auto at = failure.region + failure.page * pager::page_bytes;
  if (failure.status == Status::peer_gone) {
    return fail(fmt::format("a server is gone, and with it the page at {:#x}; {}", at, second_copy));
  }
  switch (failure.what) {
    case What::wrong_bytes:
      return fail(fmt::format("a server gave other bytes for the page at {:#x} than it was given", at));
    case What::fetch: return fail(fmt::format("the page at {:#x} does not come back: {}", at, explain(failure.status)));
    case What::discard: return;  // it reads as zeros all the same
    case What::store: break;
  }
  if (failure.status != Status::no_memory) {
    return fail(fmt::format("no server takes the page at {:#x}: {}", at, explain(failure.status)));
  }
  if (store_->capacity_bytes() == 0) {
    return fail(fmt::format("a server is gone, and with it the last place for the page at {:#x}; {}", at, second_copy));
  }
  fail(fmt::format(
      "out of memory: the servers' {} are full, and so are the {} that the program may have locally; give "
      "the servers more (--memory), use more of them, or raise --local",
      job::memory_text(store_->capacity_bytes()), job::memory_text(limit_.load(std::memory_order_relaxed))));
}

Statistics Keeper::statistics() const noexcept {
  if (!pager_) return at_end_;
  return {.pager = pager_->statistics(),
          .in_use_bytes = in_use_.load(std::memory_order_relaxed),
          .limit_bytes = limit_.load(std::memory_order_relaxed),
          .stored_bytes = store_->used_bytes(),
          .capacity_bytes = store_->capacity_bytes(),
          .kept_bytes = packed_ ? packed_->kept_bytes() : 0,
          .packed_bytes = packed_ ? packed_->packed_bytes() : 0,
          .packed_bytes_out = packed_ ? packed_->packed_bytes_out() : 0,
          .servers = static_cast<std::uint32_t>(servers_.size()),
          .reaches_everything = program_->hello().reaches_everything};
}

void Keeper::serve_requests() noexcept {
  constexpr std::chrono::hours long_time{1};
  Channel& channel = program_->channel();
  for (;;) {
    const std::uint32_t seen = channel.keeper_bell.load(std::memory_order_acquire);
    for (Request& each : channel.requests) {
      if (each.state.load(std::memory_order_acquire) != Request::asked) continue;
      each.error = answer(each);
      each.state.store(Request::answered, std::memory_order_release);
      futex_wake(each.state, 1);
    }
    if (program_->space()->has_ended()) return;
    futex_wait(channel.keeper_bell, seen, long_time);
  }
}

int Keeper::answer(const Request& request) noexcept {
  switch (request.what) {
    case Request::What::use: in_use_.fetch_add(request.bytes, std::memory_order_relaxed); return 0;
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
  }
  return EINVAL;
}

void lend(Job& job, std::uint64_t bytes, bool at_once) {
  job.on_death([](const Death&) {});  // the keeper decides what the death of another server means
  Window window(job, bytes);
  if (at_once && ::madvise(window.local().data(), window.local().size(), MADV_POPULATE_WRITE) != 0) {
    throw_system_error(fmt::format("taking {} of memory at once", job::memory_text(bytes)),
                       "lend less, or leave --at-once out");
  }
  (void)window.barrier();  // if another has gone meanwhile, the keeper says so and goes
  // Each death of another server is told, too.
  while (window.wait_notified(leave, 1) != Status::ok && job.alive(keeper_rank)) {
  }
}

}  // namespace tonari::far
