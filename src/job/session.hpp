#pragma once

#include "base/settings.hpp"
#include "job/arena.hpp"

#include <tonari/job.hpp>

#include <spdlog/fwd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace tonari::job {

class Network;

/// What joining gives a rank.
struct Membership {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Arena> arena;  // one a process and job, for all ranks of this host; ranks that are threads share it
  bool threads = false;          // the other ranks are threads of this process: their memory is ours
  bool direct_copies = false;  // process_vm_readv and _writev work between all ranks of this host (or they are threads)
  std::vector<int> hosts{};    // by rank, numbered from 0 in the order of their first ranks; empty: there is one
  std::vector<std::string> host_names{};  // by host; empty: as this one's
  std::vector<std::byte> secret{};  // that all ranks of the job know and nobody else; empty where there is one host
};

/// Addresses by rank, as exchanged while joining.
using Addresses = std::vector<std::vector<std::byte>>;

/// One way of being started: alone, by `tonari run`, as threads, by a launcher that has PMIx. Joins, and tells when who
/// started us is gone.
class Joining {
 public:
  virtual ~Joining() = default;
  /// Returns when all ranks of the job have joined. Throws SetupError.
  virtual Membership join(const Settings& settings) = 0;
  /// Gives all ranks ours and answers theirs. Called by all ranks of a job that needs the network, once and after
  /// join(). Throws SetupError.
  virtual Addresses exchange(std::span<const std::byte> address) = 0;
  /// Whether who started us says why the job ends when a rank has died; else each rank does.
  virtual bool starter_reports_deaths() const noexcept { return true; }
  /// Asked about twice a second by the service thread. Once false, the process stops.
  virtual bool starter_alive() noexcept { return true; }
};

/// Finds out how this process was started.
std::unique_ptr<Joining> detect_joining();

/// A rank's tie to its job: the arena, deaths, leaving, and the one thread that serves while the program computes.
/// Layers above put their own part of the runtime into it with attached().
///
/// Owns:    its way of joining, a share of the arena, the attachment, the service thread.
/// Threads: any thread may call anything; construction and destruction happen once each.
/// Costs:   one thread that sleeps, and wakes twice a second to look after who started it.
class Session {
 public:
  /// Joins. Throws SetupError.
  Session(std::unique_ptr<Joining> joining, Settings settings);
  ~Session();  // leaves: see Job
  Session(Session&&) = delete;

