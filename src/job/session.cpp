#include "job/session.hpp"

#include "base/clock.hpp"
#include "base/futex.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "job/ending.hpp"
#include "job/identity.hpp"
#include "job/neighbour.hpp"
#include "job/network.hpp"
#include "job/signals.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

namespace tonari::job {

namespace {

constexpr std::chrono::milliseconds heartbeat{500};   // interval at which the service thread checks without being woken
constexpr std::chrono::milliseconds leave_look{100};  // interval at which a leaving rank checks the others itself

// Ends the process at once. No destructor may run, because destructors would wait for ranks that are dead.
[[noreturn]] void stop_process(int status = 1) noexcept { ::_exit(status); }

// Writes out what the program has printed. Skips a stream that a thread is using: it may never let go of it.
void flush_output() noexcept {
  for (std::FILE* const stream : {stdout, stderr}) {
    if (::ftrylockfile(stream) != 0) continue;
    std::fflush(stream);
    ::funlockfile(stream);
  }
}

}  // namespace

Session::Session(std::unique_ptr<Joining> joining, Settings settings)
    : joining_(std::move(joining)),
      settings_(std::move(settings)),
      host_name_(this_host_name()),
      process_(::getpid()),
      exceptions_(std::uncaught_exceptions()) {
  member_ = joining_->join(settings_);
  guarded_copies_ = member_.direct_copies &&
                    (!member_.threads || can_copy_here());  // ranks that are processes have tested it while joining
  try {
    log_ = make_logger(rank(), settings_.log);
    if (rank() == 0 && !threads()) {
      for (const std::string& line : unknown_settings()) log_->warn(line);
    }
    attachment_told_.resize(static_cast<std::size_t>(size()));
    handler_told_.resize(static_cast<std::size_t>(size()));
    left_told_.resize(static_cast<std::size_t>(size()));
    start_network();
    arena().advance(rank(), Phase::running);
    start_service();
    if (network_ != nullptr) attach_fabric(*this);
  } catch (...) {
    arena().mark_dead(rank(), 0, 1);  // it has joined, so the other ranks wait for it
    throw;
  }
}

void Session::start_network() {
  if (size() == 1 || (member_.hosts.empty() && settings_.apart != "network")) return;
  network_ = make_network(member_, settings_);
  Addresses addresses = joining_->exchange(network_->address());
  for (int other = 0; other < size(); ++other) {
    if (is_remote(other)) network_->introduce(other, std::move(addresses[static_cast<std::size_t>(other)]));
  }
}

std::shared_ptr<Session> Session::of_process(User user) {
  static constinit std::mutex lock;
  static std::weak_ptr<Session>& shared = *new std::weak_ptr<Session>;  // threads may join while the process exits
  const std::lock_guard guard(lock);
  std::shared_ptr<Session> present = shared.lock();
  if (present != nullptr && present->in_own_process() && (user == User::front || present->has_front_)) {
    present->has_front_ = true;
    return present;
  }
  auto made = std::make_shared<Session>(detect_joining(), read_settings());
  made->has_front_ = user == User::front;
  if (present == nullptr || !present->in_own_process()) shared = made;
  return made;
}

Session::~Session() {
  if (!in_own_process()) {
    forget();
    return;
  }

  if (std::uncaught_exceptions() > exceptions_) {
    stop_service();  // first, because it may be reading memory that other ranks reclaim from the dead
    arena().mark_dead(rank(), 0, 1);
  } else {
    leave();
  }
  attachment_.reset();
  network_.reset();
  arena().advance(rank(), Phase::left);
}

void Session::leave() noexcept {
  if (Attachment* const layer = attachment()) layer->settle();
  RankBlock& own = block();
  own.wait_peer.store(-1, std::memory_order_relaxed);
  own.wait_since_ns.store(monotonic_ns(), std::memory_order_relaxed);
  own.wait.store(Wait::leave, std::memory_order_release);  // publishes the time
  // (1) Publishes what settle() has done to the service thread, which from now on serves whatever the setting says.
  leaving_.store(true, std::memory_order_release);
  arena().mark_leaving(rank());
  arena().ring_service_doorbell(rank());

  wait_for_all_to_leave();
  own.wait.store(Wait::nothing, std::memory_order_relaxed);
  stop_service();
  notice_deaths();  // the last rank may have left by dying, unnoticed by the service thread
}

void Session::wait_for_all_to_leave() noexcept {
  const auto since_ns = monotonic_ns();
  auto silent_ns = settings_.warn_seconds * 1'000'000'000;  // 0: never warn
  auto& left = arena().header().left;
  for (auto seen = left.load(std::memory_order_acquire); !arena().all_leave();
       seen = left.load(std::memory_order_acquire)) {
    futex_wait(left, seen, leave_look);
    if (silent_ns == 0 || monotonic_ns() - since_ns < silent_ns) continue;
    silent_ns = 0;
    log_->warn(
        "began to leave the job {} s ago and still waits for rank {} to do the same; `tonari status` shows what that "
        "rank is doing (TONARI_WARN_SECONDS)",
        settings_.warn_seconds, first_that_stays());
  }
}

int Session::first_that_stays() const noexcept {
  int other = 0;
  while (other < size() && arena().block(other).phase.load(std::memory_order_relaxed) >= Phase::leaving) ++other;
  return other;
}

// A forked child has neither the arena nor the service thread, and its parent is still in the job: it must release
// nothing. The objects are leaked, because destroying them would unmap memory, announce that the rank leaves, and wait
// for a thread that does not exist.
void Session::forget() noexcept {
  new std::unique_ptr<Joining>(std::move(joining_));
  new std::shared_ptr<Arena>(std::move(member_.arena));
  new std::unique_ptr<Attachment>(std::move(attachment_));
  new std::unique_ptr<Network>(std::move(network_));
  new std::thread(std::move(service_));
}

int Session::host(int of_rank) const noexcept {
  if (settings_.apart != "none") {
    return member_.hosts.empty() ? of_rank / static_cast<int>(settings_.apart_ranks) : of_rank;
  }
  return member_.hosts.empty() ? 0 : member_.hosts[static_cast<std::size_t>(of_rank)];
}

int Session::hosts() const noexcept {
  if (settings_.apart != "none") return host(size() - 1) + 1;
  return member_.hosts.empty() ? 1 : static_cast<int>(member_.host_names.size());
}

int Session::ranks_here() const noexcept {
  if (member_.hosts.empty()) return size();
  return static_cast<int>(std::ranges::count(member_.hosts, member_.hosts[static_cast<std::size_t>(rank())]));
}

bool Session::in_own_process() const noexcept { return ::getpid() == process_; }

void Session::on_death(std::function<void(const Death&)> handler) {
  {
    const std::lock_guard guard(handler_mutex_);
    // (2) Pairs with outlives_deaths(), and with JobServer::lives_on() in another process. It publishes no other data:
    // handler_ is read under the mutex.
    block().lives_on.store(handler || outlives_ ? 1 : 0, std::memory_order_release);
    handler_ = std::move(handler);
  }
  arena().ring_service_doorbell(rank());  // handles deaths that came before it
}

void Session::outlive_deaths() {
  const std::lock_guard guard(handler_mutex_);
  outlives_ = true;
  block().lives_on.store(1, std::memory_order_release);  // pairs as (2)
}

void Joining::abort(int /*exit_status*/, const std::string& line) noexcept { write_line(line); }

void Session::abort(int code) noexcept {
  Arena::Abort first{rank(), code};
  if (in_own_process()) {
    flush_output();
    arena().abort(rank(), code);
    first = *arena().aborted();
    if (first.rank == rank()) {
      joining_->abort(first.exit_status(), fmt::format("tonari: rank {} (pid {}, host {}) aborted the job with code {}",
                                                       rank(), ::getpid(), host_name_, first.code));
    }
  }
  stop_process(first.exit_status());
}

// If several ranks abort, or several threads of one, each names the first.
void Session::notice_abort() noexcept {
  constexpr std::chrono::seconds own_patience{5};  // for Joining::abort(), which the aborting thread calls meanwhile
  const auto abort = arena().aborted();
  if (!abort) return;
  const std::uint64_t now_ns = monotonic_ns();
  if (abort_seen_ns_ == 0) abort_seen_ns_ = now_ns;
  const std::chrono::nanoseconds patience =
      abort->rank == rank() || threads() ? std::chrono::nanoseconds{own_patience} : joining_->abort_patience();
  if (now_ns - abort_seen_ns_ >= static_cast<std::uint64_t>(patience.count())) stop_process(abort->exit_status());
}

Session::Attachment* Session::attachment() noexcept {
  const std::lock_guard guard(attach_mutex_);
  return attachment_.get();
}

void Session::start_service() {
  const AllSignalsBlocked none_for_the_new_thread;
  service_ = start_thread("the service thread", [this] { serve_until_stopped(); });
}

void Session::stop_service() noexcept {
  // (3) Publishes no other data. The doorbell, rung after it, ends the service thread's sleep.
  stopping_.store(true, std::memory_order_release);
  arena().ring_service_doorbell(rank());
  service_.join();
}

void Session::serve_until_stopped() noexcept {
  ::pthread_setname_np(::pthread_self(), "tonari-service");
  auto& doorbell = block().service_doorbell;
  const auto heartbeat_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds{heartbeat}.count());
  for (auto looked_ns = monotonic_ns();;) {
    // Read before the checks below: a later event changes it.
    const auto seen = doorbell.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_acquire)) return;  // pairs with (3)
    notice_abort();
    notice_deaths();
    if (const auto now_ns = monotonic_ns(); now_ns - looked_ns >= heartbeat_ns) {
      looked_ns = now_ns;
      notice_leavers();
      tell_of_full_peer(now_ns);
      if (!joining_->starter_alive()) {
        write_line(fmt::format("tonari: rank {} stops: the `tonari run` that started it has ended", rank()));
        stop_process();
      }
    }
    // While the rank leaves, none of its other threads makes progress. So this thread serves whatever the setting says,
    // and wakes for arrivals from the network. Acquire: pairs with (1).
    const bool serves = settings_.service_thread || leaving_.load(std::memory_order_acquire);
    Attachment* const layer = serves ? attachment() : nullptr;
    if (layer != nullptr) layer->serve();
    if (layer == nullptr || !layer->rest(seen, heartbeat)) futex_wait(doorbell, seen, heartbeat);
  }
}

