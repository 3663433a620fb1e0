#include "job/host_rendezvous.hpp"

#include "base/error.hpp"
#include "job/ending.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tonari::job {

namespace {

std::string digits_of(std::span<const std::byte> secret) {
  std::string digits(2 * secret.size() + 1, '\0');
  ::sodium_bin2hex(digits.data(), digits.size(), reinterpret_cast<const unsigned char*>(secret.data()), secret.size());
  digits.pop_back();
  return digits;
}

[[noreturn]] void give_up(int rank, const char* what) {
  throw SetupError(fmt::format("rank {}, on the same host, {} while the ranks of this host joined", rank, what));
}

// Launchers bind ranks to cores, so the ranks together may have more cores than the lowest rank alone.
std::uint32_t count_cores(std::span<const pid_t> processes) noexcept {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const pid_t process : processes) {
    cpu_set_t its;
    if (::sched_getaffinity(process, sizeof its, &its) == 0) CPU_OR(&all, &all, &its);
  }
  return static_cast<std::uint32_t>(CPU_COUNT(&all));
}

}  // namespace

HostRendezvous::HostRendezvous(int rank, const BusinessCard& self)
    : rank_(rank), probe_(probe_value(rank)), listener_(listen_at(listener_name(self))) {
  ::fcntl(listener_.number(), F_SETFL, O_NONBLOCK);
}

HostRendezvous::~HostRendezvous() { ::sodium_memzero(secret_.data(), secret_.size()); }

HostRendezvous::Outcome HostRendezvous::meet(std::span<const BusinessCard> ranks, std::span<const int> here,
                                             const Settings& settings) {
  settings_ = settings;
  secret_ = digits_of(ranks[0].secret);
  limit_ = std::chrono::steady_clock::now() + std::chrono::seconds{settings.join_seconds};
  const auto own = std::ranges::find(here, rank_);
  next_ = own + 1 != here.end() ? own[1] : here.front();
  find_neighbours(ranks, here);
  admit_neighbours();
  if (rank_ == here.front()) {
    lead(static_cast<int>(ranks.size()));
  } else {
    listener_ = {};
    follow(ranks[static_cast<std::size_t>(here.front())]);
  }
  return std::move(outcome_);
}

void HostRendezvous::find_neighbours(std::span<const BusinessCard> ranks, std::span<const int> here) {
  for (const int rank : here) {
    if (rank == rank_) continue;
    const pid_t pid = ranks[static_cast<std::size_t>(rank)].pid;
    Neighbour neighbour{.rank = rank, .pid = pid, .process = open_process(pid)};
    if (!neighbour.process && errno == ESRCH) give_up(rank, "ended");
    if (!neighbour.process) {
      throw_system_error(fmt::format("pidfd_open of rank {} (pid {})", rank, pid),
                         "each rank takes a descriptor for every other one on its host; see ulimit -n");
    }
    outcome_.neighbours.push_back(std::move(neighbour));
  }
}

// ---- The lowest rank ----

void HostRendezvous::lead(int ranks) {
  connections_.resize(outcome_.neighbours.size());
  probes_.resize(outcome_.neighbours.size());
  try {
    while (!std::ranges::all_of(connections_, &FileDescriptor::operator bool)) admit_next();
    listener_ = {};
    make_arena(ranks);
    send_to_all(Step::welcome, false, outcome_.arena->memory().number());
    const bool others_could = all_could_copy();
    outcome_.direct_copies = try_copies() && others_could;
    send_to_all(Step::go, outcome_.direct_copies);
  } catch (const SetupError& error) {
    Reply refusal{.step = Step::refused};
    refusal.say(error.what());
    for (const FileDescriptor& connection : connections_) {
      if (connection) send_message(connection, &refusal, sizeof refusal);
    }
    throw;
  }
}

// Waits for the next connection, which may come from a stranger. Throws if a missing rank ends or the time limit
// passes.
void HostRendezvous::admit_next() {
  std::vector<pollfd> watched{{.fd = listener_.number(), .events = POLLIN, .revents = 0}};
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const int process = outcome_.neighbours[i].process.number();
    watched.push_back({.fd = connections_[i] ? -1 : process, .events = POLLIN, .revents = 0});
  }
  const int ready = ::poll(watched.data(), watched.size(), milliseconds_left());
  if (ready < 0 && errno == EINTR) return;
  if (ready < 0) throw_system_error("poll");
  const auto missing = static_cast<std::size_t>(std::ranges::find_if_not(connections_, &FileDescriptor::operator bool) -
                                                connections_.begin());
  if (ready == 0) give_up(outcome_.neighbours[missing].rank, "did not connect");
  if (watched.front().revents == 0) {
    const auto ended = std::ranges::find_if(watched, [](const pollfd& of) { return of.revents != 0; });
    give_up(outcome_.neighbours[static_cast<std::size_t>(ended - watched.begin()) - 1].rank, "ended");
  }
  FileDescriptor connection{::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (connection) admit(std::move(connection));
}

