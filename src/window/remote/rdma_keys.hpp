#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"
#include "window/remote/service.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tonari::window {

class WindowRuntime;

// Keys of parts on other hosts, where the network is RDMA (fabric/by_key.hpp). A rank asks for a part's key when it
// first copies from or to the part. The target gives the key if all ranks may read and write the part, because a key
// opens it to every rank that has it. From then on copies need no help from the target. Before the target frees its
// part it waits until all keys are returned: a copy with an invalid key would end the connection.
//
//   origin               target
//     |---- key? -------->| pins the part
//     |<--- key ----------|
//     |==== copies ======>|
//     |<--- freed --------| waits
//     |---- returned ---->| unpins it

/// The start of the reply to `key`; the key follows.
struct KeyAnswer {
  std::uint64_t address;  // of the part, in its owner's memory
};

/// The key of one part, held by an origin.
///
/// I1  it is returned once, when it is closed and unused                  give_back_if_unused()
///
/// Threads: any.
/// Costs:   an atomic operation for each use() and leave().
class PartKey {
 public:
  PartKey() = default;
  PartKey(PartKey&&) = delete;  // threads use it in place

  /// Asks for the key at the first call. Returns true if it can be used, until leave(). Returns false if there is no
  /// key (yet): then copy by heads.
  bool use(WindowRuntime& runtime, int owner, std::uint32_t window) noexcept;
  /// Like use(), but returns false if the key was never asked for.
  bool use_here(WindowRuntime& runtime) noexcept;
  void leave(WindowRuntime& runtime) noexcept;
  /// Returns the key to its owner once it is unused. It is never used again.
  void close(WindowRuntime& runtime) noexcept;

  [[nodiscard]] fabric::RemoteKey* key() const noexcept { return key_; }
  /// Address of the part in its owner's memory.
  [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
  [[nodiscard]] int owner() const noexcept { return owner_; }

 private:
  // Bits of `word_`; in addition it has `user` times the number of users.
  static constexpr std::uint32_t asked = 1;
  static constexpr std::uint32_t held = 2;
  static constexpr std::uint32_t closed = 4;
  static constexpr std::uint32_t user = 8;

  void fetch(WindowRuntime& runtime) noexcept;
  void give_back_if_unused(WindowRuntime& runtime) noexcept;
  void say_returned(WindowRuntime& runtime) const noexcept;

  std::atomic<std::uint32_t> word_{0};  // one word, so that its changes have one order
  fabric::RemoteKey* key_ = nullptr;    // written by the thread that asks, before `held`, as are the members below
  std::uint64_t address_ = 0;
  int owner_ = -1;
  std::uint32_t window_ = 0;
};

/// The keys that this rank has given out for its own parts.
///
/// Threads: any.
class GivenKeys {
 public:
  explicit GivenKeys(WindowRuntime& runtime) noexcept : runtime_(runtime) {}

  /// Returns the reply to `peer`, which asks for the key of this rank's part of a window: KeyAnswer and the key. Empty
  /// if there is no key. May take long, because it pins the part.
  [[nodiscard]] std::vector<std::byte> give(std::uint32_t window, std::span<std::byte> part, int peer);
  void returned(std::uint32_t window, int peer) noexcept;
  /// Returns the network's handle of this rank's part, valid until take_back(); nullptr if no rank has asked for its
  /// key.
  [[nodiscard]] ucp_mem* memory_of(std::uint32_t window) noexcept;
  /// Waits until no rank has the part's key any more. No rank gets it from now on.
  void take_back(std::uint32_t window) noexcept;

 private:
  struct Given {
    fabric::Exposed exposed;
    std::vector<std::byte> answer;
    std::vector<int> holders;
  };
  [[nodiscard]] bool is_held(std::uint32_t window) noexcept;

  WindowRuntime& runtime_;
  SpinLock lock_;  // guards given_
  std::map<std::uint32_t, Given> given_;
};

}  // namespace tonari::window