void Session::notice_deaths() noexcept {
  // Acquire: pairs with Arena::mark_dead(), which sets the phase of the dead rank before it counts the death.
  if (arena().header().deaths.load(std::memory_order_acquire) == 0) return;
  Attachment* const layer = attachment();
  for (int other = 0; other < size(); ++other) {
    if (other != rank() && is_dead(other)) tell_of_death(other, layer);
  }
}

// No doorbell rings when a rank leaves, since nearly always the other ranks leave too. The heartbeat notices it.
void Session::notice_leavers() noexcept {
  // Acquire: pairs with Arena::count_left(), which comes after the rank's new phase; and (1).
  if (arena().header().left.load(std::memory_order_acquire) == 0 || leaving_.load(std::memory_order_acquire)) return;
  Attachment* const layer = attachment();
  for (int other = 0; layer != nullptr && other < size(); ++other) {
    // Acquire: everything that the rank sent before is visible in our rings.
    const Phase phase = arena().block(other).phase.load(std::memory_order_acquire);
    const bool leaves = other != rank() && (phase == Phase::leaving || phase == Phase::left);
    char& told = left_told_[static_cast<std::size_t>(other)];
    if (leaves && told == 0) told = layer->left(other) ? 1 : 0;
  }
}

// A sender waits while its peer's unexpected messages are at their limit. If two ranks send to each other like this,
// they wait forever, hence the warning.
void Session::tell_of_full_peer(std::uint64_t now_ns) noexcept {
  const RankBlock& own = block();
  if (settings_.warn_seconds == 0 || own.wait.load(std::memory_order_acquire) != Wait::send) return;
  const int peer = own.wait_peer.load(std::memory_order_relaxed);
  const std::uint64_t since_ns = own.wait_since_ns.load(std::memory_order_relaxed);
  const bool is_new = since_ns != told_of_wait_since_ns_ && now_ns - since_ns >= settings_.warn_seconds * 1'000'000'000;
  if (peer < 0 || !is_new || arena().block(peer).full.load(std::memory_order_relaxed) == 0) return;
  told_of_wait_since_ns_ = since_ns;
  log_->warn(
      "has waited {} s to send to rank {}, whose unreceived messages have reached their limit: that rank must receive "
      "some, or raise TONARI_UNEXPECTED_BYTES (TONARI_WARN_SECONDS sets when to warn)",
      settings_.warn_seconds, peer);
}

