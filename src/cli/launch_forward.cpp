#include "cli/launch_forward.hpp"

#include "base/error.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

namespace tonari::cli {

namespace {

// An unfinished line of this age is taken for a prompt, and shown.
constexpr std::chrono::milliseconds prompt_delay{50};

}  // namespace

Forwarder::Forwarder(int ranks, bool tagged)
    : tagged_(tagged),
      at_terminal_(::isatty(STDIN_FILENO) == 1),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      output_(STDOUT_FILENO),
      error_(&output_),
      streams_(2 * static_cast<std::size_t>(ranks)) {
  if (!events_) throw_system_error("epoll_create1");
  Outlet error{STDERR_FILENO};
  if (!error.is_same_place(output_)) error_ = &own_error_.emplace(std::move(error));
}

void Forwarder::add(int rank, FileDescriptor output, FileDescriptor error) {
  const std::string prefix = tagged_ ? fmt::format("[{}] ", rank) : "";
  stream(2 * rank) = Stream{std::move(output), output_, 2 * rank, prefix};
  stream(2 * rank + 1) = Stream{std::move(error), *error_, 2 * rank + 1, prefix};
  watch(stream(2 * rank), 2 * rank);
  watch(stream(2 * rank + 1), 2 * rank + 1);
}

void Forwarder::say(std::string_view text) {
  error_->write(own_writer, fmt::format("tonari: {}\n", text));
  flush_all();
}

void Forwarder::watch(const Stream& watched, int index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = index;
  if (::epoll_ctl(events_.number(), EPOLL_CTL_ADD, watched.pipe().number(), &event) != 0)
    throw_system_error("epoll_ctl");
}

void Forwarder::step() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(events_.number(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const int index = events[static_cast<std::size_t>(i)].data.fd;
    if (index >= 0) read(index);
  }
  if (show_at_ && std::chrono::steady_clock::now() >= *show_at_) show_unfinished();
  flush_all();
}

void Forwarder::read(int index) {
  Stream& from = stream(index);
  if (!from.is_open()) return;
  const int number = from.pipe().number();
  from.read_on();
  if (from.is_open() && from.outlet().is_full()) {
    // Removed rather than watched for no events: epoll would report a hang-up again and again.
    ::epoll_ctl(events_.number(), EPOLL_CTL_DEL, number, nullptr);
    paused_.push_back(index);
  }
  if (at_terminal_ && index < 2 && from.has_unfinished()) show_at_ = std::chrono::steady_clock::now() + prompt_delay;
}

void Forwarder::show_unfinished() {
  show_at_.reset();
  stream(0).show_unfinished();
  stream(1).show_unfinished();
}

void Forwarder::finish(int rank) {
  for (const int index : {2 * rank, 2 * rank + 1}) {
    Stream& from = stream(index);
    from.read_on();
    if (from.is_open() && from.outlet().is_full()) continue;  // once there is room
    from.close();
  }
  flush_all();
}

bool Forwarder::is_flushed() const noexcept { return output_.is_empty() && error_->is_empty(); }

void Forwarder::flush_all() {
  flush(output_, output_index);
  if (error_ != &output_) flush(*error_, error_index);

  for (const int index : std::exchange(paused_, {})) {
    if (!stream(index).is_open()) continue;
    if (stream(index).outlet().is_full()) {
      paused_.push_back(index);
    } else {
      watch(stream(index), index);
    }
  }
}

void Forwarder::flush(Outlet& outlet, int index) {
  outlet.flush();
  if (outlet.is_broken()) {
    for (Stream& writer : streams_) {
      if (writer.is_open() && &writer.outlet() == &outlet) writer.close();  // its rank gets SIGPIPE
    }
  }
  bool& waits = waits_for_room_[index == output_index ? 0 : 1];
  if (waits == !outlet.is_empty()) return;
  waits = !outlet.is_empty();
  epoll_event event{};
  event.events = EPOLLOUT;
  event.data.fd = index;
  ::epoll_ctl(events_.number(), waits ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, outlet.number(), &event);
}

}  // namespace tonari::cli
