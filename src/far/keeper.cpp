#include "far/keeper.hpp"

#include "base/error.hpp"
#include "far/budget.hpp"
#include "job/arena.hpp"
#include "job/handshake.hpp"
#include "job/memory.hpp"
#include "job/session.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

namespace tonari::far {

namespace {

constexpr std::uint32_t leave = 0;  // the notification that ends lend() at the servers
constexpr int keeper_rank = 0;
constexpr long tick_ns = 10'000'000;
constexpr long slow_tick_ns = 500'000'000;  // while only the working sets are watched

FileDescriptor connect_to(std::string_view front) {
  FileDescriptor connection = job::try_connect(front);
  if (!connection) {
    throw_system_error(fmt::format("connecting to the `tonari far` at @{}", front),
                       "start rank 0 of `tonari serve` only through `tonari far`, which starts it on its own host");
  }
  if (job::peer_of(connection).user != ::geteuid()) {
    throw SetupError(fmt::format("the `tonari far` at @{} belongs to another user", front));
  }
  return connection;
}

void ring(const FileDescriptor& doorbell) noexcept {
  constexpr std::uint64_t one = 1;
  (void)!::write(doorbell.number(), &one, sizeof one);
}

std::vector<int> servers_of(const Job& job) {
  std::vector<int> ranks;
  for (int rank = 1; rank < job.size(); ++rank) ranks.push_back(rank);
  return ranks;
}

// When a process ends, its current amounts are dropped; its totals stay counted.
void forget_what_it_has(Statistics& of) noexcept {
  of.pager.resident_bytes = of.pager.touched_bytes = 0;
  of.in_use_bytes = of.limit_bytes = of.stored_bytes = of.kept_bytes = of.packed_bytes = of.file_bytes = 0;
}

void add(Statistics& to, const Statistics& one) noexcept {
  to.pager += one.pager;
  to.in_use_bytes += one.in_use_bytes;
  to.in_use_peak_bytes += one.in_use_peak_bytes;
  to.limit_bytes += one.limit_bytes;
  to.stored_bytes += one.stored_bytes;
  to.stored_peak_bytes += one.stored_peak_bytes;
  to.stored_data_peak_bytes += one.stored_data_peak_bytes;
  to.kept_bytes += one.kept_bytes;
  to.packed_bytes += one.packed_bytes;
  to.packed_bytes_out += one.packed_bytes_out;
  to.file_bytes += one.file_bytes;
  to.file_peak_bytes += one.file_peak_bytes;
  to.file_data_peak_bytes += one.file_data_peak_bytes;
  to.bytes_to_file += one.bytes_to_file;
  to.bytes_from_file += one.bytes_from_file;
  to.processes += one.processes;
  to.reaches_everything |= one.reaches_everything;
  to.in_file |= one.in_file;
}

}  // namespace

Keeper::Keeper(Job& job, std::string_view front)
    : job_(job),
      available_bytes_(job::available_memory_bytes()),
      window_(job, 0),
      front_(front),
      control_(connect_to(front)),
      deaths_(std::make_shared<FileDescriptor>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
      clock_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      heirs_gone_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!*deaths_ || !clock_ || !heirs_gone_)
    throw_system_error("creating eventfds and a timerfd", "raise the limit of open files with ulimit -n");
  job.on_death([deaths = deaths_](const Death&) { ring(*deaths); });
  if (window_.barrier() != Status::ok)
    throw SetupError("a server ended before it had allocated its memory: see its error message");
  Report ready{.what = Report::What::ready};
  for (const int rank : servers_of(job)) ready.statistics.capacity_bytes += window_.bytes(JobRank{rank});
  tell(ready);
}

Keeper::~Keeper() {
  heirs_.reset();
  clients_.clear();
  for (const int rank : servers_of(job_)) {
    (void)window_.push_notified(window_.at(JobRank{rank}), {}, leave);  // fails for a dead server, which is no harm
  }
}