// Describes how a rank died. For a rank of another host only the network knows the reason. If it never had a
// connection, that rank may be alive.
std::string Session::how_it_went(int dead) const {
  const RankBlock& of = arena().block(dead);
  const int signal = of.death_signal.load(std::memory_order_relaxed);  // published by the phase
  const int status = of.death_status.load(std::memory_order_relaxed);
  if (signal != 0 || status != Ending::unknown) return describe({signal, status});
  const auto loss = network_ != nullptr ? network_->loss(dead) : std::nullopt;
  if (!loss) return "has gone";
  return fmt::format("{} ({})", loss->was_reached ? "has gone" : "could not be reached", loss->reason);
}

std::string Session::describe_deaths() const {
  constexpr int named_max = 4;
  std::string text;
  int count = 0;
  for (int other = 0; other < size(); ++other) {
    if (!is_dead(other) || ++count > named_max) continue;
    text +=
        fmt::format("{}rank {} (host {}) {}", count == 1 ? "" : ", ", other, host_name_of(other), how_it_went(other));
  }
  if (count > named_max) text += fmt::format(" and {} more", count - named_max);
  return text;
}

bool Session::outlives_deaths() const noexcept {
  return threads() || arena().block(rank()).lives_on.load(std::memory_order_acquire) != 0;  // pairs with (2)
}

