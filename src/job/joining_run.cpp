#include "base/error.hpp"
#include "job/joining.hpp"
#include "job/neighbour.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace tonari::job {

namespace {

std::string_view variable(const char* name) noexcept {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::string_view{} : std::string_view{text};
}

}  // namespace

std::unique_ptr<JoiningRun> JoiningRun::from_environment() {
  const auto name = variable("TONARI_JOIN");
  const auto rank_text = variable("TONARI_RANK");
  int rank = -1;
  const auto [end, error] = std::from_chars(rank_text.data(), rank_text.data() + rank_text.size(), rank);
  const auto secret = variable("TONARI_SECRET");
  if (error != std::errc{} || end != rank_text.data() + rank_text.size() || rank < 0 ||
      secret.size() != secret_digits) {
    throw SetupError(
        "TONARI_JOIN is set, but TONARI_RANK or TONARI_SECRET does not have a value that `tonari run` sets: a wrapper "
        "must pass all of them on; unset TONARI_JOIN to run alone");
  }
  return std::make_unique<JoiningRun>(std::string{name}, std::string{secret}, rank);
}

JoiningRun::JoiningRun(std::string name, std::string secret, int rank)
    : name_(std::move(name)), secret_(std::move(secret)), rank_(rank), probe_(probe_value(rank)) {}

Membership JoiningRun::join(const Settings& settings) {
  connect();
  admit_neighbours();
  auto arena = std::make_shared<Arena>(ask_for_arena());
  wait_for(Step::start);

  Request tested{.step = Step::tested, .rank = rank_};
  tested.copies = settings.direct_copies && can_copy_from(*arena, (rank_ + 1) % arena->ranks()) ? 1 : 0;
  send_message(connection_, &tested, sizeof tested);
  const Reply go = wait_for(Step::go);
  arena_ = arena;
  Membership member{.rank = rank_, .size = arena->ranks(), .arena = arena};
  member.direct_copies = go.copies != 0;
  const auto digits = std::as_bytes(std::span(secret_));
  member.secret.assign(digits.begin(), digits.end());
  return member;
}

Addresses JoiningRun::exchange(std::span<const std::byte> address) {
  return exchange_in_arena(*arena_, rank_, address);
}

void JoiningRun::connect() {
  connection_ = try_connect(name_);
  if (!connection_) {
    throw_system_error(fmt::format("connecting to `tonari run` at the abstract socket @{}", name_),
                       "either it has ended, or this process was moved into another network namespace: start "
                       "`tonari run` in the same one, or unset TONARI_JOIN to run alone");
  }
  const Peer starter = peer_of(connection_);
  if (starter.user != ::geteuid()) {
    throw SetupError(fmt::format(
        "the `tonari run` at @{} (pid {}) belongs to user {}, this process to user {}: both must belong to one user",
        name_, starter.pid, starter.user, ::geteuid()));
  }
}

Arena JoiningRun::ask_for_arena() {
  Request hello{.step = Step::hello, .rank = rank_, .probe = reinterpret_cast<std::uintptr_t>(&probe_)};
  hello.host = this_host_identity();
  secret_.copy(hello.secret.data(), hello.secret.size());
  send_message(connection_, &hello, sizeof hello);

  Reply welcome;
  FileDescriptor memory;
  const auto received = receive_message(connection_, &welcome, sizeof welcome, true, &memory);
  if (received == sizeof welcome && welcome.step == Step::stop) ::_exit(1);
  if (received == sizeof welcome && welcome.step == Step::refused) {
    throw SetupError(fmt::format("`tonari run` refused this process as rank {}: {}", rank_, welcome.text.data()));
  }
  if (received != sizeof welcome || welcome.magic != handshake_magic || welcome.version != handshake_version ||
      welcome.step != Step::welcome || !memory) {
    throw SetupError(
        fmt::format("`tonari run` at @{} did not reply with version {} of the handshake: build the program and the "
                    "tonari command from the same version",
                    name_, handshake_version));
  }
  Arena arena{std::move(memory)};
  arena.advance(rank_, Phase::joined);
  return arena;
}

Reply JoiningRun::wait_for(Step step) {
  Reply reply;
  const auto received = receive_message(connection_, &reply, sizeof reply, true);
  if (received == sizeof reply && reply.step == step) return reply;
  // The other ranks will not join. `tonari run` has reported the reason, in one line for all ranks.
  if (received == sizeof reply && reply.step == Step::stop) ::_exit(1);
  throw SetupError(
      fmt::format("`tonari run` at @{} ended while rank {} waited for the other ranks to join", name_, rank_));
}

bool JoiningRun::starter_alive() noexcept {
  char byte = 0;
  const auto received = ::recv(connection_.number(), &byte, sizeof byte, MSG_DONTWAIT | MSG_PEEK);
  return received != 0 && !(received < 0 && errno == ECONNRESET);
}

}  // namespace tonari::job
