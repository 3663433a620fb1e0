#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tonari::job::pmix {

/// Returns why a launcher's job cannot be joined, and the remedy; empty if it can.
std::string why_absent();

/// This process's connection to its launcher, by PMIx. It gives the rank's number and the job's size, and exchanges
/// data between ranks before they can communicate.
///
/// Owns:    one reference to PMIx, which counts its users: MPI in the same process has another.
/// Threads: one.
/// Costs:   PMIx runs a thread of its own.
class Client {
 public:
  /// Connects. Throws SetupError.
  Client();
  ~Client();
  Client(Client&&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// Gives `bytes` to all ranks and returns the bytes of each rank, by rank. All ranks call it, in the same order, with
  /// a key that was not used before. Throws SetupError, also if not all ranks have called it within `limit`.
  std::vector<std::vector<std::byte>> exchange(const char* key, std::span<const std::byte> bytes,
                                               std::chrono::seconds limit);

  /// Asks the launcher to end all ranks with this exit status. Returns when it has heard that. Any thread.
  static void abort(int exit_status) noexcept;

  /// Returns false once the launcher's server on this host has ended.
  [[nodiscard]] static bool connected() noexcept;

 private:
  [[nodiscard]] int ask_for_size() const;
  void put(const char* key, std::span<const std::byte> bytes);
  void wait_for_all(std::chrono::seconds limit);
  [[nodiscard]] std::vector<std::byte> get(int rank, const char* key, std::chrono::seconds limit) const;
  void watch_server() noexcept;

  std::string job_;  // PMIx's namespace
  int rank_ = 0;
  int size_ = 1;
  std::size_t handler_;  // called when the server ends
};

}  // namespace tonari::job::pmix
