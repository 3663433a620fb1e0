#include "job/job_server.hpp"

#include "base/error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tonari::job {

namespace {

// Limit of the connections that have not identified themselves yet. `tonari run` has descriptors to spare for so many.
constexpr std::size_t strangers_max = 64;

std::string make_secret() {
  if (::sodium_init() < 0) throw SetupError("libsodium found no source of random numbers");
  std::array<unsigned char, secret_bytes> bytes;
  ::randombytes_buf(bytes.data(), bytes.size());
  std::array<char, secret_digits + 1> digits;
  ::sodium_bin2hex(digits.data(), digits.size(), bytes.data(), bytes.size());
  return digits.data();
}

FileDescriptor open_for_reading(const FileDescriptor& memory) {
  FileDescriptor opened{::open(fmt::format("/proc/self/fd/{}", memory.number()).c_str(), O_RDONLY | O_CLOEXEC)};
  if (!opened) throw_system_error("opening the arena for reading through /proc/self/fd", "mount /proc");
  return opened;
}

FileDescriptor make_events() {
  FileDescriptor made{::epoll_create1(EPOLL_CLOEXEC)};
  if (!made) throw_system_error("epoll_create1");
  return made;
}

FileDescriptor make_timer() {
  FileDescriptor made{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  if (!made) throw_system_error("timerfd_create");
  return made;
}

void set_timer(const FileDescriptor& timer, std::uint64_t seconds) noexcept {  // 0 stops the timer
  const itimerspec once{.it_interval = {}, .it_value = {.tv_sec = static_cast<time_t>(seconds), .tv_nsec = 0}};
  ::timerfd_settime(timer.number(), 0, &once, nullptr);
}

}  // namespace

JobServer::JobServer(int ranks, const Settings& settings)
    : ranks_(ranks),
      join_seconds_(settings.join_seconds),
      host_name_(this_host_name()),
      identity_(this_host_identity()),
      name_(join_name(::getpid())),
      secret_(make_secret()),
      arena_(Arena::create(ranks, settings)),
      arena_to_look_at_(open_for_reading(arena_.memory())),
      events_(make_events()),
      listener_(listen_at(name_)),
      limit_(make_timer()),
      doors_(static_cast<std::size_t>(ranks)) {
  ::fcntl(listener_.number(), F_SETFL, O_NONBLOCK);
  watch(listener_, Watched::listener, 0);
  watch(limit_, Watched::limit, 0);
}

JobServer::~JobServer() { ::sodium_memzero(secret_.data(), secret_.size()); }

std::vector<std::string> JobServer::environment() const { return {"TONARI_JOIN=" + name_, "TONARI_SECRET=" + secret_}; }

bool JobServer::lives_on(int rank) const noexcept {
  return arena_.block(rank).lives_on.load(std::memory_order_acquire) != 0;
}

std::optional<Failure> JobServer::next_failure() {
  if (failures_.empty()) return std::nullopt;
  Failure oldest = std::move(failures_.front());
  failures_.pop_front();
  return oldest;
}

void JobServer::watch(const FileDescriptor& what, Watched kind, int index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(kind) << 32 | static_cast<std::uint32_t>(index);
  if (::epoll_ctl(events_.number(), EPOLL_CTL_ADD, what.number(), &event) != 0) throw_system_error("epoll_ctl");
}

void JobServer::step() {
  std::array<epoll_event, 64> events;
  int count = 0;
  do {
    count = ::epoll_wait(events_.number(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const auto data = events[static_cast<std::size_t>(i)].data.u64;
      handle(static_cast<Watched>(data >> 32), static_cast<int>(data & 0xffffffff));
    }
  } while (count == static_cast<int>(events.size()));
}

void JobServer::handle(Watched kind, int index) {
  switch (kind) {
    case Watched::listener: return accept_all();
    case Watched::limit: return limit_passed();
    case Watched::stranger: return hear_stranger(index);
    case Watched::rank: return hear_rank(index);
    case Watched::process: return process_ended(index);
  }
}

void JobServer::accept_all() {
  while (strangers_.size() < strangers_max) {
    FileDescriptor connection{::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!connection) return;  // all pending connections are accepted
    const int number = connection.number();
    watch(connection, Watched::stranger, number);
    strangers_.emplace(number, std::move(connection));
  }
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, listener_.number(),
              nullptr);  // until one of the strangers has sent a message
}

void JobServer::hear_stranger(int number) {
  const auto found = strangers_.find(number);
  if (found == strangers_.end()) return;
  Request request;
  const auto received = receive_message(found->second, &request, sizeof request, false);
  if (received < 0 && errno == EAGAIN) return;

  if (strangers_.size() == strangers_max) watch(listener_, Watched::listener, 0);
  FileDescriptor connection = std::move(found->second);
  strangers_.erase(found);
  if (received == 0 || (received < 0 && errno != EMSGSIZE)) return;  // the connection was closed
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, number, nullptr);
  if (received != sizeof request) request.magic = 0;
  answer(request, std::move(connection));
}

