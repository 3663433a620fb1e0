#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// Wraps calls that transfer data, where the kernel reports only the program's own faults (see unreached.hpp): they work
// with local memory. repeating.cpp has the calls that can be repeated; streams.cpp and printing.cpp have stdio.
// Elsewhere these wrappers cost only the comparison of an address.
//
// Not covered, so that absent memory gives EFAULT where system calls are not trapped (far/preload/call_filter.hpp):
// - ioctl, fcntl with a structure, sigaction, clock_nanosleep, the processor clocks of clock_gettime, extended
//   attributes
// - the offsets of sendfile and copy_file_range; aio, io_uring; vmsplice of shared memory (far/preload/splicing.cpp)
// - process_vm_readv by the program or by others (MPI's single copies)
// - programs that make system calls without libc: syscall(), Go
// - signal frames on stacks in such memory, unless the program names the stack: far/preload/stacks.cpp
// - the *xstat functions of glibc before 2.33
// - futexes: FUTEX_WAIT reads its word. libc touches the word just before (a compare and exchange, a load), so that it
//   is absent only if it leaves within that time, some 100 ns. glibc 2.36 then ends the program: "The futex facility
//   returned an unexpected error code." Waking does not read the word, and a thread that already waits is not
//   disturbed. This was seen once in 24 s of 32 threads with contended mutexes in memory that is taken out at 300 MB/s.
//   It was never seen where only large arrays are far memory, because malloc places small objects, and their mutexes,
//   elsewhere.
namespace tonari::preload {

namespace {

// Whether a read of a large piece may be continued: other files than these return what there is, and would block.
bool reads_on(int file) noexcept {
  struct stat found {};
  return ::fstat(file, &found) == 0 && (S_ISREG(found.st_mode) || S_ISBLK(found.st_mode));
}
bool waits_for_all(int flags) noexcept { return (flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL; }
constexpr auto always = [] { return true; };

// A wrong count is left to the kernel to report, and so are parts that cannot be read.
bool are_unreached(const iovec* parts, int count) noexcept {
  if (count <= 0 || count > IOV_MAX || !may_be_unreached()) return false;
  const Pieces all(parts, static_cast<std::size_t>(count));
  if (!is_accessible(parts, all.size_bytes(), Access::read)) return false;
  return is_unreached(parts, all.size_bytes()) || is_unreached(all);
}

// Pass call(start, bytes, done) on, which transfers the bytes after the first `done`.
template <class Call, class GoesOn>
ssize_t fill(void* start, std::size_t bytes, Call call, GoesOn goes_on) {
  if (!is_unreached(start, bytes)) [[likely]]
    return call(start, bytes, 0);
  const iovec part{start, bytes};
  return fill_locally({&part, 1}, call, goes_on);
}

template <class Call>
ssize_t take_from(const void* start, std::size_t bytes, Call call) {
  if (!is_unreached(start, bytes)) [[likely]]
    return call(start, bytes, 0);
  const iovec part{const_cast<void*>(start), bytes};
  return take_locally({&part, 1}, call, always);
}

// Pass call(parts, count, done) on.
template <class Call, class GoesOn>
ssize_t fill(const iovec* parts, int count, Call call, GoesOn goes_on) {
  if (!are_unreached(parts, count)) [[likely]]
    return call(parts, count, 0);
  const auto call_with_one = [&](std::byte* start, std::size_t bytes, std::size_t done) {
    const iovec one{start, bytes};
    return call(&one, 1, done);
  };
  return fill_locally({parts, static_cast<std::size_t>(count)}, call_with_one, goes_on);
}

template <class Call>
ssize_t take_from(const iovec* parts, int count, Call call) {
  if (!are_unreached(parts, count)) [[likely]]
    return call(parts, count, 0);
  const auto call_with_one = [&](std::byte* start, std::size_t bytes, std::size_t done) {
    const iovec one{start, bytes};
    return call(&one, 1, done);
  };
  return take_locally({parts, static_cast<std::size_t>(count)}, call_with_one, always);
}

// Returns the place in a file after `done` bytes. preadv2 and pwritev2 take -1 for the current place, which moves.
off_t later(off_t offset, std::size_t done) noexcept { return offset < 0 ? offset : offset + static_cast<off_t>(done); }

Pieces parts_of(const msghdr& message) noexcept { return {message.msg_iov, message.msg_iovlen}; }

bool is_message_unreached(const msghdr* message) noexcept {
  if (!may_be_unreached() || message == nullptr) [[likely]]
    return false;
  return is_accessible(message, sizeof *message, Access::read) && message->msg_iovlen <= IOV_MAX &&
         is_accessible(message->msg_iov, message->msg_iovlen * sizeof(iovec), Access::read) &&
         (is_unreached(message, sizeof *message) || is_unreached(message->msg_name, message->msg_namelen) ||
          is_unreached(message->msg_control, message->msg_controllen) || is_unreached(parts_of(*message)));
}

bool are_messages_unreached(const mmsghdr* messages, unsigned count) noexcept {
  if (!may_be_unreached() || count == 0 || !is_accessible(messages, count * sizeof *messages, Access::read))
    return false;
  return messages->msg_hdr.msg_iovlen <= IOV_MAX &&
         std::any_of(messages, messages + count, [](const auto& each) { return is_message_unreached(&each.msg_hdr); });
}

// Local copies of a message's name and control data; the caller handles its parts.
class LocalMessage {
 public:
  explicit LocalMessage(const msghdr& message) noexcept
      : name_(static_cast<sockaddr_storage*>(message.msg_name), message.msg_namelen),
        control_(std::min<std::size_t>(message.msg_controllen, Local::bytes_max)),
        message_(message) {
    message_.msg_name = name_.get();
    if (!has_control(message) || !is_accessible(message.msg_control, control_.bytes(), Access::read)) return;
    message_.msg_control = control_.start();
    message_.msg_controllen = control_.bytes();
    std::memcpy(control_.start(), message.msg_control, control_.bytes());
  }

  // Returns the message with one part.
  msghdr* with(iovec& part) noexcept {
    message_.msg_iov = &part;
    message_.msg_iovlen = 1;
    return &message_;
  }
  // For the calls after the first, which has sent the control data.
  void omit_control() noexcept { message_.msg_controllen = 0; }
  [[nodiscard]] bool was_too_long() const noexcept { return (message_.msg_flags & MSG_TRUNC) != 0; }
  void tell(msghdr& message) const noexcept {
    if (has_control(message) && is_accessible(message.msg_control, control_.bytes(), Access::write)) {
      std::memcpy(message.msg_control, control_.start(), std::min(message_.msg_controllen, control_.bytes()));
    }
    message.msg_namelen = message_.msg_namelen;
    message.msg_controllen = message_.msg_controllen;
    message.msg_flags = message_.msg_flags;
  }

 private:
  [[nodiscard]] bool has_control(const msghdr& message) const noexcept {
    return message.msg_control != nullptr && control_.start() != nullptr;
  }

  Mirrored<sockaddr_storage> name_;
  Local control_;
  msghdr message_;
};

}  // namespace

}  // namespace tonari::preload

TONARI_NEXT(recvmsg)
TONARI_NEXT(sendmsg)

namespace tonari::preload {

namespace {

[[gnu::cold, gnu::noinline]] ssize_t receive_locally(int socket, msghdr& message, int flags) {
  LocalMessage local(message);
  bool has_all_room = true;
  const auto call = [&, all = bytes_of(parts_of(message))](std::byte* start, std::size_t bytes, std::size_t done) {
    has_all_room = done + bytes == all;
    iovec part{start, bytes};
    return next::recvmsg(socket, local.with(part), flags);
  };
  const ssize_t answer =
      fill_locally(parts_of(message), call, [&] { return waits_for_all(flags) && message.msg_controllen == 0; });
  if (answer < 0) return answer;
  if (!has_all_room && local.was_too_long()) return failed(EFAULT, ssize_t{-1});  // the rest is protected
  local.tell(message);
  return answer;
}

// A buffer that the kernel sends later without copying must not be reused.
[[gnu::cold, gnu::noinline]] ssize_t send_locally(int socket, const msghdr& message, int flags) {
  LocalMessage local(message);
  const bool is_kept_by_kernel = (flags & MSG_ZEROCOPY) != 0;
  const auto call = [&](std::byte* start, std::size_t bytes, std::size_t done) {
    iovec part{start, bytes};
    if (done != 0) local.omit_control();
    return next::sendmsg(socket, local.with(part), flags);
  };
  return take_locally(
      parts_of(message), call, [=] { return !is_kept_by_kernel; }, is_kept_by_kernel);
}

}  // namespace

}  // namespace tonari::preload

using namespace tonari::preload;

extern "C" [[noreturn]] void __chk_fail() noexcept;

// ---- Files and pipes ----

TONARI_NEXT(read)
TONARI_NEXT(pread)
TONARI_NEXT(readv)
TONARI_NEXT(preadv)
TONARI_NEXT(preadv2)
TONARI_NEXT(write)
TONARI_NEXT(pwrite)
TONARI_NEXT(writev)
TONARI_NEXT(pwritev)
TONARI_NEXT(pwritev2)

TONARI_EXPORTED ssize_t read(int file, void* to, std::size_t bytes) {
  return fill(
      to, bytes, [&](void* start, std::size_t some, std::size_t) { return next::read(file, start, some); },
      [file] { return reads_on(file); });
}
TONARI_EXPORTED ssize_t pread(int file, void* to, std::size_t bytes, off_t offset) {
  return fill(
      to, bytes,
      [&](void* start, std::size_t some, std::size_t done) {
        return next::pread(file, start, some, later(offset, done));
      },
      [file] { return reads_on(file); });
}
TONARI_EXPORTED ssize_t readv(int file, const iovec* parts, int count) {
  return fill(
      parts, count, [&](const iovec* some, int several, std::size_t) { return next::readv(file, some, several); },
      [file] { return reads_on(file); });
}
TONARI_EXPORTED ssize_t preadv(int file, const iovec* parts, int count, off_t offset) {
  return fill(
      parts, count,
      [&](const iovec* some, int several, std::size_t done) {
        return next::preadv(file, some, several, later(offset, done));
      },
      [file] { return reads_on(file); });
}
TONARI_EXPORTED ssize_t preadv2(int file, const iovec* parts, int count, off_t offset, int flags) {
  return fill(
      parts, count,
      [&](const iovec* some, int several, std::size_t done) {
        return next::preadv2(file, some, several, later(offset, done), flags);
      },
      [file] { return reads_on(file); });
}
TONARI_EXPORTED ssize_t write(int file, const void* from, std::size_t bytes) {
  return take_from(from, bytes,
                   [&](const void* start, std::size_t some, std::size_t) { return next::write(file, start, some); });
}
TONARI_EXPORTED ssize_t pwrite(int file, const void* from, std::size_t bytes, off_t offset) {
  return take_from(from, bytes, [&](const void* start, std::size_t some, std::size_t done) {
    return next::pwrite(file, start, some, later(offset, done));
  });
}
TONARI_EXPORTED ssize_t writev(int file, const iovec* parts, int count) {
  return take_from(parts, count,
                   [&](const iovec* some, int several, std::size_t) { return next::writev(file, some, several); });
}
TONARI_EXPORTED ssize_t pwritev(int file, const iovec* parts, int count, off_t offset) {
  return take_from(parts, count, [&](const iovec* some, int several, std::size_t done) {
    return next::pwritev(file, some, several, later(offset, done));
  });
}
TONARI_EXPORTED ssize_t pwritev2(int file, const iovec* parts, int count, off_t offset, int flags) {
  return take_from(parts, count, [&](const iovec* some, int several, std::size_t done) {
    return next::pwritev2(file, some, several, later(offset, done), flags);
  });
}

// Without a wrapper it would return fewer bytes where it meets an absent page.
TONARI_NEXT(getrandom)
TONARI_EXPORTED ssize_t getrandom(void* to, std::size_t bytes, unsigned flags) {
  return fill(
      to, bytes, [&](void* start, std::size_t some, std::size_t) { return next::getrandom(start, some, flags); },
      always);
}

static_assert(sizeof(off_t) == sizeof(off64_t));
TONARI_EXPORTED ssize_t pread64(int file, void* to, std::size_t bytes, off64_t offset) {
  return pread(file, to, bytes, offset);
}
TONARI_EXPORTED ssize_t preadv64(int file, const iovec* parts, int count, off64_t offset) {
  return preadv(file, parts, count, offset);
}
TONARI_EXPORTED ssize_t preadv64v2(int file, const iovec* parts, int count, off64_t offset, int flags) {
  return preadv2(file, parts, count, offset, flags);
}
TONARI_EXPORTED ssize_t pwrite64(int file, const void* from, std::size_t bytes, off64_t offset) {
  return pwrite(file, from, bytes, offset);
}
TONARI_EXPORTED ssize_t pwritev64(int file, const iovec* parts, int count, off64_t offset) {
  return pwritev(file, parts, count, offset);
}
TONARI_EXPORTED ssize_t pwritev64v2(int file, const iovec* parts, int count, off64_t offset, int flags) {
  return pwritev2(file, parts, count, offset, flags);
}
TONARI_EXPORTED ssize_t __read_chk(int file, void* to, std::size_t bytes, std::size_t room) {
  if (bytes > room) __chk_fail();
  return read(file, to, bytes);
}
TONARI_EXPORTED ssize_t __pread_chk(int file, void* to, std::size_t bytes, off_t offset, std::size_t room) {
  if (bytes > room) __chk_fail();
  return pread(file, to, bytes, offset);
}
TONARI_EXPORTED ssize_t __pread64_chk(int file, void* to, std::size_t bytes, off64_t offset, std::size_t room) {
  if (bytes > room) __chk_fail();
  return pread(file, to, bytes, offset);
}

// ---- Sockets ----

TONARI_NEXT(recvfrom)
TONARI_NEXT(recvmmsg)
TONARI_NEXT(send)
TONARI_NEXT(sendto)
TONARI_NEXT(sendmmsg)
TONARI_NEXT(accept)
TONARI_NEXT(accept4)

TONARI_EXPORTED ssize_t recvmsg(int socket, msghdr* message, int flags) {
  if (!is_message_unreached(message)) [[likely]]
    return next::recvmsg(socket, message, flags);
  return receive_locally(socket, *message, flags);
}
TONARI_EXPORTED ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  if (!is_message_unreached(message)) [[likely]]
    return next::sendmsg(socket, message, flags);
  return send_locally(socket, *message, flags);
}
TONARI_EXPORTED ssize_t recv(int socket, void* to, std::size_t bytes, int flags) {
  return recvfrom(socket, to, bytes, flags, nullptr, nullptr);
}
TONARI_EXPORTED ssize_t recvfrom(int socket, void* to, std::size_t bytes, int flags, sockaddr* name,
                                 socklen_t* name_bytes) {
  const bool is_met = is_unreached(to, bytes) || is_unreached(name, 1) || is_unreached(name_bytes, 1);
  if (!is_met || !is_accessible(name_bytes, sizeof *name_bytes, Access::write)) [[likely]]
    return next::recvfrom(socket, to, bytes, flags, name, name_bytes);
  iovec part{to, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_name = name;
  if (name != nullptr) message.msg_namelen = *name_bytes;
  const ssize_t answer = receive_locally(socket, message, flags);
  if (answer >= 0 && name != nullptr) *name_bytes = message.msg_namelen;
  return answer;
}
TONARI_EXPORTED ssize_t send(int socket, const void* from, std::size_t bytes, int flags) {
  return sendto(socket, from, bytes, flags, nullptr, 0);
}
TONARI_EXPORTED ssize_t sendto(int socket, const void* from, std::size_t bytes, int flags, const sockaddr* name,
                               socklen_t name_bytes) {
  if (!is_unreached(from, bytes) && !is_unreached(name, name_bytes)) [[likely]]
    return next::sendto(socket, from, bytes, flags, name, name_bytes);
  iovec part{const_cast<void*>(from), bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_name = const_cast<sockaddr*>(name);
  message.msg_namelen = name_bytes;
  return send_locally(socket, message, flags);
}

// Handles only one of several messages, which both calls may do.
TONARI_EXPORTED int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  if (!are_messages_unreached(messages, count)) [[likely]]
    return next::recvmmsg(socket, messages, count, flags, Mirrored(timeout).get());
  const ssize_t bytes = receive_locally(socket, messages->msg_hdr, flags & ~MSG_WAITFORONE);
  if (bytes < 0) return -1;
  messages->msg_len = static_cast<unsigned>(bytes);
  return 1;
}
TONARI_EXPORTED int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  if (!are_messages_unreached(messages, count)) [[likely]]
    return next::sendmmsg(socket, messages, count, flags);
  const ssize_t bytes = send_locally(socket, messages->msg_hdr, flags);
  if (bytes < 0) return -1;
  messages->msg_len = static_cast<unsigned>(bytes);
  return 1;
}

