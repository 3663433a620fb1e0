#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tonari::job::pmix {

/// Why no job of a launcher can be joined, and what helps; empty when one can.
std::string why_absent();

/// This process's connection to its launcher, by PMIx: who it is, and what ranks tell each other before they can talk.
///
/// Owns:    one of the process's claims on PMIx, which counts them: MPI in the same process has another.
/// Threads: one.
/// Costs:   PMIx keeps a thread of its own.
class Client {
 public:
  /// Connects. Throws SetupError.
  Client();
  ~Client();
  Client(Client&&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// Gives all ranks `bytes` and answers what each has given, by rank. All ranks call it, in the same order, with a key
  /// that was not used before. Throws SetupError, also when not all have called it after `limit`.
  std::vector<std::vector<std::byte>> exchange(const char* key, std::span<const std::byte> bytes,
                                               std::chrono::seconds limit);

  /// False once the launcher's server on this host is gone.
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
  std::size_t handler_;  // that hears of the server's end
};

}  // namespace tonari::job::pmix