void JobServer::answer(const Request& request, FileDescriptor connection) {
  const Peer peer = peer_of(connection);
  if (const std::string why = objection(request, peer); !why.empty()) {
    Reply refusal = reply(Step::refused);
    refusal.say(why);
    send_message(connection, &refusal, sizeof refusal);
  } else if (request.step == Step::look) {
    show_arena(connection);
  } else if (stopped_) {
    const Reply stop = reply(Step::stop);
    send_message(connection, &stop, sizeof stop);
  } else {
    admit(request, peer, std::move(connection));
  }
}

// Returns why the request is refused; empty if it is not. The process that sent the request prefixes the text with
// "refused this process as rank R".
std::string JobServer::objection(const Request& request, const Peer& peer) const {
  if (peer.user != ::geteuid()) {
    return fmt::format("it belongs to user {}, the job to user {}: both must belong to one user", peer.user,
                       ::geteuid());
  }
  if (request.magic != handshake_magic || request.version != handshake_version) {
    return fmt::format(
        "`tonari run` uses version {} of the handshake, and this process does not: build the program and the tonari "
        "command from the same version",
        handshake_version);
  }
  if (request.step == Step::look) return {};
  if (request.step != Step::hello || ::sodium_memcmp(request.secret.data(), secret_.data(), secret_digits) != 0) {
    return "its TONARI_SECRET is not this job's: a wrapper changed it, or the process belongs to an earlier job";
  }
  if (request.rank < 0 || request.rank >= ranks_) {
    return fmt::format("the job has ranks 0 to {}; do not set TONARI_RANK yourself", ranks_ - 1);
  }
  if (std::string differs = difference(identity_, request.host); !differs.empty()) return differs;

  const Door& at = door(request.rank);
  if (at.state == State::away) return {};
  const auto phase = arena_.block(request.rank).phase.load(std::memory_order_acquire);
  if (phase == Phase::left) {
    return fmt::format(
        "process {} was this rank and has left already: under `tonari run` a rank can join only once in its life; "
        "unset TONARI_JOIN to run alone",
        at.pid);
  }
  if (peer.pid == at.pid) {
    return fmt::format(
        "process {} is this rank already: a rank makes one tonari::Job. It shares it with MPI only if program and MPI "
        "use one libtonari.so: if this program uses MPI, link it with tonari::tonari_shared, not with libtonari.a",
        at.pid);
  }
  return fmt::format(
      "process {} is this rank already: a rank is one process, which joins once; to start another program from "
      "it, unset TONARI_JOIN for that program",
      at.pid);
}

void JobServer::admit(const Request& request, const Peer& peer, FileDescriptor connection) {
  FileDescriptor process = open_process(peer.pid);
  if (!process) return;  // it has ended meanwhile: treat it as if it had never connected
  Door& at = door(request.rank);
  at.state = State::admitted;
  at.pid = peer.pid;
  at.connection = std::move(connection);
  at.process = std::move(process);
  watch(at.connection, Watched::rank, request.rank);
  watch(at.process, Watched::process, request.rank);

  RankBlock& block = arena_.block(request.rank);
  block.pid.store(peer.pid, std::memory_order_relaxed);  // this and the next are published by the messages that follow
  block.probe.store(request.probe, std::memory_order_relaxed);
  const Reply welcome = reply(Step::welcome);
  send_message(at.connection, &welcome, sizeof welcome, arena_.memory().number());

  if (++admitted_ == 1) set_timer(limit_, join_seconds_);
  start_if_complete();
  look_for_the_missing();
}

void JobServer::show_arena(const FileDescriptor& connection) const {
  const Reply welcome = reply(Step::welcome);
  send_message(connection, &welcome, sizeof welcome, arena_to_look_at_.number());
}

void JobServer::hear_rank(int rank) {
  Door& at = door(rank);
  Request request;
  const auto received = receive_message(at.connection, &request, sizeof request, false);
  if (received < 0 && errno == EAGAIN) return;
  if (received == sizeof request && request.step == Step::tested && at.state == State::admitted) {
    at.state = State::tested;
    at.copies = request.copies != 0;
    ++tested_;
    return go_if_tested();
  }
  // The connection was closed. The end of the process is noticed separately. A rank that leaves because of an exception
  // has marked itself dead before.
  ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, at.connection.number(), nullptr);
  at.connection = {};
  report_marked_deaths();
}

void JobServer::send_to_all(const Reply& message) noexcept {
  for (const Door& at : doors_) {
    if (at.connection) send_message(at.connection, &message, sizeof message);
  }
}

void JobServer::start_if_complete() {
  if (!is_complete()) return;
  set_timer(limit_, 0);
  send_to_all(reply(Step::start));
}

void JobServer::go_if_tested() {
  if (tested_ < ranks_) return;
  open_ = true;
  Reply go = reply(Step::go);
  go.copies = std::ranges::all_of(doors_, &Door::copies) ? 1 : 0;
  send_to_all(go);
}

Reply JobServer::reply(Step step) const noexcept { return {.step = step, .ranks = ranks_, .starter = ::getpid()}; }

}  // namespace tonari::job
