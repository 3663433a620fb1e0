#include "far/heirs.hpp"

#include "base/error.hpp"
#include "job/handshake.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <utility>

namespace tonari::far {

using pager::Address;
using pager::page_bytes;
using pager::Snapshot;

Heirs::Heirs(std::string_view door, Calls calls)
    : calls_(std::move(calls)),
      door_(job::listen_at(std::string(door) + std::string(forks_suffix))),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      room_(Mapping::of_zeros(64 * page_bytes, "memory to bring pages to forked children")) {
  if (!stop_) throw_system_error("eventfd", "raise the limit of open files with ulimit -n");
  thread_ = std::jthread([this] { serve(); });
}

Heirs::~Heirs() {
  constexpr std::uint64_t one = 1;
  (void)!::write(stop_.number(), &one, sizeof one);
  thread_.join();
}

void Heirs::serve() noexcept {
  for (;;) {
    try {
      wait();
      if (polled_[0].revents != 0) return;
      if (polled_[1].revents != 0) admit();
      std::size_t next = 2;
      for (Heir& heir : heirs_) {
        if (next == polled_.size()) break;  // admitted just now
        if (polled_[next++].revents != 0) hear(heir);
        if (polled_[next++].revents != 0) serve_faults(heir);
        go_on(heir);
        serve_delayed(heir);
      }
    } catch (const std::exception& error) {
      return calls_.failed(fmt::format("forked children cannot be served: {}", error.what()));
    }
    heirs_.remove_if([](const Heir& each) { return each.state == State::gone; });
    const std::uint32_t count = count_now();
    if (count_.exchange(count, std::memory_order_relaxed) > count) calls_.one_gone();
  }
}

std::uint32_t Heirs::count_now() const noexcept {
  const auto has_begun = [](const Heir& each) { return each.state != State::connected && each.state != State::gone; };
  return static_cast<std::uint32_t>(std::ranges::count_if(heirs_, has_begun));
}

void Heirs::wait() {
  constexpr int soon_ms = 1;
  bool is_soon = false;
  polled_.assign({{stop_.number(), POLLIN, 0}, {door_.number(), POLLIN, 0}});
  for (const Heir& each : heirs_) {
    is_soon = is_soon || each.state == State::closing || !each.delayed.empty();
    polled_.push_back({each.line.number(), POLLIN, 0});
    polled_.push_back({each.faults ? each.faults->number() : -1, POLLIN, 0});
  }
  if (::poll(polled_.data(), polled_.size(), is_soon ? soon_ms : -1) < 0 && errno != EINTR) throw_system_error("poll");
}

void Heirs::admit() {
  FileDescriptor line{::accept4(door_.number(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (!line && (errno == EMFILE || errno == ENFILE)) {
    return calls_.failed(
        "the keeper has no descriptor left for a forked child: raise the limit of open files with ulimit -n");
  }
  constexpr auto connected_max = 64;  // processes that fork at once, or strangers
  const auto is_connected = [](const Heir& each) { return each.state == State::connected; };
  if (!line || std::ranges::count_if(heirs_, is_connected) == connected_max) return;
  heirs_.emplace_back().line = std::move(line);
}

void Heirs::hear(Heir& heir) {
  ForkMessage message;
  FileDescriptor attached;
  const ssize_t bytes = job::receive_message(heir.line, &message, sizeof message, false, &attached);
  if (bytes < 0 && errno == EAGAIN) return;
  using What = ForkMessage::What;
  const bool is_message = bytes == sizeof message && message.version == channel_version;
  if (is_message && message.what == What::begin && heir.state == State::connected) return begin(heir, message);
  if (is_message && (message.what == What::forked || message.what == What::child) && heir.state == State::held) {
    let_go(heir);
  }
  if (is_message && message.what == What::forked && heir.state == State::forked) return;
  if (is_message && message.what == What::child && heir.state == State::forked && attached && !heir.faults) {
    return take_child(heir, std::move(attached), message.reaches_everything != 0);
  }
  // The address space has ended, or its messages make no sense. The thread that holds the other end sees that, and ends
  // what is left.
  end(heir);
}

void Heirs::begin(Heir& heir, const ForkMessage& message) {
  for (const Heir& each : heirs_) {
    if (message.inheritance != 0 && each.number == message.inheritance) heir.inherited = each.inherited;
  }
  const std::shared_ptr<Client> client = message.process != 0 ? calls_.find(message.process) : nullptr;
  const bool is_known = (message.inheritance == 0 || !heir.inherited.empty()) &&
                        (message.process == 0 || client != nullptr) &&
                        (message.inheritance != 0 || message.process != 0);
  // A process forks once at a time.
  const bool is_forking = client != nullptr && std::ranges::find(heirs_, client, &Heir::forking) != heirs_.end();
  if (!is_known || is_forking) return refuse(heir);
  if (client == nullptr) return hold(heir);
  heir.forking = client;
  heir.state = State::closing;
  client->leaving().close();
}

void Heirs::go_on(Heir& heir) {
  if (heir.state != State::closing || !heir.forking->leaving().is_empty()) return;
  if (heir.inherited.empty() || heir.inherited.back().owner != heir.forking) {
    try {
      heir.inherited.push_back({heir.forking, heir.forking->take_snapshot()});
    } catch (const std::exception&) {
      return refuse(heir);  // no memory for its tables
    }
  }
  if (heir.inherited.back().pages->record_present()) hold(heir);
}

void Heirs::hold(Heir& heir) {
  heir.state = State::held;
  // Before the reply: once it has forked, the parent may end at once, and the child must count then.
  count_.store(count_now(), std::memory_order_relaxed);
  const ForkMessage reply{.what = ForkMessage::What::held};
  job::send_message(heir.line, &reply, sizeof reply);
}

// The fork is done.
void Heirs::let_go(Heir& heir) noexcept {
  if ((heir.state == State::closing || heir.state == State::held) && heir.forking != nullptr) {
    heir.forking->leaving().open();
  }
  heir.forking = nullptr;
  heir.state = State::forked;
}

void Heirs::end(Heir& heir) noexcept {
  let_go(heir);
  heir.state = State::gone;
}

void Heirs::refuse(Heir& heir) noexcept {
  const ForkMessage reply{.what = ForkMessage::What::refused};
  job::send_message(heir.line, &reply, sizeof reply);
  end(heir);
}

void Heirs::take_child(Heir& heir, FileDescriptor faults, bool reaches_everything) {
  try {
    heir.faults.emplace(std::move(faults), reaches_everything ? pager::Reach::everything : pager::Reach::user_mode);
  } catch (const SetupError&) {
    return refuse(heir);  // not a userfaultfd, or one that is in use
  }
  heir.number = random_identity();
  const ForkMessage reply{.what = ForkMessage::What::served, .inheritance = heir.number};
  job::send_message(heir.line, &reply, sizeof reply);
}

void Heirs::serve_faults(Heir& heir) noexcept {
  if (!heir.faults) return;
  for (const pager::Fault& fault : heir.faults->read()) bring(heir, fault.address / page_bytes * page_bytes);
}

void Heirs::serve_delayed(Heir& heir) noexcept {
  const std::vector<Address> delayed = std::exchange(heir.delayed, {});
  for (const Address at : delayed) bring(heir, at);
}

// Brings the page, and pages like it that follow, if the last fault was at the page before it.
void Heirs::bring(Heir& heir, Address at) noexcept {
  if (heir.state == State::gone) return;
  const auto from = std::ranges::find_if(heir.inherited, [at](const Inherited& each) { return each.pages->has(at); });
  if (from == heir.inherited.end()) return heir.faults->wake(at, page_bytes);
  const auto read = [&](std::size_t page) {
    return from->pages->read(at + page * page_bytes, room_.bytes().subspan(page * page_bytes).first<page_bytes>());
  };
  const Snapshot::Found first = read(0);
  if (first == Snapshot::Found::busy) return heir.delayed.push_back(at);
  if (first == Snapshot::Found::lost) return lose(heir, at);

  const std::size_t wanted = at == heir.next ? std::min(2 * heir.came, room_.bytes().size() / page_bytes) : 1;
  std::size_t count = 1;
  while (count < wanted && from->pages->has(at + count * page_bytes) && read(count) == first) ++count;
  heir.came = count;
  heir.next = at + count * page_bytes;
  const pager::Answer answer = first == Snapshot::Found::zeros
                                   ? heir.faults->zero(at, count * page_bytes)
                                   : heir.faults->copy(at, room_.bytes().data(), count * page_bytes);
  // The child has unmapped the page, or there is no memory just now: it touches the page again.
  if (answer != pager::Answer::ok) heir.faults->wake(at, page_bytes);
}

// The child's guardian ends it when the line is closed.
void Heirs::lose(Heir& heir, Address at) noexcept {
  try {
    calls_.advise(
        fmt::format("a forked child is ended, because the page at {:#x} that it inherited is lost: a server died, or "
                    "the servers had no room for its old bytes when the parent changed it; give them more (--memory)",
                    at));
  } catch (const std::exception&) {
    // no memory for the text
  }
  end(heir);
}

}  // namespace tonari::far