// Any process of this host can connect. Only a process with a neighbour's process id is listened to, and only one that
// knows the secret is admitted.
void HostRendezvous::admit(FileDescriptor connection) {
  const Peer peer = peer_of(connection);
  const auto found = std::ranges::find(outcome_.neighbours, peer.pid, &Neighbour::pid);
  if (found == outcome_.neighbours.end() || peer.user != ::geteuid()) return;
  const auto index = static_cast<std::size_t>(found - outcome_.neighbours.begin());
  if (connections_[index]) return;
  if (!wait_for(connection)) give_up(found->rank, "connected but sent nothing");
  Request hello;
  const auto received = receive_message(connection, &hello, sizeof hello, true);
  if (received == 0) return;  // if its process has ended, admit_next() notices
  if (received != sizeof hello || hello.magic != handshake_magic || hello.version != handshake_version ||
      hello.step != Step::hello || hello.rank != found->rank ||
      ::sodium_memcmp(hello.secret.data(), secret_.data(), secret_digits) != 0) {
    return;
  }
  probes_[index] = hello.probe;
  connections_[index] = std::move(connection);
}

void HostRendezvous::make_arena(int ranks) {
  auto arena = std::make_shared<Arena>(Arena::create(ranks, settings_));
  std::vector<pid_t> processes{::getpid()};
  for (const Neighbour& neighbour : outcome_.neighbours) processes.push_back(neighbour.pid);
  if (const auto cores = count_cores(processes); cores > 0) arena->header().cores = cores;
  // Published by the messages that follow.
  for (std::size_t i = 0; i < outcome_.neighbours.size(); ++i) {
    RankBlock& block = arena->block(outcome_.neighbours[i].rank);
    block.pid.store(outcome_.neighbours[i].pid, std::memory_order_relaxed);
    block.probe.store(probes_[i], std::memory_order_relaxed);
  }
  arena->block(rank_).pid.store(::getpid(), std::memory_order_relaxed);
  arena->block(rank_).probe.store(reinterpret_cast<std::uintptr_t>(&probe_), std::memory_order_relaxed);
  take(std::move(arena));
}

void HostRendezvous::send_to_all(Step step, bool copies, int attached) noexcept {
  Reply reply{.step = step, .ranks = outcome_.arena->ranks(), .starter = ::getpid()};
  reply.copies = copies ? 1 : 0;
  for (const FileDescriptor& connection : connections_) send_message(connection, &reply, sizeof reply, attached);
}

bool HostRendezvous::all_could_copy() {
  bool all = true;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const int rank = outcome_.neighbours[i].rank;
    if (!wait_for(connections_[i])) give_up(rank, "did not reply");
    Request tested;
    const auto received = receive_message(connections_[i], &tested, sizeof tested, true);
    if (received != sizeof tested || tested.step != Step::tested) give_up(rank, "ended or failed");
    all = all && tested.copies != 0;
  }
  return all;
}

// ---- The other ranks ----

void HostRendezvous::follow(const BusinessCard& first) {
  const int leader = outcome_.neighbours.front().rank;
  FileDescriptor connection = try_connect(listener_name(first));
  if (!connection) give_up(leader, "ended or failed");
  if (peer_of(connection).user != ::geteuid()) {
    throw SetupError(
        fmt::format("rank {} belongs to another user: all ranks of a job must belong to one user", leader));
  }
  connections_.push_back(std::move(connection));

  Request hello = request(Step::hello);
  hello.probe = reinterpret_cast<std::uintptr_t>(&probe_);
  hello.host = first.host;  // equal to this rank's, because both are on one host
  secret_.copy(hello.secret.data(), hello.secret.size());
  send_message(connections_.front(), &hello, sizeof hello);

  FileDescriptor memory;
  hear(Step::welcome, &memory);
  take(std::make_shared<Arena>(std::move(memory)));

  Request tested = request(Step::tested);
  tested.copies = try_copies() ? 1 : 0;
  send_message(connections_.front(), &tested, sizeof tested);
  outcome_.direct_copies = hear(Step::go).copies != 0;
}

Reply HostRendezvous::hear(Step step, FileDescriptor* attached) {
  const FileDescriptor& connection = connections_.front();
  const int leader = outcome_.neighbours.front().rank;
  if (!wait_for(connection)) give_up(leader, "did not reply");
  Reply reply;
  const auto received = receive_message(connection, &reply, sizeof reply, true, attached);
  if (received == sizeof reply && reply.step == step) return reply;
  if (received == sizeof reply && reply.step == Step::refused) throw SetupError(reply.text.data());
  give_up(leader, "ended or failed");
}

// ---- All ----

void HostRendezvous::take(std::shared_ptr<Arena> arena) {
  arena->advance(rank_, Phase::joined);
  outcome_.arena = std::move(arena);
}

bool HostRendezvous::try_copies() const noexcept {
  return settings_.direct_copies && can_copy_from(*outcome_.arena, next_);
}

bool HostRendezvous::wait_for(const FileDescriptor& connection) const {
  pollfd watched{.fd = connection.number(), .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&watched, 1, milliseconds_left());
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

int HostRendezvous::milliseconds_left() const {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(limit_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::max(left, milliseconds{0}).count());
}

Request HostRendezvous::request(Step step) const noexcept { return {.step = step, .rank = rank_}; }

}  // namespace tonari::job
