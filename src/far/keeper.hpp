#pragma once

#include "base/file_descriptor.hpp"
#include "far/client.hpp"
#include "far/control.hpp"
#include "far/servers.hpp"

#include <tonari/job.hpp>
#include <tonari/window.hpp>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tonari::far {

/// Rank 0 of the servers' job: has the processes of one program, whose pages go to the servers and back.
///
/// Owns:    a client for each of them.
/// Threads: one.
class Keeper {
 public:
  /// Connects to the `tonari far` that listens at `front`. Collective: the servers' part is lend(). Throws SetupError.
  Keeper(Job& job, std::string_view front);
  ~Keeper();
  Keeper(Keeper&&) = delete;

  /// Until `tonari far` closes the connection.
  void run();

 private:
  using Clients = std::list<Client>;

  void hear_order();
  void begin(const Order& order, FileDescriptor socket);
  void admit_child();
  void add_client(FileDescriptor socket);
  void hear(Clients::iterator client);
  void remove(Clients::iterator client);
  void count_the_dead();
  void share_limit();
  [[nodiscard]] std::uint64_t limit_for(std::uint64_t touched, std::uint64_t touched_by_all) const noexcept;
  void tell(const Report& report) noexcept;
  void fail(std::string_view why) noexcept;
  [[nodiscard]] Program::Lent lent();
  [[nodiscard]] Statistics statistics() const noexcept;

  Job& job_;
  Window window_;
  std::string front_;
  FileDescriptor control_;
  std::shared_ptr<FileDescriptor> deaths_;  // counts; the job's handler has it, too
  FileDescriptor clock_;                    // ticks while a limit depends on what is used
  FileDescriptor door_;                     // where children come in, if they may
  bool closed_ = false;
  Order order_{};
  std::optional<Servers> servers_;  // once there is an order
  Clients clients_;
  Statistics ended_{};               // of clients that are gone
  std::atomic<bool> failed_{false};  // relaxed: only the first is told
};

/// The other ranks: gives `bytes` of this rank's memory to the job, and stays until the keeper leaves. `at_once`: all
/// of it is there before the keeper is told, or SetupError.
void lend(Job& job, std::uint64_t bytes, bool at_once);

}  // namespace tonari::far
