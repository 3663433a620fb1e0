#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"
#include "window/remote/target.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tonari::window {

class WindowRuntime;

// Keys of parts on other hosts, where the network is RDMA (fabric/by_key.hpp). A rank asks for a part's key when it
// first copies to or from it; the owner gives it if all may read and write the part, since a key opens it to whoever
// has it. From then on copies need no help of the owner's. Before the owner frees its part it gets all keys back: a
// copy by a key that is void would end the connection.
//
//   asker                owner
//     |---- key? -------->| pins the part
//     |<--- key ----------|
//     |==== copies ======>|
//     |<--- freed --------| waits
//     |---- returned ---->| unpins it

/// What the answer to `key` begins with; the key follows.
struct KeyAnswer {
  std::uint64_t address;  // of the part, at its owner
};

/// The key of one part, as an asker has it.
///
/// I1  it is given back once, when it is closed and nobody uses it        give_back_if_unused()
///
/// Threads: any. Costs: use() and leave() an atomic operation each.
class PartKey {
 public:
  PartKey() = default;
  PartKey(PartKey&&) = delete;  // threads are in it

  /// Asks for it, the first time. False: there is none, or not yet; copy by heads. True: until leave().
  bool use(WindowRuntime& runtime, int owner, std::uint32_t window) noexcept;
  /// The same, without asking: false where it was not asked for.
  bool use_here(WindowRuntime& runtime) noexcept;
  void leave(WindowRuntime& runtime) noexcept;
  /// Gives it back, once nobody uses it. It is never used again.
  void close(WindowRuntime& runtime) noexcept;

  [[nodiscard]] fabric::RemoteKey* key() const noexcept { return key_; }
  /// Of the part, at its owner.
  [[nodiscard]] std::uint64_t address() const noexcept { return address_; }
  [[nodiscard]] int owner() const noexcept { return owner_; }

 private:
  // Of `word_`, beside as many times `user` as there are users.
  static constexpr std::uint32_t asked = 1;
  static constexpr std::uint32_t held = 2;
  static constexpr std::uint32_t closed = 4;
  static constexpr std::uint32_t user = 8;

  void fetch(WindowRuntime& runtime) noexcept;
  void give_back_if_unused(WindowRuntime& runtime) noexcept;
  void say_returned(WindowRuntime& runtime) const noexcept;

  std::atomic<std::uint32_t> word_{0};  // one word, so that its changes have one order
  fabric::RemoteKey* key_ = nullptr;    // by who asks, before `held`; as the rest
  std::uint64_t address_ = 0;
  int owner_ = -1;
  std::uint32_t window_ = 0;
};

/// The keys that this rank has given out, of its own parts.
///
/// Threads: any.
class GivenKeys {
 public:
  explicit GivenKeys(WindowRuntime& runtime) noexcept : runtime_(runtime) {}

  /// What `peer` is answered who asks for the key of this rank's part of a window: KeyAnswer and the key. Empty: there
  /// is none. May take long: the part is pinned.
  [[nodiscard]] std::vector<std::byte> give(std::uint32_t window, std::span<std::byte> part, int peer);
  void returned(std::uint32_t window, int peer) noexcept;
  /// This rank's part, as the network knows it. Null: nobody has asked for its key. Until take_back().
  [[nodiscard]] ucp_mem* memory_of(std::uint32_t window) noexcept;
  /// Waits until nobody has the part's key any more. Nobody is given it from now on.
  void take_back(std::uint32_t window) noexcept;

 private:
  struct Given {
    fabric::Exposed exposed;
    std::vector<std::byte> answer;
    std::vector<int> holders;
  };
  [[nodiscard]] bool is_held(std::uint32_t window) noexcept;

  WindowRuntime& runtime_;
  SpinLock lock_;  // of the next
  std::map<std::uint32_t, Given> given_;
};

}  // namespace tonari::window