namespace {

std::size_t room_of(const sockaddr* name, const socklen_t* bytes) noexcept {
  return name != nullptr && is_accessible(bytes, sizeof *bytes, Access::read) ? *bytes : 0;
}

}  // namespace

TONARI_EXPORTED int accept(int socket, sockaddr* name, socklen_t* bytes) {
  Mirrored<sockaddr_storage> local(reinterpret_cast<sockaddr_storage*>(name), room_of(name, bytes));
  Mirrored<socklen_t> local_bytes(bytes);
  return next::accept(socket, reinterpret_cast<sockaddr*>(local.get()), local_bytes.get());
}
TONARI_EXPORTED int accept4(int socket, sockaddr* name, socklen_t* bytes, int flags) {
  Mirrored<sockaddr_storage> local(reinterpret_cast<sockaddr_storage*>(name), room_of(name, bytes));
  Mirrored<socklen_t> local_bytes(bytes);
  return next::accept4(socket, reinterpret_cast<sockaddr*>(local.get()), local_bytes.get(), flags);
}
TONARI_EXPORTED ssize_t __recv_chk(int socket, void* to, std::size_t bytes, std::size_t room, int flags) {
  if (bytes > room) __chk_fail();
  return recv(socket, to, bytes, flags);
}
TONARI_EXPORTED ssize_t __recvfrom_chk(int socket, void* to, std::size_t bytes, std::size_t room, int flags,
                                       sockaddr* name, socklen_t* name_bytes) {
  if (bytes > room) __chk_fail();
  return recvfrom(socket, to, bytes, flags, name, name_bytes);
}

