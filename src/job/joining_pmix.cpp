#include "job/business_card.hpp"
#include "job/host_rendezvous.hpp"
#include "job/joining.hpp"

#include <tonari/status.hpp>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>

namespace tonari::job {

namespace {

// Progress of this process in joining. The launcher keeps the data that were put under a key. If a process joined a
// second time, it and the other ranks would read the data of the first time.
enum class Progress : std::uint8_t { none, introduced, joined };
std::atomic<Progress> progress{Progress::none};

bool maps_an_arena() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:tonari-arena") != line.npos) return true;
  }
  return false;
}

void check_is_first() {
  const Progress seen = progress.load(std::memory_order_relaxed);
  if (seen == Progress::joined) {
    throw SetupError(
        "this process has joined the launcher's job already: under a launcher a rank can join only once in its life; "
        "unset PMIX_NAMESPACE to run alone");
  }
  if (seen == Progress::introduced) {
    throw SetupError(
        "this process has tried to join the launcher's job before, and the data it gave the other ranks then cannot be "
        "replaced: start the job again");
  }
  if (maps_an_arena()) {
    throw SetupError(
        "another copy of tonari's library in this process has joined the launcher's job already. A tonari::Job and MPI "
        "share it only if both use one libtonari.so: if this program uses MPI, link it with tonari::tonari_shared, not "
        "with libtonari.a");
  }
}

std::span<const std::byte> bytes_of(const BusinessCard& self) noexcept { return std::as_bytes(std::span(&self, 1)); }

void part_from_remote_ranks(Arena& arena, const Hosts& hosts, int own_host) {
  std::vector<bool> is_remote;
  for (const int host : hosts.of) is_remote.push_back(host != own_host);
  arena.keep_remote_ranks(is_remote);
  for (std::size_t rank = 0; rank < is_remote.size(); ++rank) {
    if (is_remote[rank]) arena.advance(static_cast<int>(rank), Phase::running);
  }
}

}  // namespace

Membership JoiningPmix::join(const Settings& settings) {
  check_is_first();
  limit_ = std::chrono::seconds{settings.join_seconds};
  client_.emplace();
  const int rank = client_->rank();
  const BusinessCard self = make_business_card(rank);
  progress.store(Progress::introduced, std::memory_order_relaxed);
  HostRendezvous meeting{rank, self};
  const auto ranks = read_business_cards(client_->exchange("tonari.introduction", bytes_of(self), limit_));
  const Hosts hosts = group_by_host(ranks);
  const int own_host = hosts.of[static_cast<std::size_t>(rank)];

  HostRendezvous::Outcome met = meeting.meet(ranks, hosts.ranks_on(own_host), settings);
  Membership member{.rank = rank, .size = client_->size(), .arena = std::move(met.arena)};
  member.direct_copies = met.direct_copies;
  member.secret.assign(ranks[0].secret.begin(), ranks[0].secret.end());
  if (hosts.names.size() > 1) {
    part_from_remote_ranks(*member.arena, hosts, own_host);
    member.hosts = hosts.of;
    member.host_names = hosts.names;
  }
  progress.store(Progress::joined, std::memory_order_relaxed);
  if (!met.neighbours.empty()) watch_.emplace(member.arena, std::move(met.neighbours));
  return member;
}

Addresses JoiningPmix::exchange(std::span<const std::byte> address) {
  return client_->exchange("tonari.address", address, limit_);
}

void JoiningPmix::abort(int exit_status, const std::string& line) noexcept {
  Joining::abort(exit_status, line);
  client_->abort(exit_status);
}

bool JoiningPmix::starter_alive() noexcept { return pmix::Client::connected(); }

}  // namespace tonari::job
