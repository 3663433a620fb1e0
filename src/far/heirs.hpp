#pragma once

#include "base/file_descriptor.hpp"
#include "base/mapping.hpp"
#include "far/client.hpp"
#include "far/forks.hpp"
#include "pager/snapshot.hpp"
#include "pager/userfaultfd.hpp"

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

namespace tonari::far {

/// Forked children that inherit far memory. While their parent forks, no page leaves it; then a thread serves the
/// faults of their inherited pages, from snapshots. A page that has come to a child stays there.
///
/// Owns:    the connections to the children, and the clients and snapshots that they need, until they have ended.
/// Threads: count() any. One thread of its own, which makes the calls below.
class Heirs {
 public:
  struct Calls {
    /// Returns the client with this Channel::identity, or nullptr.
    std::function<std::shared_ptr<Client>(std::uint64_t identity)> find;
    /// A child has ended, or a fork has failed.
    std::function<void()> one_gone;
    std::function<void(std::string_view text)> advise;  ///< Tells the user; the program goes on.
    Client::OnFailure failed;
  };

  /// Listens at `door` and forks_suffix. Throws SetupError.
  Heirs(std::string_view door, Calls calls);
  /// Ends all children.
  ~Heirs();
  Heirs(Heirs&&) = delete;

  /// Returns the number of children, including children that are just being forked.
  [[nodiscard]] std::uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  // Members are destroyed in the opposite order: the client last.
  struct Inherited {
    std::shared_ptr<Client> owner;
    std::shared_ptr<pager::Snapshot> pages;
  };
  enum class State : std::uint8_t {
    connected,  // waits for begin; anybody may have connected
    closing,    // until the gate is empty and the present pages are recorded
    held,       // until the fork is done
    forked,     // waits for the child, or serves it
    gone,
  };
  struct Heir {
    FileDescriptor line;
    State state = State::connected;
    std::uint64_t number = 0;         // random: only the child knows it
    std::shared_ptr<Client> forking;  // its gate is to be closed, or is closed
    std::vector<Inherited> inherited;
    std::optional<pager::Userfaultfd> faults;  // once the child has come
    // the child's last fault: where the next one would continue, and how many pages came
    pager::Address next = 0;
    std::size_t came = 0;
    std::vector<pager::Address> delayed;  // faults of pages whose blocks were held
  };

  void serve() noexcept;
  void wait();
  [[nodiscard]] std::uint32_t count_now() const noexcept;
  void admit();
  void hear(Heir& heir);
  void begin(Heir& heir, const ForkMessage& message);
  void go_on(Heir& heir);
  void hold(Heir& heir);
  void let_go(Heir& heir) noexcept;
  void end(Heir& heir) noexcept;
  void refuse(Heir& heir) noexcept;
  void take_child(Heir& heir, FileDescriptor faults, bool reaches_everything);
  void serve_faults(Heir& heir) noexcept;
  void serve_delayed(Heir& heir) noexcept;
  void bring(Heir& heir, pager::Address at) noexcept;
  void lose(Heir& heir, pager::Address at) noexcept;

  Calls calls_;
  FileDescriptor door_;
  FileDescriptor stop_;  // an eventfd
  std::list<Heir> heirs_;
  std::vector<pollfd> polled_;
  Mapping room_;                         // for the pages that come for one fault
  std::atomic<std::uint32_t> count_{0};  // relaxed: a count; reports that depend on it follow one_gone()
  std::jthread thread_;
};

}  // namespace tonari::far
