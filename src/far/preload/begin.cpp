#include "far/preload/begin.hpp"

#include "far/preload/agent.hpp"
#include "far/preload/call_filter.hpp"
#include "far/preload/choice.hpp"
#include "far/preload/descriptors.hpp"
#include "far/preload/faults.hpp"
#include "far/preload/forks.hpp"
#include "pager/kernel.hpp"
#include "preload/streams.hpp"
#include "preload/unreached.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

// Gives a process far memory.
namespace tonari::far {

constinit Program program{};

namespace {

// The state of the start. Its steps run in order until one fails; Hello then names that step.
struct Start {
  AgentTools tools{};
  int memory = -1;  // descriptor of the channel
  int lent = -1;    // descriptor of the memory that servers lend
  int tables = -1;  // descriptor of the pager's tables, where the program's threads serve their own faults
  std::byte* tables_start = nullptr;
  Range arena{};
  std::span<Extents::Entry> table{};
  std::atomic<std::uint32_t>* ready = nullptr;
  Hello hello{};
};
// Static and not on a stack: descriptors that are open here at a fork are open in the child, which closes them.
constinit Start starting{};

bool fail(Start& start, int error, std::string_view what) noexcept {
  start.hello.error = error;
  std::ranges::copy(what.substr(0, start.hello.what.size() - 1), start.hello.what.begin());
  return false;
}

void send_hello(const Start& start) noexcept {
  // on failure: no Go will arrive
  (void)send_message(start.tools.socket, start.hello, start.hello.error == 0 ? start.tools.faults : -1);
}

// Returns once the keeper sends Go. If it refuses, sleeps until the keeper ends the process; if the keeper has died,
// exits.
void wait_for_go(const Start& start) noexcept {
  Go go;
  const long got = insist(SYS_recvfrom, start.tools.socket, &go, sizeof go, MSG_WAITALL, nullptr, nullptr);
  if (got != sizeof go) ::_exit(127);
  while (go.taken == 0) (void)system_call(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

// Maps a file, without inheriting it to forked children, and outside of core dumps.
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
    return fail(start, EPROTO, "comparing the versions of keeper and preload library, which differ");
  if (::getauxval(AT_PAGESZ) != page_bytes)
    return fail(start, ENOTSUP, "checking the page size, which must be 4096 bytes");
  return true;
}

bool map_lent(Start& start) noexcept {
  const Channel& channel = *start.tools.channel;
  if (channel.lent_bytes == 0) return true;
  start.lent = receive_descriptor(start.tools.socket);
  if (start.lent < 0) return fail(start, EBADF, "receiving the descriptor of the memory that servers lend");
  const std::uint64_t offset = channel.lent_offset / page_bytes * page_bytes;
  const std::uint64_t before = channel.lent_offset - offset;
  const Address at =
      map_shared(start, start.lent, channel.lent_bytes + before, offset, "mmap of the memory that servers lend");
  if (at == 0) return false;
  start.tools.lent = static_cast<std::byte*>(pointer_to(at + before));
  return true;
}

bool map_tables(Start& start) noexcept {
  const Channel& channel = *start.tools.channel;
  if (channel.table_bytes == 0) return true;
  start.tables = receive_descriptor(start.tools.socket);
  if (start.tables < 0) return fail(start, EBADF, "receiving the descriptor of the pager's tables");
  const Address at = map_shared(start, start.tables, channel.table_bytes, 0, "mmap of the pager's tables");
  start.tables_start = static_cast<std::byte*>(pointer_to(at));
  return at != 0;
}

// Reserves address space that begins at a block, at `wanted` if that is free. Forked children do not inherit it, unless
// the handlers of a fork allow that; core dumps leave it out.
Address reserve(Start& start, std::size_t bytes, std::string_view what, Address wanted = 0) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const long got = system_call(SYS_mmap, wanted, bytes + block_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
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

// Threads can place pages themselves only if they see the memory that servers lend.
bool choose_faults(Start& start) noexcept {
  if (start.tables_start == nullptr) return true;
  const bool is_sensible = start.tools.channel->lent_bytes != 0 && suits_own_faults() && can_filter_calls();
  start.hello.threads_serve = is_sensible || program.faults == FaultsBy::threads ? 1 : 0;
  return true;
}

// Returns a random place for the arena in the zone of the filter, if the program's threads serve their own faults.
Address place_for_arena(const Start& start) noexcept {
  const std::size_t needed = start.tools.channel->arena_bytes + (std::size_t{8} << 30);  // without the first 4 GiB
  if (start.hello.threads_serve == 0 || needed > zone_bytes || !can_filter_calls()) return 0;
  std::uint64_t random = 0;
  (void)system_call(SYS_getrandom, &random, sizeof random, 0);  // on failure: always the same place
  return zone_start + (std::size_t{4} << 30) + random % ((zone_bytes - needed) / block_bytes) * block_bytes;
}

bool is_in_zone(const Range& range) noexcept {
  return range.start - zone_start < zone_bytes && range.end() - zone_start <= zone_bytes;
}

bool reserve_arena(Start& start) noexcept {
  const std::size_t bytes = start.tools.channel->arena_bytes;
  start.arena = {reserve(start, bytes, "mmap of the arena", place_for_arena(start)), bytes};
  // Where system calls cannot be trapped, only the user may choose.
  if (program.faults == FaultsBy::choice && !is_in_zone(start.arena)) start.hello.threads_serve = 0;
  return start.arena.start != 0;
}

bool reserve_all(Start& start) noexcept {
  const Channel& channel = *start.tools.channel;
  if (!reserve_arena(start)) return false;
  start.tools.buffers = reserve(start, channel.buffers * block_bytes, "mmap of the buffers");
  if (start.tools.buffers == 0) return false;
  start.tools.nurseries = reserve(start, agents_max * block_bytes, "mmap of huge pages");
  if (start.tools.nurseries == 0) return false;
  // on failure: only slower
  (void)system_call(SYS_madvise, start.tools.nurseries, agents_max * block_bytes, MADV_HUGEPAGE);

  constexpr std::size_t extents_max = 1 << 20;
  const std::size_t extents = std::min(channel.arena_bytes / page_bytes, extents_max);
  const Address table = reserve(start, to_whole_pages(extents * sizeof(Extents::Entry)), "mmap of the arena's table");
  if (table == 0) return false;
  (void)system_call(SYS_madvise, table, to_whole_pages(extents * sizeof(Extents::Entry)), MADV_DOFORK);
  start.table = {static_cast<Extents::Entry*>(pointer_to(table)), extents};
  start.hello.arena = start.arena.start;
  start.hello.buffers = start.tools.buffers;
  return true;
}

bool map_ready(Start& start) noexcept {
  start.ready = map_word_of_this_process();
  return start.ready != nullptr || fail(start, errno, "mmap or madvise(MADV_WIPEONFORK) of a page");
}

bool open_faults(Start& start) noexcept {
  const OpenedFaults opened = open_userfaultfd();
  if (opened.error != 0) return fail(start, opened.error, "userfaultfd");
  start.hello.reaches_everything = opened.reaches_everything ? 1 : 0;
  start.tools.faults = opened.descriptor;
  return true;
}

// UFFDIO_MOVE works only to registered ranges, so the buffers are registered. Nobody serves their faults: touching a
// missing page there raises a signal.
bool watch_buffers(Start& start) noexcept {
  const long opened = system_call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  if (is_error(opened)) return fail(start, error_of(opened), "userfaultfd");
  start.tools.watch = static_cast<int>(opened);
  uffdio_api api{.api = UFFD_API, .features = pager::kernel::feature_move | UFFD_FEATURE_SIGBUS, .ioctls = 0};
  const long agreed = system_call(SYS_ioctl, opened, UFFDIO_API, &api);
  if (is_error(agreed))
    return fail(start, error_of(agreed), "UFFDIO_API for UFFDIO_MOVE, which needs Linux 6.8 or later");
  uffdio_register request{.range = {start.tools.buffers, start.tools.channel->buffers * block_bytes},
                          .mode = UFFDIO_REGISTER_MODE_MISSING,
                          .ioctls = 0};
  const long registered = system_call(SYS_ioctl, opened, UFFDIO_REGISTER, &request);
  return !is_error(registered) || fail(start, error_of(registered), "UFFDIO_REGISTER of the buffers");
}

bool start_helpers(Start& start) noexcept {
  if (const int error = watch_forks()) return fail(start, error, "__register_atfork");
  program.process.store(static_cast<int>(system_call(SYS_getpid)), std::memory_order_relaxed);
  if (const int error = start_agents(start.tools)) return fail(start, error, "clone of an agent");
  return true;
}

void open_arena(const Start& start) noexcept {
  program.channel = start.tools.channel;
  program.beside = {Range{start.tools.buffers, start.tools.channel->buffers * block_bytes},
                    Range{start.tools.nurseries, agents_max * block_bytes},
                    Range{address_of(start.tools.lent), start.tools.channel->lent_bytes},
                    Range{address_of(start.tables_start), start.tools.channel->table_bytes}};
  program.traps = start.hello.threads_serve != 0 && is_in_zone(start.arena);
  program.extents = Extents(start.arena, start.table);
  program.arena_start.store(start.arena.start, std::memory_order_relaxed);
  program.arena_bytes.store(start.arena.bytes, std::memory_order_relaxed);
  if (start.hello.reaches_everything == 0 || serves_own_faults()) {
    unreached.is_here.store(start.ready, std::memory_order_relaxed);
    unreached.start.store(start.arena.start, std::memory_order_relaxed);
    unreached.bytes.store(start.arena.bytes, std::memory_order_relaxed);
    buffer_standard_streams();
  }
  start.ready->store(1, std::memory_order_relaxed);
  // release: after all stores above; pairs with is_ready()
  program.ready.store(start.ready, std::memory_order_release);
  program.bytes_min.store(start.tools.channel->min_bytes, std::memory_order_relaxed);
}

// The agents have descriptors of their own; mappings need none.
void close_all(Start& start) noexcept {
  for (int* each :
       {&start.tools.socket, &start.tools.faults, &start.tools.watch, &start.memory, &start.lent, &start.tables}) {
    if (*each >= 0) (void)system_call(SYS_close, *each);
    *each = -1;
  }
}

bool prepare(Start& start) noexcept {
  return map_channel(start) && map_lent(start) && map_tables(start) && choose_faults(start) && reserve_all(start) &&
         map_ready(start) && open_faults(start) && watch_buffers(start) && start_helpers(start);
}

// Threads that serve their own faults need the userfaultfd. It gets a high number, which programs rarely use or close.
void keep_faults(Start& start) noexcept {
  if (start.hello.threads_serve == 0) return;
  constexpr int lowest = 1000;
  long kept = system_call(SYS_fcntl, start.tools.faults, F_DUPFD_CLOEXEC, lowest);
  if (is_error(kept)) kept = system_call(SYS_fcntl, start.tools.faults, F_DUPFD_CLOEXEC, 3);
  // Without it, the keeper serves all faults: the threads pass them on.
  (void)serve_own_faults(*start.tools.channel, start.tools.lent, start.tables_start, static_cast<int>(kept));
}

void finish(Start& start) noexcept {
  send_hello(start);
  wait_for_go(start);
  if (start.hello.error == 0) keep_faults(start);
  close_all(start);
  open_arena(start);
}

std::string_view remedy_for(int error) noexcept {
  switch (error) {
    case ENOMEM: return "; it needs terabytes of address space, without memory for them: raise ulimit -v";
    case EMFILE: return "; raise ulimit -n";
    default: return "";
  }
}

void say_why_not(Start& start) noexcept {
  Hello& hello = start.hello;
  hello.stays_local = 1;
  (void)send_message(start.tools.socket, hello, -1);  // on failure: the keeper reports no reason at the end
  const char* const why = ::strerrordesc_np(hello.error);
  const auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  const std::array parts{
      part("tonari far: a process stays with local memory: "), part(hello.what.data()),       part(": "),
      part(why != nullptr ? why : "an unknown error"),         part(remedy_for(hello.error)), part("\n")};
  (void)system_call(SYS_writev, STDERR_FILENO, parts.data(), parts.size());
}

}  // namespace

bool begin(int socket) noexcept {
  starting.tools.socket = socket;
  starting.memory = receive_descriptor(socket);
  if (starting.memory < 0) return false;
  const bool can_be = prepare(starting);
  finish(starting);
  return can_be;
}

void may_begin(const char* name, std::size_t bytes_min, FaultsBy faults) noexcept {
  if (watch_forks() != 0) return;  // fails only without memory, and this process has none yet
  const long opened = system_call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  if (!is_error(opened)) (void)system_call(SYS_close, opened);
  // System calls may not reach far memory: before the program uses the streams.
  if (is_error(opened) || faults != FaultsBy::keeper) buffer_standard_streams();
  if (faults != FaultsBy::keeper) expect_faults();
  program.faults = faults;
  // A program may overwrite its environment: Redis does, to change what ps shows.
  ::strncpy(program.door.data(), name, program.door.size() - 1);
  program.bytes_min.store(bytes_min, std::memory_order_relaxed);
  program.may_begin.store(true, std::memory_order_relaxed);
}

bool begin_at_door() noexcept {
  const Guard guard(program.beginning);
  if (is_ready()) return true;
  if (!program.may_begin.exchange(false, std::memory_order_relaxed)) return false;
  starting = {};
  starting.tools.socket = connect_to_door("");
  if (starting.tools.socket < 0) return false;
  starting.memory = receive_descriptor(starting.tools.socket);
  const bool can_be = starting.memory >= 0 && prepare(starting);
  if (can_be) {
    finish(starting);
  } else {
    if (starting.hello.error != 0) say_why_not(starting);
    close_all(starting);
  }
  return can_be;
}

void begin_anew() noexcept {
  close_all(starting);
  std::construct_at(&program.beginning);
  std::construct_at(&program.trapping);
  program.arena_start.store(0, std::memory_order_relaxed);
  program.arena_bytes.store(0, std::memory_order_relaxed);
  program.statics_count.store(0, std::memory_order_relaxed);  // there is one thread
  program.ready.store(nullptr, std::memory_order_relaxed);
  program.may_begin.store(program.door.front() != 0, std::memory_order_relaxed);
}

}  // namespace tonari::far
