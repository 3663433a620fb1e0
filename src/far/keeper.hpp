#pragma once

#include "base/file_descriptor.hpp"
#include "far/client.hpp"
#include "far/control.hpp"
#include "far/heirs.hpp"
#include "far/servers.hpp"

#include <tonari/job.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tonari::far {

/// Rank 0 of the servers' job. Keeps the processes of one program, and moves their pages to the servers and back.
///
/// Owns:    a client for each process.
/// Threads: one.
class Keeper {
 public:
  /// Connects to the `tonari far` that listens at `front`. Collective: the servers call lend(). Throws SetupError.
  Keeper(Job& job, std::string_view front);
  ~Keeper();
  Keeper(Keeper&&) = delete;

  /// Serves until `tonari far` closes the connection.
  void run();

 private:
  using Clients = std::list<std::shared_ptr<Client>>;

  void hear_order();
  void begin(const Order& order, FileDescriptor socket);
  void admit();
  [[nodiscard]] bool may_be_admitted(const FileDescriptor& connection) const;
  void add_client(FileDescriptor socket);
  void hear(Clients::iterator client);
  void remove(Clients::iterator client);
  void tell_if_all_gone();
  [[nodiscard]] std::shared_ptr<Client> find(std::uint64_t identity);
  void count_the_dead();
  void share_limit();
  void look_at_working_sets();
  [[nodiscard]] std::string wanted_limit(const WorkingSet::Finding& found, std::uint64_t now) const;
  [[nodiscard]] std::uint64_t limit_for(std::uint64_t touched, std::uint64_t touched_by_all) const noexcept;
  void tell(const Report& report) noexcept;
  void advise(std::string_view text) noexcept;
  void fail(std::string_view why) noexcept;
  [[nodiscard]] Program::Lent lent();
  [[nodiscard]] std::uint32_t living() const noexcept;
  [[nodiscard]] Statistics statistics() const noexcept;

  Job& job_;
  std::uint64_t available_bytes_;  // of this host's memory, before servers have allocated theirs
  Window window_;
  std::string front_;
  FileDescriptor control_;
  std::shared_ptr<FileDescriptor> deaths_;  // an eventfd that counts deaths; the job's handler shares it
  FileDescriptor clock_;                    // ticks, often while a limit depends on the memory in use
  FileDescriptor heirs_gone_;               // an eventfd that counts forked children that have ended
  FileDescriptor door_;                     // where processes that the program has started or executed connect
  bool closed_ = false;
  Order order_{};
  std::uint64_t local_bytes_max_ = 0;   // of all processes together, if their limit is a share
  std::uint64_t limit_peak_bytes_ = 0;  // the same; the most that they were allowed
  bool advised_ = false;                // the user knows that a working set does not fit
  std::optional<Servers> servers_;      // set with the first order
  std::mutex clients_mutex_;            // guards the list against find(); only this thread changes it
  Clients clients_;
  std::list<std::weak_ptr<Client>> ended_clients_;  // some of whose forked children may live
  std::optional<Heirs> heirs_;                      // set with the first order
  Statistics ended_{};                              // of clients that have ended
  std::atomic<bool> failed_{false};                 // relaxed: only the first failure is reported
};

/// Called by the other ranks. Lends `bytes` of this rank's memory to the job, and returns when the keeper leaves. With
/// `at_once`, all of the memory is allocated before the keeper may begin; otherwise throws SetupError.
void lend(Job& job, std::uint64_t bytes, bool at_once);

}  // namespace tonari::far
