#include "job/business_card.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace tonari::job {

namespace {

// True if two ranks are on one host: they agree in all of these.
bool on_one_host(const BusinessCard& left, const BusinessCard& right) noexcept {
  return left.host.boot_id == right.host.boot_id && left.host.network_namespace == right.host.network_namespace &&
         left.host.ipc_namespace == right.host.ipc_namespace && left.pid_namespace == right.pid_namespace;
}

std::string version_text(const BusinessCard& rank) {
  if (rank.magic != handshake_magic) return "another program";
  return fmt::format("version {} of joining", rank.version);
}

// Returns why a rank cannot be in one job with rank 0; empty if it can.
std::string difference(const BusinessCard& first, const BusinessCard& other) {
  if (other.magic == __builtin_bswap64(first.magic)) {
    return "has another byte order: all hosts of a job must have the same";
  }
  if (other.magic != first.magic || other.version != first.version) {
    return fmt::format("is {}, rank 0 is {}: start the same program, built with one version of tonari, on all hosts",
                       version_text(other), version_text(first));
  }
  if (other.host.page_bytes != first.host.page_bytes) {
    return fmt::format("has pages of {} bytes, rank 0 of {}: all hosts of a job must have pages of one size",
                       other.host.page_bytes, first.host.page_bytes);
  }
  return {};
}

BusinessCard read_business_card(std::span<const std::byte> bytes) noexcept {
  BusinessCard read;
  if (bytes.size() == sizeof read) {
    std::memcpy(static_cast<void*>(&read), bytes.data(), sizeof read);
    return read;
  }
  read.magic = 0;  // a card of another version, or no card at all: only magic and version can be compared
  constexpr auto first_fields = offsetof(BusinessCard, pid);
  if (bytes.size() >= first_fields) std::memcpy(static_cast<void*>(&read), bytes.data(), first_fields);
  if (read.version == business_card_version) read.magic = 0;
  return read;
}

}  // namespace

std::string BusinessCard::host_text() const {
  return {host_name.data(), ::strnlen(host_name.data(), host_name.size())};
}

BusinessCard make_business_card(int rank) {
  if (::sodium_init() < 0) throw SetupError("libsodium found no source of random numbers");
  BusinessCard self;
  self.pid = ::getpid();
  self.host = this_host_identity();
  struct stat status;
  if (::stat("/proc/self/ns/pid", &status) == 0) self.pid_namespace = status.st_ino;
  std::array<unsigned char, listener_digits / 2> number;
  ::randombytes_buf(number.data(), number.size());
  std::array<char, listener_digits + 1> digits;
  ::sodium_bin2hex(digits.data(), digits.size(), number.data(), number.size());
  std::copy_n(digits.begin(), listener_digits, self.listener.begin());
  if (rank == 0) ::randombytes_buf(self.secret.data(), self.secret.size());
  this_host_name().copy(self.host_name.data(), self.host_name.size());
  return self;
}

std::string listener_name(const BusinessCard& rank) {
  return "tonari-join-" + std::string{rank.listener.data(), rank.listener.size()};
}

std::vector<BusinessCard> read_business_cards(std::span<const std::vector<std::byte>> all) {
  std::vector<BusinessCard> ranks;
  ranks.reserve(all.size());
  for (const auto& bytes : all) ranks.push_back(read_business_card(bytes));
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const std::string differs = difference(ranks[0], ranks[rank]);
    if (differs.empty()) continue;
    const std::string host = ranks[rank].host_text();
    throw SetupError(fmt::format("rank {}{}{} {}", rank, host.empty() ? "" : " on ", host, differs));
  }
  return ranks;
}

std::vector<int> Hosts::ranks_on(int host) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < of.size(); ++rank) {
    if (of[rank] == host) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

Hosts group_by_host(std::span<const BusinessCard> ranks) {
  Hosts hosts;
  std::vector<const BusinessCard*> firsts;  // by host
  for (const BusinessCard& rank : ranks) {
    const auto same = [&](const BusinessCard* first) { return on_one_host(*first, rank); };
    const auto found = std::ranges::find_if(firsts, same);
    hosts.of.push_back(static_cast<int>(found - firsts.begin()));
    if (found != firsts.end()) continue;
    firsts.push_back(&rank);
    hosts.names.push_back(rank.host_text());
  }
  return hosts;
}

}  // namespace tonari::job
