#include "window/remote/rdma_keys.hpp"

#include "fabric/wait.hpp"
#include "window/remote/heads.hpp"
#include "window/window_runtime.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

namespace tonari::window {

bool PartKey::use(WindowRuntime& runtime, int owner, std::uint32_t window) noexcept {
  if (runtime.engine().by_key() == nullptr) return false;
  if ((word_.load(std::memory_order_relaxed) & asked) == 0 &&
      (word_.fetch_or(asked, std::memory_order_relaxed) & asked) == 0) {
    owner_ = owner;
    window_ = window;
    fetch(runtime);
  }
  return use_here(runtime);
}

bool PartKey::use_here(WindowRuntime& runtime) noexcept {
  if ((word_.load(std::memory_order_relaxed) & (held | closed)) != held) return false;
  // Acquire: the key.
  if ((word_.fetch_add(user, std::memory_order_acquire) & (held | closed)) == held) return true;
  leave(runtime);
  return false;
}

// Called by one thread, once.
void PartKey::fetch(WindowRuntime& runtime) noexcept {
  PendingAccess question;
  question.takes_tail = true;
  ServiceRequest request{};
  request.service = Service::key;
  fabric::Requests& requests = runtime.origin().requests();
  runtime.origin().ask(question, owner_, window_, request);
  requests.wait(question);
  if (!question.reply().kind.has_tail()) return;
  const auto data = requests.tail_of(question);
  KeyAnswer answer{};
  if (data.size() > sizeof answer) {
    std::memcpy(&answer, data.data(), sizeof answer);
    address_ = answer.address;
    key_ = runtime.engine().by_key()->open_key(owner_, data.subspan(sizeof answer));
  }
  requests.give_back_tail(question);
  if (key_ == nullptr) return say_returned(runtime);
  word_.fetch_or(held, std::memory_order_release);  // release: the key, to its users
  give_back_if_unused(runtime);                     // it may have been closed meanwhile
}

void PartKey::leave(WindowRuntime& runtime) noexcept {
  word_.fetch_sub(user, std::memory_order_release);  // release: this use, to the thread that gives the key back
  give_back_if_unused(runtime);
}

void PartKey::close(WindowRuntime& runtime) noexcept {
  word_.fetch_or(asked | closed, std::memory_order_relaxed);
  give_back_if_unused(runtime);
}

void PartKey::give_back_if_unused(WindowRuntime& runtime) noexcept {
  std::uint32_t unused = asked | held | closed;
  // Acquire: all uses.
  if (!word_.compare_exchange_strong(unused, asked | closed, std::memory_order_acquire)) return;
  runtime.engine().by_key()->close_key(key_);
  say_returned(runtime);
}

void PartKey::say_returned(WindowRuntime& runtime) const noexcept {
  const int self = runtime.engine().session().rank();
  runtime.send_queue().post(owner_, plain_head(Kind::window_returned, self, window_), fabric::Lane::request);
}

std::vector<std::byte> GivenKeys::give(std::uint32_t window, std::span<std::byte> part, int peer) {
  fabric::ucx::Wire* const wire = runtime_.engine().by_key();
  if (wire == nullptr || part.empty()) return {};
  const auto give_to = [peer](Given& given) {
    given.holders.push_back(peer);
    return given.answer;
  };
  {
    const std::lock_guard guard(lock_);
    const auto found = given_.find(window);
    if (found != given_.end()) return give_to(found->second);
  }
  fabric::Exposed exposed = wire->expose(part);
  if (exposed.memory == nullptr) return {};
  std::vector<std::byte> answer;
  {
    const std::lock_guard guard(lock_);
    Given& given = given_[window];
    if (given.exposed.memory == nullptr) {
      const KeyAnswer start{reinterpret_cast<std::uint64_t>(part.data())};
      std::ranges::copy(std::as_bytes(std::span(&start, 1)), std::back_inserter(given.answer));
      std::ranges::copy(exposed.key, std::back_inserter(given.answer));
      std::swap(given.exposed, exposed);
    }
    answer = give_to(given);
  }
  if (exposed.memory != nullptr) wire->withdraw(exposed);  // another thread was first
  return answer;
}

void GivenKeys::returned(std::uint32_t window, int peer) noexcept {
  const std::lock_guard guard(lock_);
  const auto found = given_.find(window);
  if (found != given_.end()) std::erase(found->second.holders, peer);
}

ucp_mem* GivenKeys::memory_of(std::uint32_t window) noexcept {
  const std::lock_guard guard(lock_);
  const auto found = given_.find(window);
  return found != given_.end() ? found->second.exposed.memory : nullptr;
}

// A rank whose connection is closed cannot use its key, so it is no holder. Its last head may be lost with the
// connection, once all ranks have left.
bool GivenKeys::is_held(std::uint32_t window) noexcept {
  const std::lock_guard guard(lock_);
  const auto found = given_.find(window);
  return found != given_.end() && std::ranges::any_of(found->second.holders, [this](int rank) {
           return !runtime_.has_gone(rank) && !runtime_.engine().by_key()->gone(rank);
         });
}

void GivenKeys::take_back(std::uint32_t window) noexcept {
  fabric::wait_until(
      runtime_.engine(), [&] { return !is_held(window); }, job::Wait::window, -1);
  const auto node = [&] {
    const std::lock_guard guard(lock_);
    return given_.extract(window);
  }();
  if (!node.empty()) runtime_.engine().by_key()->withdraw(node.mapped().exposed);
}

}  // namespace tonari::window
