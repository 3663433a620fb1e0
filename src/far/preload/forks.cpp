#include "far/preload/forks.hpp"

#include "far/forks.hpp"
#include "far/preload/begin.hpp"
#include "far/preload/descriptors.hpp"
#include "far/preload/guardian.hpp"
#include "far/preload/helpers.hpp"
#include "far/preload/inherited.hpp"
#include "far/preload/lost.hpp"
#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include <csignal>
#include <cstdint>
#include <memory>

// The handlers of forks (protocol: far/forks.hpp). They are the last before a fork and the first after it: no other
// code of the program runs between them, neither in the parent nor in the child.
extern "C" int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* library) noexcept;
TONARI_NEXT(__register_atfork)

namespace tonari::far {

namespace {

// A fork from prepare() to the end in the parent, and in the child.
struct Fork {
  Lock lock;
  bool is_far = false;   // there is something to inherit
  bool is_held = false;  // the keeper lets no page leave
  int line = -1;
  std::uint64_t signals = 0;  // the thread's mask before it
};
constinit Fork now{};

void for_each_far_range(int advice) noexcept {
  const auto advise = [advice](Range range) { (void)system_call(SYS_madvise, range.start, range.bytes, advice); };
  if (is_ready()) {
    program.extents.for_each_without(arena(), Extents::is_foreign, advise);
    for (const Range& each : statics()) advise(each);
  }
  (void)for_each_inherited_part(everywhere, [&](Inherited&, Range part) {
    advise(part);
    return true;
  });
}

bool send(int line, const ForkMessage& message, int attached = -1) noexcept {
  return send_message(line, message, attached) == sizeof message;
}

bool receive(int line, ForkMessage::What what, ForkMessage& message) noexcept {
  const long got = insist(SYS_recvfrom, line, &message, sizeof message, 0, nullptr, nullptr);
  return got == sizeof message && message.what == what;
}

std::uint64_t block_signals() noexcept {
  const std::uint64_t all_but_faults = ~(1ULL << (SIGBUS - 1) | 1ULL << (SIGSYS - 1));
  std::uint64_t before = 0;
  (void)system_call(SYS_rt_sigprocmask, SIG_BLOCK, &all_but_faults, &before, sizeof before);
  return before;
}
void unblock_signals(std::uint64_t before) noexcept {
  (void)system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
}

void close_line() noexcept {
  if (now.line >= 0) (void)system_call(SYS_close, now.line);
  now.line = -1;
}

// Asks the keeper to hold the pages. Without its reply, the child has no far memory.
void hold_pages() noexcept {
  now.line = connect_to_door(forks_suffix);
  if (now.line < 0) return;
  ForkMessage message{.process = is_ready() ? program.channel->identity : 0, .inheritance = program.inheritance};
  now.is_held = send(now.line, message) && receive(now.line, ForkMessage::What::held, message);
}

void prepare() noexcept {
  const std::uint64_t signals = block_signals();
  now.lock.lock();
  program.beginning.lock();
  now.signals = signals;
  now.is_far = is_ready() || program.inherited_count != 0;
  if (!now.is_far) return;
  program.discards.close();
  while (!program.discards.is_empty()) pause_shortly();
  hold_pages();
  program.lock.lock();
  if (now.is_held) {
    for_each_far_range(MADV_DOFORK);
  } else {
    watch_lost_memory();  // an allocator whose memory is far may touch it in the child before our code runs there
  }
}

void go_on_as_parent() noexcept {
  if (now.is_far) {
    if (now.is_held) for_each_far_range(MADV_DONTFORK);
    program.lock.unlock();
    if (now.is_held) (void)send(now.line, {.what = ForkMessage::What::forked});
    close_line();
    if (!now.is_held) unwatch_lost_memory();
    now.is_held = false;
    program.discards.open();
  }
  const std::uint64_t signals = now.signals;
  program.beginning.unlock();
  now.lock.unlock();
  unblock_signals(signals);
}

// A static variable over which the program has mapped something else cannot be watched, and is lost.
void watch_inherited(int faults) noexcept {
  (void)for_each_inherited_part(everywhere, [faults](Inherited&, Range part) {
    uffdio_register request{.range = {part.start, part.bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
    if (is_error(system_call(SYS_ioctl, faults, UFFDIO_REGISTER, &request))) lose(part);
    return true;
  });
}

// Where the kernel does not report its own faults, system calls need help.
void let_calls_reach(bool reaches_everything) noexcept {
  if (reaches_everything) return;
  std::atomic<std::uint32_t>* const is_here = map_word_of_this_process();
  if (is_here == nullptr) return;  // they fail with EFAULT then
  is_here->store(1, std::memory_order_relaxed);
  unreached.is_here.store(is_here, std::memory_order_relaxed);
  for (const Inherited& each : std::span(program.inherited).first(program.inherited_count)) {
    (void)unreached.add(each.range.start, each.range.bytes);  // there is room for all
  }
}

bool become_heir() noexcept {
  if (!now.is_held || !inherit_all()) return false;
  const OpenedFaults faults = open_userfaultfd();
  ForkMessage message{.what = ForkMessage::What::child, .reaches_everything = faults.reaches_everything ? 1U : 0U};
  const bool is_heir = faults.descriptor >= 0 && send(now.line, message, faults.descriptor) &&
                       receive(now.line, ForkMessage::What::served, message) &&
                       start_guardian(now.line, faults.descriptor) == 0;
  if (is_heir) {
    program.process.store(static_cast<int>(system_call(SYS_getpid)), std::memory_order_relaxed);
    program.inheritance = message.inheritance;
    watch_inherited(faults.descriptor);
    let_calls_reach(faults.reaches_everything);
  }
  if (faults.descriptor >= 0) (void)system_call(SYS_close, faults.descriptor);
  return is_heir;
}

void go_on_as_child() noexcept {
  std::construct_at(&now.lock);
  if (now.is_far) {
    std::construct_at(&program.lock);
    std::construct_at(&program.discards);
    forget_helpers();
    unreached.forget();
    if (!become_heir()) lose_all();
    for_each_far_range(MADV_DONTFORK);
    close_line();
    now.is_held = false;
  }
  begin_anew();
  unblock_signals(now.signals);
}

// The first registration of any handler also registers ours: after a fork, handlers run in the order of registration;
// before it, in the opposite order.
int register_ours() noexcept {
  static constinit std::atomic<bool> is_registered{false};
  if (is_registered.exchange(true, std::memory_order_relaxed)) return 0;
  const int error = preload::next::__register_atfork(prepare, go_on_as_parent, go_on_as_child, nullptr);
  if (error != 0) is_registered.store(false, std::memory_order_relaxed);
  return error;
}

}  // namespace

int watch_forks() noexcept { return register_ours(); }

}  // namespace tonari::far

TONARI_EXPORTED int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* library) noexcept {
  if (const int error = tonari::far::register_ours()) return error;
  return tonari::preload::next::__register_atfork(prepare, parent, child, library);
}