void Keeper::run() {
  while (!closed_) {
    std::vector<pollfd> wait{{control_.number(), POLLIN, 0},
                             {deaths_->number(), POLLIN, 0},
                             {clock_.number(), POLLIN, 0},
                             {door_.number(), POLLIN, 0},
                             {heirs_gone_.number(), POLLIN, 0}};
    const std::size_t others = wait.size();
    for (const auto& each : clients_) wait.push_back({each->descriptor(), POLLIN, 0});
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) throw_system_error("poll");
    auto client = clients_.begin();
    for (const pollfd& each : std::span(wait).subspan(others)) {
      const auto one = client++;
      if (each.revents != 0) hear(one);
    }
    if (wait[0].revents != 0) hear_order();
    if (wait[1].revents != 0) count_the_dead();
    if (wait[2].revents != 0) {
      share_limit();
      look_at_working_sets();
    }
    if (wait[3].revents != 0) admit();
    if (wait[4].revents != 0) tell_if_all_gone();
  }
}

void Keeper::hear_order() {
  Order order;
  FileDescriptor attached;
  if (job::receive_message(control_, &order, sizeof order, true, &attached) != sizeof order) {
    closed_ = true;  // `tonari far` is done, or has died
  } else if (order.what == Order::What::keep) {
    begin(order, std::move(attached));
  } else {
    tell({.what = Report::What::statistics, .statistics = statistics()});
  }
}

void Keeper::tell(const Report& report) noexcept { job::send_message(control_, &report, sizeof report); }

void Keeper::begin(const Order& order, FileDescriptor socket) {
  order_ = order;
  local_bytes_max_ = local_bytes_max(available_bytes_, lent().memory.size(), order.limit);
  servers_.emplace(window_, servers_of(job_), order.replicas);
  ring(*deaths_);  // to count deaths before this point
  door_ = job::listen_at(door_of(front_));
  heirs_.emplace(door_of(front_), Heirs::Calls{.find = [this](std::uint64_t identity) { return find(identity); },
                                               .one_gone = [this] { ring(heirs_gone_); },
                                               .advise = [this](std::string_view text) { advise(text); },
                                               .failed = [this](std::string_view why) { fail(why); }});
  const bool varies = order.with_children != 0 || (order.limit.percent != 0 && order.limit.percent != 100);
  const long interval_ns = varies ? tick_ns : slow_tick_ns;
  const itimerspec ticks{.it_interval = {0, interval_ns}, .it_value = {0, interval_ns}};
  ::timerfd_settime(clock_.number(), 0, &ticks, nullptr);
  add_client(std::move(socket));
}