  [[nodiscard]] int rank() const noexcept { return member_.rank; }
  [[nodiscard]] int size() const noexcept { return member_.size; }
  [[nodiscard]] bool threads() const noexcept { return member_.threads; }
  [[nodiscard]] bool direct_copies() const noexcept { return member_.direct_copies; }
  /// process_vm_readv and _writev work on this process's own memory: they answer where an access would raise a signal.
  [[nodiscard]] bool guarded_copies() const noexcept { return guarded_copies_; }
  /// Where shared memory lies that has copies: pages of it may be absent, and first writes are noticed. The program's
  /// own accesses are to bring and to change it, with no lock and no progress lock held: other processes' copies (which
  /// change a page by its frame, unnoticed), network cards and the progress of the fabric stay away. Once, before there
  /// is any.
  void set_paged(const void* start, std::size_t bytes) noexcept {
    paged_start_.store(reinterpret_cast<std::uintptr_t>(start), std::memory_order_relaxed);
    paged_bytes_.store(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] bool has_paged() const noexcept { return paged_bytes_.load(std::memory_order_relaxed) != 0; }
  /// Some of it is there, or all.
  [[nodiscard]] bool is_paged(const void* start, std::size_t bytes) const noexcept {
    const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(start) - paged_start_.load(std::memory_order_relaxed);
    return place + bytes < paged_bytes_.load(std::memory_order_relaxed) + bytes;  // in front of it: wraps around
  }
  [[nodiscard]] Arena& arena() const noexcept { return *member_.arena; }
  [[nodiscard]] RankBlock& block() const noexcept { return arena().block(rank()); }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// The ranks' way to other hosts; null where there is none.
  [[nodiscard]] Network* network() const noexcept { return network_.get(); }
  /// Reached by the network alone, not by this host's memory.
  [[nodiscard]] bool is_remote(int other) const noexcept {
    return network_ != nullptr && other != rank() &&
           (settings_.apart == "network" ? host(other) != host(rank()) : is_on_other_host(other));
  }
  /// What it is at is known by the network alone, not by the arena.
  [[nodiscard]] bool is_on_other_host(int other) const noexcept {
    return !member_.hosts.empty() &&
           member_.hosts[static_cast<std::size_t>(other)] != member_.hosts[static_cast<std::size_t>(rank())];
  }
  /// Ranks are in one *domain* if they reach each other by memory: a host, or each its own by `--apart network`.
  /// Numbered from 0.
  [[nodiscard]] int domain(int other) const noexcept {
    if (network_ == nullptr) return 0;
    return settings_.apart == "network" ? host(other) : member_.hosts[static_cast<std::size_t>(other)];
  }
  [[nodiscard]] int domains() const noexcept {
    if (network_ == nullptr) return 1;
    return settings_.apart == "network" ? hosts() : static_cast<int>(member_.host_names.size());
  }
  /// Ranks of the job that run on this machine, this one too.
  [[nodiscard]] int ranks_here() const noexcept;
  [[nodiscard]] int host(int rank) const noexcept;
  [[nodiscard]] int hosts() const noexcept;
  [[nodiscard]] const std::string& host_name() const noexcept { return host_name_; }
  [[nodiscard]] spdlog::logger& log() const noexcept { return *log_; }

  void on_death(std::function<void(const Death&)> handler);
  /// False: it died, and this process outlives that. It does not return where a death ends the process, so that no call
  /// answers peer_gone just before.
  [[nodiscard]] bool alive(int rank) const noexcept {
    if (!is_dead(rank)) [[likely]]
      return true;
    if (!outlives_deaths()) stop_for(rank);
    return false;
  }
  /// As !alive(rank) of any rank.
  [[nodiscard]] bool somebody_died() const noexcept;
  /// True in the process that joined, false in its forked children.
  [[nodiscard]] bool in_own_process() const noexcept;

  /// A layer's part of the runtime. Destroyed in reverse order of attaching, after every rank has left.
  class Attachment {
   public:
    virtual ~Attachment() = default;
    /// Runs on the service thread each time its doorbell rings and about twice a second; with
    /// TONARI_SERVICE_THREAD=off, while the rank leaves, as rest(). Must not block.
    virtual void serve() noexcept = 0;
    /// Runs on the service thread for each rank that died, before the death handler. Once it has answered true, no
    /// longer.
    virtual bool died(int rank) noexcept = 0;
    /// Runs on the service thread for each rank that leaves while this one stays: it calls nothing any more. Once it
    /// has answered true, no longer.
    virtual bool left(int rank) noexcept = 0;
    /// Runs on the thread that leaves, before the others can know of it: returns when all is on its way that was held
    /// back and that others may wait for, and ranks of other hosts are told.
    virtual void settle() noexcept = 0;
    /// Runs on the service thread when it has nothing to do: sleeps until the service doorbell is no longer `seen`, or
    /// something came by the network, or for so long. False: it has nothing but the doorbell to sleep for.
    virtual bool rest(std::uint32_t /*seen*/, std::chrono::nanoseconds /*longest*/) noexcept { return false; }
  };
  /// The attachment of type T, made by `make()` on first use. Thread-safe; one attachment a session suffices so far.
  template <class T, class Make>
  T& attached(Make make) {
    const std::lock_guard guard(attach_mutex_);
    if (!attachment_) attachment_ = make();
    return static_cast<T&>(*attachment_);
  }

 private:
  void start_network();
  void start_service();
  void serve_until_stopped() noexcept;  // the service thread
  void stop_service() noexcept;
  void notice_deaths() noexcept;
  void notice_leavers() noexcept;
  void tell_of_full_peer(std::uint64_t now_ns) noexcept;
  void tell_of_death(int rank, Attachment* attachment) noexcept;
  [[nodiscard]] bool is_dead(int rank) const noexcept {
    return arena().block(rank).phase.load(std::memory_order_acquire) ==
           Phase::dead;  // acquire: with the cause of death
  }
  [[nodiscard]] bool outlives_deaths() const noexcept;
  [[noreturn]] void stop_for(int dead) const noexcept;
  [[nodiscard]] std::string how_it_went(int dead) const;
  [[nodiscard]] const std::string& host_name_of(int rank) const noexcept;
  void leave() noexcept;
  void wait_for_all_to_leave() noexcept;
  [[nodiscard]] int first_that_stays() const noexcept;
  void forget() noexcept;  // in a forked child
  [[nodiscard]] Attachment* attachment() noexcept;

  std::unique_ptr<Joining> joining_;
  Settings settings_;
  Membership member_;
  bool guarded_copies_ = false;
  // Set by one thread; whoever has an address of it has it from that one: relaxed.
  std::atomic<std::uintptr_t> paged_start_{0};
  std::atomic<std::size_t> paged_bytes_{0};
  std::unique_ptr<Network> network_;
  std::string host_name_;
  std::shared_ptr<spdlog::logger> log_;
  int process_;     // that joined
  int exceptions_;  // in flight at construction

  std::mutex attach_mutex_;
  std::unique_ptr<Attachment> attachment_;
  std::mutex handler_mutex_;
  std::function<void(const Death&)> handler_;
  mutable std::atomic_flag stops_;  // by who ends the process; nothing is published by it

  std::atomic<bool> leaving_{false};   // by the destructor, for the service thread
  std::atomic<bool> stopping_{false};  // by the destructor, for the service thread
  // By the service thread; by the destructor once that has ended. By rank: 1 when told of its death.
  std::vector<char> attachment_told_;
  std::vector<char> handler_told_;
  std::vector<char> left_told_;
  std::uint64_t told_of_wait_since_ns_ = 0;
  std::thread service_;
};

}  // namespace tonari::job
