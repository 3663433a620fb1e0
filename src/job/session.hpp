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
#include <string_view>
#include <thread>
#include <vector>

namespace tonari::job {

class Network;

/// The result of joining.
struct Membership {
  int rank = 0;
  int size = 1;
  std::shared_ptr<Arena> arena;  // one per process and job, for all ranks of this host; ranks that are threads share it
  bool threads = false;          // the other ranks are threads of this process and share its memory
  // process_vm_readv and _writev work between all ranks of this host, or the ranks are threads.
  bool direct_copies = false;
  std::vector<int> hosts{};  // host number by rank, numbered from 0 in the order of first ranks; empty: one host
  std::vector<std::string> host_names{};  // name by host number; empty: only this host's name
  std::vector<std::byte> secret{};  // known to all ranks of the job and to no other process; empty in a job of one host
};

/// Addresses by rank, as exchanged while joining.
using Addresses = std::vector<std::vector<std::byte>>;

/// A way to join, according to how the process was started: alone, by `tonari run`, as threads, by a launcher with
/// PMIx. Also reports when the starter has ended.
class Joining {
 public:
  virtual ~Joining() = default;
  /// Joins, and returns when all ranks of the job have joined. Throws SetupError.
  virtual Membership join(const Settings& settings) = 0;
  /// Gives this rank's address to all ranks and returns the addresses of all. Called once by all ranks of a job that
  /// needs the network, after join(). Throws SetupError.
  virtual Addresses exchange(std::span<const std::byte> address) = 0;
  /// True if the starter reports why the job ends after a rank has died; otherwise each rank reports it.
  virtual bool starter_reports_deaths() const noexcept { return true; }
  /// Has the starter end all ranks with this exit status, because this rank aborts the job. Says so by `line`, unless
  /// the starter does. The caller then ends its process.
  virtual void abort(int exit_status, const std::string& line) noexcept;
  /// Time that the starter has to end the ranks of an aborted job before they end by themselves.
  virtual std::chrono::milliseconds abort_patience() const noexcept { return std::chrono::milliseconds{0}; }
  /// Called about twice per second by the service thread. If it returns false, the process stops.
  virtual bool starter_alive() noexcept { return true; }
};

/// Detects how this process was started.
std::unique_ptr<Joining> detect_joining();

/// A rank's membership in its job: the arena, deaths, leaving, and the service thread, which serves other ranks while
/// the program computes. Layers above attach their part of the runtime with attached().
///
/// Owns:    its Joining, a share of the arena, the attachment, the service thread.
/// Threads: any thread may call anything; construction and destruction happen once each.
/// Costs:   one sleeping thread, which wakes twice per second to check that the starter is alive.
class Session {
 public:
  /// Joins. Throws SetupError.
  Session(std::unique_ptr<Joining> joining, Settings settings);
  ~Session();  // leaves the job: see Job
  Session(Session&&) = delete;

  /// A user of the session of a process.
  enum class User { job, front };
  /// Joins as the process was started, or returns the session that the process has: a front shares that of a Job, and a
  /// Job that of a front. It ends with the last of them. Throws SetupError; a second Job without a front tries to join
  /// again.
  static std::shared_ptr<Session> of_process(User user);