// Any thread may call it. The starter reports the reason in one line for all ranks, if it can.
void Session::stop_for(int dead) const noexcept {
  while (stops_.test_and_set(std::memory_order_relaxed)) ::pause();  // another thread is ending the process
  if (const auto abort = arena().aborted()) stop_process(abort->exit_status());
  if (!joining_->starter_reports_deaths()) {
    write_line(fmt::format("tonari: rank {} stops because rank {} (host {}) {}", rank(), dead, host_name_of(dead),
                           how_it_went(dead)));
  }
  stop_process();
}

void Session::stop_unless_outlived(int dead) const noexcept {
  if (!outlives_deaths()) stop_for(dead);
}

bool Session::somebody_died() const noexcept {
  // Acquire: pairs with Arena::mark_dead(), as in notice_deaths().
  if (arena().header().deaths.load(std::memory_order_acquire) == 0) return false;
  for (int other = 0; other < size(); ++other) {
    if (!alive(other)) return true;
  }
  return false;
}

const std::string& Session::host_name_of(int of_rank) const noexcept {
  const auto number = static_cast<std::size_t>(member_.hosts.empty() ? 0 : host(of_rank));
  return number < member_.host_names.size() ? member_.host_names[number] : host_name_;
}

void Session::tell_of_death(int dead, Attachment* layer) noexcept {
  const auto index = static_cast<std::size_t>(dead);
  std::function<void(const Death&)> handler;
  {
    const std::lock_guard guard(handler_mutex_);
    handler = handler_;
  }
  if (!outlives_deaths()) stop_for(dead);

  char& told = attachment_told_[index];
  if (layer != nullptr && told == 0) told = layer->died(dead) ? 1 : 0;
  if (handler && std::exchange(handler_told_[index], 1) == 0) {
    const RankBlock& of = arena().block(dead);
    handler({.rank = JobRank{dead},
             .host = host_name_of(dead),
             .signal = of.death_signal.load(std::memory_order_relaxed),  // published by the phase
             .exit_status = of.death_status.load(std::memory_order_relaxed)});
  }
}

}  // namespace tonari::job
