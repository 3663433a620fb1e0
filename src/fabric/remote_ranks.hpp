#pragma once

#include "fabric/failure_detector.hpp"
#include "fabric/head.hpp"
#include "fabric/network.hpp"
#include "job/session.hpp"

#include <tonari/status.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tonari::fabric {

/// The ranks that this rank reaches by the network only. Knows which ranks these are and when to poll the network, and
/// exchanges Protocol::fabric's heads with them: about deaths, departures, and limits that are reached.
///
/// Threads: is_remote(), network(), send_to_all() and announced_leaving(): any. The rest: the holder of the progress
///          lock.
class RemoteRanks {
 public:
  explicit RemoteRanks(job::Session& session);

  /// Returns null if the job has no network.
  [[nodiscard]] Network* network() const noexcept { return network_; }
  /// Whether `peer` is on another host, or treated as if it were: its rings and segment cannot be used.
  [[nodiscard]] bool is_remote(int peer) const noexcept {
    return network_ != nullptr && remote_[static_cast<std::size_t>(peer)] != 0;
  }

  /// Polls the network; in a rank with neighbours, whose rings are polled more often, only in one of several calls.
  /// Returns whether it did. Call only if there is a network.
  template <class Handle>
  bool poll(std::size_t heads_max, Handle&& handle) noexcept {
    network_empty_ = false;
    if (++polls_without_network_ < polls_without_network_max && has_neighbours_) return false;
    polls_without_network_ = 0;
    const std::uint64_t empty_looks = network_->empty_looks();
    network_->poll(heads_max, handle);
    network_empty_ = network_->empty_looks() != empty_looks;  // unchanged: it had heads, or a sender holds its lock
    return true;
  }
  /// Has the next poll() poll the network.
  void expect_poll() noexcept { polls_without_network_ = polls_without_network_max; }
  /// Whether the last poll() polled the network, which had nothing; true if there is no network.
  [[nodiscard]] bool network_empty() const noexcept { return network_empty_; }

  /// Call after each poll of the network. Marks ranks dead whose connections have broken, tells remote ranks that this
  /// rank is at its limit, and tells all ranks of deaths, by `send(peer, head)`. If there is no room for a head, the
  /// next call continues.
  template <class Send>
  void tell(Send&& send) noexcept {
    if (network_->gone_count() != gone_seen_) [[unlikely]]
      notice_gone();
    if (block_.full.load(std::memory_order_relaxed) != full_told_ || full_told_to_ != size()) [[unlikely]]
      tell_full_slow();
    if (failure_detector_) run_failure_detector(send);
  }
  /// Handles a head of Protocol::fabric.
  void receive(const Head& head) noexcept;

  /// Sends `head` to all remote ranks that are alive, from rank `next` on, which it advances. Returns again if there is
  /// no room, otherwise ok.
  Status send_to_all(const Head& head, int& next) noexcept;
  /// Whether the last head of a remote rank has arrived, which announced that it leaves.
  [[nodiscard]] bool announced_leaving(int rank) const noexcept {
    return leaves_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire) != 0;
  }

 private:
  [[nodiscard]] int size() const noexcept { return static_cast<int>(remote_.size()); }
  void notice_gone() noexcept;
  [[gnu::cold]] void tell_full_slow() noexcept;
  template <class Send>
  void run_failure_detector(Send& send) noexcept {
    const std::uint32_t deaths =
        session_.arena().header().deaths.load(std::memory_order_acquire);  // acquire: with the phases
    if (deaths != deaths_seen_) [[unlikely]] {
      deaths_seen_ = deaths;
      failure_detector_->take_over_watched();
    }
    failure_detector_->tell(send);
  }
  void hear_of_death(std::uint32_t rank) noexcept;

  // Polling the network costs as much as tens of polls of the rings.
  static constexpr std::uint32_t polls_without_network_max = 8;

  job::Session& session_;
  job::RankBlock& block_;
  Network* network_ = nullptr;               // the session's; null if there is none
  std::vector<char> remote_;                 // by rank: is_remote()
  bool has_neighbours_ = false;              // other ranks of this host share its rings
  std::vector<std::atomic<char>> leaves_;    // by rank: announced_leaving()
  std::uint32_t polls_without_network_ = 0;  // by the holder of the progress lock, as the rest
  bool network_empty_ = true;
  std::uint32_t gone_seen_ = 0;
  std::optional<FailureDetector> failure_detector_;  // if there are several hosts
  std::uint32_t deaths_seen_ = 0;
  std::uint32_t full_told_ = 0;  // this rank's last rank_full has been sent to all remote ranks below
  int full_told_to_ = 0;         // this one
};

}  // namespace tonari::fabric
