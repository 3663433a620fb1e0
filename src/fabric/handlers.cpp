#include "fabric/handlers.hpp"

#include <utility>

namespace tonari::fabric {

void Handlers::add(std::size_t index, std::unique_ptr<ProtocolHandler> handler) {
  owned_[index] = std::move(handler);
  for (const auto& [rank, event] : gone_) (owned_[index].get()->*event)(rank);
  handlers_[index].store(owned_[index].get(), std::memory_order_release);  // complete before it is seen
  session_.arena().ring_service_doorbell(session_.rank());                 // for deaths before it was registered
}

bool Handlers::any() const noexcept {
  return std::ranges::any_of(handlers_,
                             [](const auto& slot) { return slot.load(std::memory_order_acquire) != nullptr; });
}

void Handlers::deliver_undelivered_slow() noexcept {
  has_undelivered_ = false;
  for (std::size_t index = 0; index < handlers_count; ++index) {
    ProtocolHandler* const handler = handlers_[index].load(std::memory_order_acquire);
    if (handler != nullptr) {
      handler->receive(undelivered_[index]);
      undelivered_[index] = {};
    }
    has_undelivered_ = has_undelivered_ || !undelivered_[index].empty();
  }
}

void Handlers::retry_slow() noexcept {
  for_each([](ProtocolHandler& handler) {
    if (handler.held_back()) handler.retry();
  });
}

bool Handlers::held_back() const noexcept {
  return std::ranges::any_of(handlers_, [](const auto& slot) {
    const ProtocolHandler* const handler = slot.load(std::memory_order_acquire);
    return handler != nullptr && handler->held_back();
  });
}

void Handlers::idle() noexcept {
  for_each([](ProtocolHandler& handler) { handler.idle(); });
}

void Handlers::run_deferred_work_slow() noexcept {
  for_each([](ProtocolHandler& handler) { handler.run_deferred_work(); });
}

void Handlers::tell(int rank, void (ProtocolHandler::*event)(int) noexcept) noexcept {
  const std::lock_guard guard(mutex_);
  gone_.push_back({rank, event});
  for (const auto& handler : owned_) {
    if (handler) (handler.get()->*event)(rank);
  }
}

}  // namespace tonari::fabric