// ---- Small values that are returned once ----

TONARI_NEXT(wait)
TONARI_NEXT(waitpid)
TONARI_NEXT(wait3)
TONARI_NEXT(wait4)
TONARI_NEXT(waitid)
TONARI_NEXT(select)

TONARI_EXPORTED pid_t wait(int* status) {
  Mirrored<int> local(status);
  return next::wait(local.get());
}
TONARI_EXPORTED pid_t waitpid(pid_t process, int* status, int options) {
  Mirrored<int> local(status);
  return next::waitpid(process, local.get(), options);
}
TONARI_EXPORTED pid_t wait3(int* status, int options, rusage* usage) noexcept {
  Mirrored<int> local(status);
  Mirrored<rusage> local_usage(usage);
  return next::wait3(local.get(), options, local_usage.get());
}
TONARI_EXPORTED pid_t wait4(pid_t process, int* status, int options, rusage* usage) noexcept {
  Mirrored<int> local(status);
  Mirrored<rusage> local_usage(usage);
  return next::wait4(process, local.get(), options, local_usage.get());
}
TONARI_EXPORTED int waitid(idtype_t what, id_t which, siginfo_t* info, int options) {
  Mirrored<siginfo_t> local(info);
  return next::waitid(what, which, local.get(), options);
}
TONARI_EXPORTED int select(int count, fd_set* reads, fd_set* writes, fd_set* exceptions, timeval* timeout) {
  if (count > FD_SETSIZE) return next::select(count, reads, writes, exceptions, timeout);
  Mirrored<fd_set> local_reads(reads);
  Mirrored<fd_set> local_writes(writes);
  Mirrored<fd_set> local_exceptions(exceptions);
  Mirrored<timeval> local_timeout(timeout);
  return next::select(count, local_reads.get(), local_writes.get(), local_exceptions.get(), local_timeout.get());
}
