#include "far/channel.hpp"
#include "far/preload/agent.hpp"
#include "far/preload/children.hpp"
#include "far/preload/next.hpp"
#include "far/preload/program.hpp"
#include "far/preload/real.hpp"
#include "far/preload/streams.hpp"
#include "far/preload/system_calls.hpp"
#include "pager/kernel.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

// How a program becomes one with far memory, before its main().
namespace tonari::far {

constinit Program program{};

namespace {

constexpr std::string_view own_name = "libtonari_far_preload.so";

// One step after the other, until one fails: then Hello says which.
struct Start {
  AgentTools tools;
  int memory = -1;  // the channel's descriptor
  int lent = -1;    // that of what servers lend
  Range arena;
  std::span<Extents::Entry> table;
  std::atomic<std::uint32_t>* ready = nullptr;
  Hello hello;
};

bool fail(Start& start, int error, std::string_view what) noexcept {
  start.hello.error = error;
  std::ranges::copy(what.substr(0, start.hello.what.size() - 1), start.hello.what.begin());
  return false;
}

template <class... Arguments>
long insist(long number, Arguments... arguments) noexcept {
  for (;;) {
    const long answer = system_call(number, arguments...);
    if (answer != -EINTR) return answer;
  }
}

// The environment is for the program alone, not for what it starts.
void take_out_of_list(char* list) noexcept {
  char* to = list;
  for (const char* from = list + std::strspn(list, ": "); *from != '\0'; from += std::strspn(from, ": ")) {
    const std::string_view entry(from, std::strcspn(from, ": "));
    from += entry.size();
    if (entry.ends_with(own_name)) continue;
    if (to != list) *to++ = ':';
    std::memmove(to, entry.data(), entry.size());
    to += entry.size();
  }
  *to = '\0';
}

void leave_environment() noexcept {
  ::unsetenv(socket_variable);
  char* const list = std::getenv("LD_PRELOAD");
  if (list == nullptr) return;
  take_out_of_list(list);
  if (*list == '\0') ::unsetenv("LD_PRELOAD");
}

// It comes with one byte. -1: it is not there, or this is not the keeper's socket.
int receive_descriptor(int socket) noexcept {
  char byte = 0;
  iovec part{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (insist(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC) < 0) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return descriptor;
}

void send_hello(const Start& start) noexcept {
  iovec part{.iov_base = const_cast<Hello*>(&start.hello), .iov_len = sizeof(Hello)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (start.hello.error == 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &start.tools.faults, sizeof(int));
  }
  (void)insist(SYS_sendmsg, start.tools.socket, &message, MSG_NOSIGNAL);  // refused: nobody will say Go
}

// Who may not begin does not: the keeper ends it, or is gone.
void wait_for_go(const Start& start) noexcept {
  Go go;
  const long got = insist(SYS_recvfrom, start.tools.socket, &go, sizeof go, MSG_WAITALL, nullptr, nullptr);
  if (got != sizeof go) ::_exit(127);
  while (go.taken == 0) (void)system_call(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

// Not for forked children, nor for dumps.
Address map_shared(Start& start, int descriptor, std::size_t bytes, std::uint64_t offset,
                   std::string_view what) noexcept {
  const long at = system_call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, offset);
  if (is_error(at)) {
    (void)fail(start, error_of(at), what);
    return 0;
  }
  (void)system_call(SYS_madvise, at, bytes, MADV_DONTFORK);
  (void)system_call(SYS_madvise, at, bytes, MADV_DONTDUMP);
  return static_cast<Address>(at);
}

bool map_channel(Start& start) noexcept {
  const Address at = map_shared(start, start.memory, channel_bytes, 0, "mmap of the channel");
  if (at == 0) return false;
  start.tools.channel = static_cast<Channel*>(pointer_to(at));
  if (start.tools.channel->version != channel_version)
    return fail(start, EPROTO, "keeper and preload differ in version");
  if (::getauxval(AT_PAGESZ) != page_bytes) return fail(start, ENOTSUP, "paging, which needs pages of 4096 bytes");
  return true;
}

bool map_lent(Start& start) noexcept {
  const Channel& channel = *start.tools.channel;
  if (channel.lent_bytes == 0) return true;
  start.lent = receive_descriptor(start.tools.socket);
  if (start.lent < 0) return fail(start, EBADF, "receiving the descriptor of what servers lend");
  const std::uint64_t offset = channel.lent_offset / page_bytes * page_bytes;
  const std::uint64_t before = channel.lent_offset - offset;
  const Address at = map_shared(start, start.lent, channel.lent_bytes + before, offset, "mmap of what servers lend");
  if (at == 0) return false;
  start.tools.lent = static_cast<std::byte*>(pointer_to(at + before));
  return true;
}

// Address space that begins at a block. Forked children do not have it; a dump of it would be long and empty.
Address reserve(Start& start, std::size_t bytes, std::string_view what) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const long got = system_call(SYS_mmap, nullptr, bytes + block_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (is_error(got)) {
    (void)fail(start, error_of(got), what);
    return 0;
  }
  const auto first = static_cast<Address>(got);
  const Address aligned = (first + block_bytes - 1) / block_bytes * block_bytes;
  if (aligned != first) (void)system_call(SYS_munmap, first, aligned - first);
  (void)system_call(SYS_munmap, aligned + bytes, first + block_bytes - aligned);
  (void)system_call(SYS_madvise, aligned, bytes, MADV_DONTFORK);
  (void)system_call(SYS_madvise, aligned, bytes, MADV_DONTDUMP);
  return aligned;
}

bool reserve_all(Start& start) noexcept {
  const Channel& channel = *start.tools.channel;
  start.arena = {reserve(start, channel.arena_bytes, "mmap of the arena"), channel.arena_bytes};
  if (start.arena.start == 0) return false;
  start.tools.buffers = reserve(start, channel.buffers * block_bytes, "mmap of the buffers");
  if (start.tools.buffers == 0) return false;
  start.tools.nurseries = reserve(start, agents_max * block_bytes, "mmap of huge pages");
  if (start.tools.nurseries == 0) return false;
  (void)system_call(SYS_madvise, start.tools.nurseries, agents_max * block_bytes, MADV_HUGEPAGE);  // refused: slower

  constexpr std::size_t extents_max = 1 << 20;
  const std::size_t extents = std::min(channel.arena_bytes / page_bytes, extents_max);
  const Address table = reserve(start, to_whole_pages(extents * sizeof(Extents::Entry)), "mmap of the arena's table");
  if (table == 0) return false;
  start.table = {static_cast<Extents::Entry*>(pointer_to(table)), extents};
  start.hello.arena = start.arena.start;
  start.hello.buffers = start.tools.buffers;
  return true;
}

bool map_ready(Start& start) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  const long at = system_call(SYS_mmap, nullptr, page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (is_error(at)) return fail(start, error_of(at), "mmap of a page");
  const long wiped = system_call(SYS_madvise, at, page_bytes, MADV_WIPEONFORK);
  if (is_error(wiped)) return fail(start, error_of(wiped), "madvise(MADV_WIPEONFORK)");
  start.ready = static_cast<std::atomic<std::uint32_t>*>(pointer_to(static_cast<Address>(at)));
  return true;
}

// As pager/userfaultfd.cpp: with a device the kernel asks for the file's rights, without one for the process's.
bool open_faults(Start& start) noexcept {
  constexpr int flags = O_CLOEXEC | O_NONBLOCK;
  const long device = insist(SYS_openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC, 0);
  long opened = -1;
  if (!is_error(device)) {
    opened = system_call(SYS_ioctl, device, USERFAULTFD_IOC_NEW, flags);
    (void)system_call(SYS_close, device);
  }
  if (is_error(opened)) opened = system_call(SYS_userfaultfd, flags);
  start.hello.reaches_everything = is_error(opened) ? 0 : 1;
  if (is_error(opened)) opened = system_call(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
  if (is_error(opened)) return fail(start, error_of(opened), "userfaultfd");
  start.tools.faults = static_cast<int>(opened);
  return true;
}

// Pages are moved only to where somebody watches. Nobody waits for these: who touches what is not there has a signal.
bool watch_buffers(Start& start) noexcept {
  const long opened = system_call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  if (is_error(opened)) return fail(start, error_of(opened), "userfaultfd");
  start.tools.watch = static_cast<int>(opened);
  uffdio_api api{.api = UFFD_API, .features = pager::kernel::feature_move | UFFD_FEATURE_SIGBUS, .ioctls = 0};
  const long agreed = system_call(SYS_ioctl, opened, UFFDIO_API, &api);
  if (is_error(agreed))
    return fail(start, error_of(agreed), "UFFDIO_API for UFFDIO_MOVE, which Linux 6.8 and later has");
  uffdio_register request{.range = {start.tools.buffers, start.tools.channel->buffers * block_bytes},
                          .mode = UFFDIO_REGISTER_MODE_MISSING,
                          .ioctls = 0};
  const long registered = system_call(SYS_ioctl, opened, UFFDIO_REGISTER, &request);
  return !is_error(registered) || fail(start, error_of(registered), "UFFDIO_REGISTER of the buffers");
}

bool start_helpers(Start& start) noexcept {
  if (const int error = watch_for_children()) return fail(start, error, "pthread_atfork");
  if (const int error = start_agents(start.tools)) return fail(start, error, "clone of an agent");
  return true;
}

void open_arena(const Start& start) noexcept {
  program.channel = start.tools.channel;
  program.extents = Extents(start.arena, start.table);
  program.arena_start.store(start.arena.start, std::memory_order_relaxed);
  program.arena_bytes.store(start.arena.bytes, std::memory_order_relaxed);
  if (start.hello.reaches_everything == 0) {
    program.unreached_start.store(start.arena.start, std::memory_order_relaxed);
    program.unreached_bytes.store(start.arena.bytes, std::memory_order_relaxed);
    buffer_standard_streams();
  }
  start.ready->store(1, std::memory_order_relaxed);
  program.ready.store(start.ready, std::memory_order_release);  // all of the above before it: pairs with is_ready
  program.bytes_min.store(start.tools.channel->min_bytes, std::memory_order_relaxed);
}

// The agents have their own; what is mapped needs none.
void close_all(const Start& start) noexcept {
  for (const int each : {start.tools.socket, start.tools.faults, start.tools.watch, start.memory, start.lent}) {
    if (each >= 0) (void)system_call(SYS_close, each);
  }
}

[[gnu::constructor]] void start_program() noexcept {
  (void)real();
  find_all_next();
  const char* const number = std::getenv(socket_variable);
  if (number == nullptr) return;
  Start start;
  start.tools.socket = std::atoi(number);
  start.memory = receive_descriptor(start.tools.socket);
  if (start.memory < 0) return;  // it was meant for the parent

  const bool can_be = map_channel(start) && map_lent(start) && reserve_all(start) && map_ready(start) &&
                      open_faults(start) && watch_buffers(start) && start_helpers(start);
  if (can_be) leave_environment();
  send_hello(start);
  wait_for_go(start);
  close_all(start);
  open_arena(start);
}

}  // namespace

}  // namespace tonari::far