void Keeper::admit() {
  FileDescriptor connection{::accept4(door_.number(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (!connection && (errno == EMFILE || errno == ENFILE)) {
    return fail("the keeper has no descriptor left for another process: raise the limit of open files with ulimit -n");
  }
  if (connection && may_be_admitted(connection)) add_client(std::move(connection));
}

// Without --children, one process has far memory. That is the program; it may execute other programs, as `env` does,
// and it may start others and have no use for far memory itself, as `timeout` does.
bool Keeper::may_be_admitted(const FileDescriptor& connection) const {
  const job::Peer peer = job::peer_of(connection);
  if (peer.user != ::geteuid()) return false;
  if (order_.with_children != 0 || peer.pid == order_.program) return true;
  return std::ranges::none_of(clients_, [](const auto& each) { return each->in_use_peak_bytes() != 0; });
}

void Keeper::add_client(FileDescriptor socket) {
  try {
    auto client = std::make_shared<Client>(std::move(socket), *servers_, order_, lent(),
                                           [this](std::string_view why) { fail(why); });
    const std::lock_guard guard(clients_mutex_);
    clients_.push_back(std::move(client));
  } catch (const SetupError& error) {
    fail(error.what());
  }
}

void Keeper::hear(Clients::iterator client) {
  try {
    const Client::Heard heard = (*client)->hear();
    if (heard == Client::Heard::gone) return remove(client);
    if (heard == Client::Heard::nothing) return;
  } catch (const SetupError& error) {
    fail(error.what());
    return remove(client);  // the process itself is ended by `tonari far`
  }
  share_limit();
  tell({.what = Report::What::kept, .statistics = statistics()});  // before the program can have ended
  (*client)->go();
}

void Keeper::remove(Clients::iterator client) {
  if ((*client)->stays_local()) ++ended_.stayed_local;
  if ((*client)->has_begun()) {
    forget_what_it_has(ended_);
    add(ended_, (*client)->statistics());
    (*client)->rest();
  }
  std::erase_if(ended_clients_, [](const auto& each) { return each.expired(); });
  ended_clients_.push_back(*client);
  std::shared_ptr<Client> ended = *client;
  {
    const std::lock_guard guard(clients_mutex_);
    clients_.erase(client);
  }
  ended.reset();  // outside the lock; forked children may still need it
  tell_if_all_gone();
}

void Keeper::tell_if_all_gone() {
  std::uint64_t count = 0;
  (void)!::read(heirs_gone_.number(), &count, sizeof count);
  if (clients_.empty() && heirs_->count() == 0) tell({.what = Report::What::all_gone});  // with `living` 0
}

// Called by the thread of `heirs_`.
std::shared_ptr<Client> Keeper::find(std::uint64_t identity) {
  const std::lock_guard guard(clients_mutex_);
  const auto found = std::ranges::find_if(clients_, [&](const auto& each) { return each->identity() == identity; });
  return found == clients_.end() ? nullptr : *found;
}

// The parts of all servers on this host are contiguous in its arena.
Program::Lent Keeper::lent() {
  std::byte* first = nullptr;
  std::byte* end = nullptr;
  for (const int rank : servers_of(job_)) {
    std::byte* const part = window_.direct(window_.at(JobRank{rank}), window_.bytes(JobRank{rank}));
    if (part == nullptr) continue;
    first = first == nullptr ? part : std::min(first, part);
    end = std::max(end, part + window_.bytes(JobRank{rank}));
  }
  if (first == nullptr) return {};
  job::Arena& arena = job_.session().arena();
  const auto offset = arena.pool().place_of(first);
  if (!offset)
    throw SetupError("the memory that servers on this host lend is outside the arena's pool: this is a bug in tonari");
  return {.memory = {first, end}, .file = arena.memory().number(), .offset = *offset};
}

void Keeper::count_the_dead() {
  std::uint64_t count = 0;
  (void)!::read(deaths_->number(), &count, sizeof count);
  if (!servers_) return;
  int last = 0;
  bool some_live = false;
  for (const int rank : servers_of(job_)) {
    if (job_.alive(JobRank{rank})) {
      some_live = true;
    } else {
      servers_->died(rank);
      last = rank;
    }
  }
  std::uint64_t lost = 0;
  for (const auto& each : clients_) lost += each->lost_bytes();
  for (const auto& each : ended_clients_) {
    if (const auto client = each.lock()) lost += client->lost_bytes();
  }
  if (lost != 0) {
    fail(fmt::format("server {} died and {} of the program's data are lost; {}", last, job::memory_text(lost),
                     second_copy(order_)));
  } else if (!some_live && last != 0) {
    fail("all servers have died");
  }
}

// A limit in percent is relative to the memory that all processes have touched, and in proportion to the memory that
// each has touched. It is at least share_bytes_min, and at most as much as this host's memory allows. A limit in bytes
// is for all processes together, in proportion to the memory that each has touched.
void Keeper::share_limit() {
  std::uint64_t ticks = 0;
  (void)!::read(clock_.number(), &ticks, sizeof ticks);
  std::uint64_t touched_by_all = 0;
  for (const auto& each : clients_) touched_by_all += each->touched_bytes();
  std::uint64_t limits = 0;
  for (const auto& each : clients_) {
    if (!each->has_begun()) continue;
    each->set_limit(limit_for(each->touched_bytes(), touched_by_all));
    limits += each->limit_bytes();
  }
  limit_peak_bytes_ = std::max(limit_peak_bytes_, limits);
}

std::uint64_t Keeper::limit_for(std::uint64_t touched, std::uint64_t touched_by_all) const noexcept {
  const Limit& limit = order_.limit;
  if (limit.percent == 100) return order_.arena_bytes;  // the most that it can ever touch
  const std::uint64_t all =
      limit.percent == 0 ? limit.bytes
                         : std::min(std::max(touched_by_all / 100 * limit.percent, share_bytes_min), local_bytes_max_);
  if (touched == touched_by_all) return std::max(all, limit_bytes_min);
  const double share = static_cast<double>(touched) / static_cast<double>(touched_by_all);
  return std::max(static_cast<std::uint64_t>(static_cast<double>(all) * share), limit_bytes_min);
}

// Returns values for --local with which a process would have the limit that was found, whose limit is `now` bytes.
std::string Keeper::wanted_limit(const WorkingSet::Finding& found, std::uint64_t now) const {
  std::uint64_t by_all = 0;
  for (const auto& each : clients_) by_all += each->limit_bytes();
  if (order_.limit.percent == 0) by_all = std::max(order_.limit.bytes, now);
  // A limit for all processes grows as this one's share must.
  const double factor = static_cast<double>(found.wanted_bytes) / static_cast<double>(now);
  constexpr double mib = 1 << 20;
  const std::string size = fmt::format("{:.0f}M", std::ceil(static_cast<double>(by_all) * factor / mib));
  const bool is_share = order_.limit.percent != 0 && found.wanted_percent < 100;
  return is_share ? fmt::format("{}% (or {})", found.wanted_percent, size) : size;
}

// Tells the user once, for the first process that needs more.
void Keeper::look_at_working_sets() {
  if (advised_) return;
  for (const auto& each : clients_) {
    const WorkingSet::Finding found = each->look_at_working_set();
    if (found.wanted_bytes == 0) continue;
    const Limit& limit = order_.limit;
    const std::uint64_t now = each->limit_bytes();
    const std::string present = limit.percent == 0 ? job::memory_text(limit.bytes)
                                                   : fmt::format("{}% (now {})", limit.percent, job::memory_text(now));
    advise(fmt::format(
        "the program's working set does not fit into --local {}: its threads wait for pages most of the time, and "
        "pages that left come back again and again; it would fit with --local {}",
        present, wanted_limit(found, now)));
    advised_ = true;
    return;
  }
}

// Any thread.
void Keeper::advise(std::string_view text) noexcept {
  Report report{.what = Report::What::advice};
  report.statistics.living = 1;  // not counted: the program goes on
  report.say(text);
  tell(report);
}

// Any thread. The program cannot go on: threads that wait for a page wait until `tonari far` has ended the program.
void Keeper::fail(std::string_view why) noexcept {
  if (failed_.exchange(true, std::memory_order_relaxed)) return;
  Report report{.what = Report::What::failed};
  report.statistics.living = 1;  // not counted: the program is ended anyway
  report.say(why);
  tell(report);
}

// Returns how many processes have far memory, of their own or inherited.
std::uint32_t Keeper::living() const noexcept {
  return static_cast<std::uint32_t>(clients_.size()) + (heirs_ ? heirs_->count() : 0);
}

Statistics Keeper::statistics() const noexcept {
  Statistics all = ended_;
  all.living = living();
  if (std::ranges::any_of(clients_, [](const auto& each) { return each->has_begun(); })) forget_what_it_has(all);
  for (const auto& each : clients_) {
    add(all, each->statistics());
    if (each->stays_local()) ++all.stayed_local;
  }
  if (servers_ && has_servers(order_.store)) {
    all.stored_bytes = servers_->used_bytes();
    all.stored_peak_bytes = servers_->used_peak_bytes();
    all.stored_data_peak_bytes = servers_->data_peak_bytes();
    all.capacity_bytes = servers_->capacity_bytes();
  }
  all.limit_peak_bytes = limit_peak_bytes_;
  all.servers = static_cast<std::uint32_t>(
      std::ranges::count_if(servers_of(job_), [this](int rank) { return job_.alive(JobRank{rank}); }));
  return all;
}

void lend(Job& job, std::uint64_t bytes, bool at_once) {
  job.on_death([](const Death&) {});  // the keeper decides what another server's death means
  Window window(job, bytes);
  if (at_once && ::madvise(window.local().data(), window.local().size(), MADV_POPULATE_WRITE) != 0) {
    throw_system_error(fmt::format("allocating {} of memory at once", job::memory_text(bytes)),
                       "lend less, or omit --at-once");
  }
  (void)window.barrier();  // if another rank has died meanwhile, the keeper reports it and leaves
  // wait_notified() also returns at each death of another server.
  while (window.wait_notified(leave, 1) != Status::ok && job.alive(JobRank{keeper_rank})) {
  }
}

}  // namespace tonari::far
