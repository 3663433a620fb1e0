#include <tonari/window.hpp>

#include "job/session.hpp"
#include "window/state/window_state.hpp"
#include "window/window_runtime.hpp"

#include <cstring>
#include <utility>

namespace tonari {

using window::Offer;
using window::WindowRuntime;
using window::WindowState;

void detail::copy_long(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

namespace {

Offer ours(std::size_t bytes, const WindowOptions& options) { return {.bytes = bytes, .options = options}; }
Offer of_program(std::span<std::byte> memory, const WindowOptions& options) {
  return {.bytes = memory.size(), .memory = memory.data(), .in_program = true, .options = options};
}

}  // namespace

Window::Window(Job& job, std::size_t bytes, const WindowOptions& options)
    : Window(job, Group::first(job.size()), bytes, options) {}
Window::Window(Job& job, const Group& group, std::size_t bytes, const WindowOptions& options)
    : table_(WindowRuntime::of(job.session()).make(group, ours(bytes, options))) {}
Window::Window(Job& job, std::span<std::byte> memory, const WindowOptions& options)
    : Window(job, Group::first(job.size()), memory, options) {}
Window::Window(Job& job, const Group& group, std::span<std::byte> memory, const WindowOptions& options)
    : table_(WindowRuntime::of(job.session()).make(group, of_program(memory, options))) {}
Window::Window(std::shared_ptr<WindowState> state) noexcept : table_(std::move(state)) {}

Window Window::alone(Job& job, std::size_t bytes, const WindowOptions& options) {
  return Window(WindowRuntime::of(job.session()).make_alone(ours(bytes, options)));
}
Window Window::alone(Job& job, std::span<std::byte> memory, const WindowOptions& options) {
  return Window(WindowRuntime::of(job.session()).make_alone(of_program(memory, options)));
}
Window Window::reach(Job& job, GlobalAddress address) {
  return Window(WindowRuntime::of(job.session()).reach(address));
}

Window::Window(Window&&) noexcept = default;
Window& Window::operator=(Window&&) noexcept = default;
Window::~Window() = default;

const Group& Window::group() const noexcept { return WindowState::of(*this).group(); }
std::span<std::byte> Window::local() const noexcept { return WindowState::of(*this).local(); }
std::uint64_t Window::bytes(JobRank rank) const noexcept { return WindowState::of(*this).bytes(rank.value()); }
bool Window::contains(GlobalAddress address, std::uint64_t bytes) const noexcept {
  return WindowState::of(*this).contains(address, bytes);
}
std::optional<GlobalAddress> Window::global(const void* pointer) const noexcept {
  return WindowState::of(*this).parts().global(pointer);
}
std::byte* Window::direct_by_library(GlobalAddress address, std::uint64_t bytes) const noexcept {
  return WindowState::of(*this).direct(address, bytes);
}

Status Window::pull_by_library(std::span<std::byte> to, GlobalAddress from) noexcept {
  return WindowState::of(*this).pull(to, from);
}
Status Window::pull_with_twin(std::span<std::byte> to, std::span<std::byte> twin, GlobalAddress from) noexcept {
  return WindowState::of(*this).pull_with_twin(to, twin, from);
}
Status Window::pull_regions(std::span<std::byte> to, GlobalAddress from, std::span<const Region> regions) noexcept {
  return WindowState::of(*this).pull_regions(to, from, regions);
}
Status Window::push_by_library(GlobalAddress to, std::span<const std::byte> from) noexcept {
  return WindowState::of(*this).push(to, from);
}
Status Window::push_regions(GlobalAddress to, std::span<const std::byte> from,
                            std::span<const Region> regions) noexcept {
  return WindowState::of(*this).push_regions(to, from, regions);
}
Result<std::uint64_t> Window::push_diff(GlobalAddress to, std::span<const std::byte> from,
                                        std::span<const std::byte> twin) noexcept {
  return WindowState::of(*this).push_diff(to, from, twin);
}
Status Window::multicast(std::span<const GlobalAddress> to, std::span<const std::byte> from) noexcept {
  return WindowState::of(*this).multicast(to, from);
}
Status Window::multicast_to_all(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  return WindowState::of(*this).multicast_to_all(offset, from);
}
Status Window::multicast_regions(std::span<const GlobalAddress> to, std::span<const std::byte> from,
                                 std::span<const Region> regions) noexcept {
  return WindowState::of(*this).multicast_regions(to, from, regions);
}
Status Window::push_notified(GlobalAddress to, std::span<const std::byte> from, std::uint32_t notification) noexcept {
  return WindowState::of(*this).push_notified(to, from, notification);
}
std::uint64_t Window::notified(std::uint32_t notification) const noexcept {
  return WindowState::of(*this).notified(notification);
}
Status Window::wait_notified(std::uint32_t notification, std::uint64_t count) noexcept {
  return WindowState::of(*this).wait_notified(notification, count);
}
Status Window::flush(JobRank rank) noexcept { return WindowState::of(*this).flush(rank.value()); }
Status Window::flush() noexcept { return WindowState::of(*this).flush(); }

Status Window::lock(JobRank home, std::uint32_t number, LockMode mode) noexcept {
  return WindowState::of(*this).locks().lock(home.value(), number, mode);
}
Status Window::try_lock(JobRank home, std::uint32_t number, LockMode mode) noexcept {
  return WindowState::of(*this).locks().try_lock(home.value(), number, mode);
}
Status Window::lock_for(std::chrono::nanoseconds limit, JobRank home, std::uint32_t number) noexcept {
  return WindowState::of(*this).locks().lock_for(limit, home.value(), number);
}
Status Window::unlock(JobRank home, std::uint32_t number) noexcept {
  (void)WindowState::of(*this).flush();
  return WindowState::of(*this).locks().unlock(home.value(), number);
}
Status Window::barrier() noexcept { return WindowState::of(*this).barrier().wait(); }
Status Window::barrier_with_multicast(std::uint64_t offset, std::span<const std::byte> from) noexcept {
  return WindowState::of(*this).barrier_with_multicast(offset, from);
}
Result<std::uint64_t> Window::apply_by_library(GlobalAddress at, const detail::AtomicWords& words) noexcept {
  return WindowState::of(*this).apply(at, words);
}

}  // namespace tonari