  [[nodiscard]] int rank() const noexcept { return member_.rank; }
  [[nodiscard]] int size() const noexcept { return member_.size; }
  /// Sets the function that returns the name of the function of a front that the calling thread is in, or an empty
  /// text.
  void name_calls_with(std::string_view (*namer)() noexcept) noexcept {
    namer_.store(namer, std::memory_order_relaxed);  // relaxed: the function is constant
  }
  [[nodiscard]] std::string_view name_of_call() const noexcept {
    const auto namer = namer_.load(std::memory_order_relaxed);
    return namer != nullptr ? namer() : std::string_view{};
  }
  [[nodiscard]] bool threads() const noexcept { return member_.threads; }
  [[nodiscard]] bool direct_copies() const noexcept { return member_.direct_copies; }
  /// True if process_vm_readv and _writev work on this process's own memory. They return an error where a direct access
  /// would raise a signal.
  [[nodiscard]] bool guarded_copies() const noexcept { return guarded_copies_; }
  /// Sets the address range of shared arrays, whose pages may be absent and whose first writes are detected. Only the
  /// program's own accesses may fetch and change these pages, with no lock held, not even the progress lock. Other
  /// processes' copies (which change a page undetected, through its frame), network cards and the progress of the
  /// fabric must not access them. Called once, before there are such pages.
  void set_paged(const void* start, std::size_t bytes) noexcept {
    paged_start_.store(reinterpret_cast<std::uintptr_t>(start), std::memory_order_relaxed);
    paged_bytes_.store(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] bool has_paged() const noexcept { return paged_bytes_.load(std::memory_order_relaxed) != 0; }
  /// True if any byte of the range is in that memory.
  [[nodiscard]] bool is_paged(const void* start, std::size_t bytes) const noexcept {
    const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(start) - paged_start_.load(std::memory_order_relaxed);
    // A start below the range wraps around.
    return place + bytes < paged_bytes_.load(std::memory_order_relaxed) + bytes;
  }
  [[nodiscard]] Arena& arena() const noexcept { return *member_.arena; }
  [[nodiscard]] RankBlock& block() const noexcept { return arena().block(rank()); }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// The connections to other hosts; null if there are none.
  [[nodiscard]] Network* network() const noexcept { return network_.get(); }
  /// True if this rank reaches `other` by the network only, not through this host's memory.
  [[nodiscard]] bool is_remote(int other) const noexcept {
    return network_ != nullptr && other != rank() &&
           (settings_.apart == "network" ? host(other) != host(rank()) : is_on_other_host(other));
  }
  /// True if the state of `other` arrives by the network only, not through the arena.
  [[nodiscard]] bool is_on_other_host(int other) const noexcept {
    return !member_.hosts.empty() &&
           member_.hosts[static_cast<std::size_t>(other)] != member_.hosts[static_cast<std::size_t>(rank())];
  }
  /// Ranks are in one *domain* if they reach each other through memory: a host, or the part of a host that
  /// TONARI_APART=network separates. Numbered from 0.
  [[nodiscard]] int domain(int other) const noexcept {
    if (network_ == nullptr) return 0;
    return settings_.apart == "network" ? host(other) : member_.hosts[static_cast<std::size_t>(other)];
  }
  [[nodiscard]] int domains() const noexcept {
    if (network_ == nullptr) return 1;
    return settings_.apart == "network" ? hosts() : static_cast<int>(member_.host_names.size());
  }
  /// Number of ranks of the job on this machine, including this one.
  [[nodiscard]] int ranks_here() const noexcept;
  [[nodiscard]] int host(int rank) const noexcept;
  [[nodiscard]] int hosts() const noexcept;
  [[nodiscard]] const std::string& host_name() const noexcept { return host_name_; }
  [[nodiscard]] spdlog::logger& log() const noexcept { return *log_; }

  void on_death(std::function<void(const Death&)> handler);
  /// From now on deaths do not end this process, with or without a death handler.
  void outlive_deaths();
  /// Says which ranks are dead, and how each died, as a phrase: "rank 1 (host n1) was killed by signal 9 (Killed)".
  /// Empty if no rank is dead.
  [[nodiscard]] std::string describe_deaths() const;
  /// See Job::abort().
  [[noreturn]] void abort(int code) noexcept;
  /// Returns false if the rank died and this process survives that. If the death must end the process, the call does
  /// not return, so that no call returns peer_gone just before the end.
  [[nodiscard]] bool alive(int rank) const noexcept {
    if (!is_dead(rank)) [[likely]]
      return true;
    stop_unless_outlived(rank);
    return false;
  }
  /// True if alive() is false for any rank.
  [[nodiscard]] bool somebody_died() const noexcept;
  /// True in the process that joined, false in its forked children.
  [[nodiscard]] bool in_own_process() const noexcept;

  /// A layer's part of the runtime. Destroyed after every rank has left.
  class Attachment {
   public:
    virtual ~Attachment() = default;
    /// Runs on the service thread each time its doorbell rings, and about twice per second. With
    /// TONARI_SERVICE_THREAD=off it runs only while the rank leaves, and so does rest(). Must not block.
    virtual void serve() noexcept = 0;
    /// Runs on the service thread for each rank that died, before the death handler. Called again until it returns
    /// true.
    virtual bool died(int rank) noexcept = 0;
    /// Runs on the service thread for each rank that leaves while this one stays; that rank makes no more calls. Called
    /// again until it returns true.
    virtual bool left(int rank) noexcept = 0;
    /// Runs on the leaving thread, before other ranks can notice. Returns when all held-back data that others may wait
    /// for have been sent, and ranks of other hosts have been told.
    virtual void settle() noexcept = 0;
    /// Runs on the service thread when it has nothing to do. Sleeps until the service doorbell differs from `seen`,
    /// something arrives by the network, or `longest` has passed. Returns false if there is only the doorbell to wait
    /// for: then the caller sleeps on that.
    virtual bool rest(std::uint32_t /*seen*/, std::chrono::nanoseconds /*longest*/) noexcept { return false; }
  };
  /// Returns the attachment of type T, which `make()` makes on first use. Thread-safe. There is at most one attachment
  /// per session.
  template <class T, class Make>
  T& attached(Make make) {
    const std::lock_guard guard(attach_mutex_);
    if (!attachment_) attachment_ = make();
    return static_cast<T&>(*attachment_);
  }

 private:
  void start_network();
  void start_service();
  void serve_until_stopped() noexcept;  // runs on the service thread
  void stop_service() noexcept;
  void notice_deaths() noexcept;
  void notice_abort() noexcept;
  void notice_leavers() noexcept;
  void tell_of_full_peer(std::uint64_t now_ns) noexcept;
  void tell_of_death(int rank, Attachment* attachment) noexcept;
  [[nodiscard]] bool is_dead(int rank) const noexcept {
    return arena().block(rank).phase.load(std::memory_order_acquire) ==
           Phase::dead;  // acquire: so that the cause of death is visible
  }
  [[nodiscard]] bool outlives_deaths() const noexcept;
  [[noreturn]] void stop_for(int dead) const noexcept;
  /// Not inline, so that alive() is.
  [[gnu::cold, gnu::noinline]] void stop_unless_outlived(int dead) const noexcept;
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
  // Relaxed: one thread sets them before it passes on any address in the range.
  std::atomic<std::uintptr_t> paged_start_{0};
  std::atomic<std::size_t> paged_bytes_{0};
  std::unique_ptr<Network> network_;
  std::string host_name_;
  std::shared_ptr<spdlog::logger> log_;
  int process_;     // the process that joined
  int exceptions_;  // number of exceptions in flight at construction

  std::mutex attach_mutex_;
  std::unique_ptr<Attachment> attachment_;
  std::mutex handler_mutex_;
  std::function<void(const Death&)> handler_;
  bool outlives_ = false;           // outlive_deaths() was called
  mutable std::atomic_flag stops_;  // set by the thread that ends the process; it publishes no other data

  bool has_front_ = false;             // protected by the lock of of_process()
  std::atomic<bool> leaving_{false};   // set by the destructor, read by the service thread
  std::atomic<bool> stopping_{false};  // by the destructor, for the service thread
  // Used by the service thread, and by the destructor after that thread has ended. By rank: 1 once it was told.
  std::vector<char> attachment_told_;
  std::vector<char> handler_told_;
  std::vector<char> left_told_;
  std::uint64_t told_of_wait_since_ns_ = 0;
  std::atomic<std::string_view (*)() noexcept> namer_{nullptr};
  std::uint64_t abort_seen_ns_ = 0;
  std::thread service_;
};

}  // namespace tonari::job
