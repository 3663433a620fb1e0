#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

// Wraps calls that can be repeated if they fail with EFAULT (see unreached.hpp), because the failed call has had no
// effect. Each line has the type of the result, the name, the parameters, the arguments, and the memory that the kernel
// accesses. A call that succeeds costs nothing extra.
#define REPEATED(ANSWER, NAME, PARAMETERS, ARGUMENTS, ...)              \
  TONARI_NEXT(NAME)                                                     \
  TONARI_EXPORTED ANSWER NAME PARAMETERS {                              \
    return repeated([&] { return next::NAME ARGUMENTS; }, __VA_ARGS__); \
  }
// The same for functions that libc declares noexcept.
#define REPEATED_NX(ANSWER, NAME, PARAMETERS, ARGUMENTS, ...)           \
  TONARI_NEXT(NAME)                                                     \
  TONARI_EXPORTED ANSWER NAME PARAMETERS noexcept {                     \
    return repeated([&] { return next::NAME ARGUMENTS; }, __VA_ARGS__); \
  }

using namespace tonari::preload;

namespace {

template <class Value>
Bytes value(const Value* start) {
  return {start, sizeof(Value)};
}
template <class Value>
Room room(Value* start) {
  return {start, sizeof(Value)};
}
Room room(void* start, const socklen_t* bytes) { return {start, bytes != nullptr && start != nullptr ? *bytes : 0}; }

// Reads the mode, which is passed only if a file may be created.
template <class Call>
int open_with_mode(int flags, va_list rest, const char* path, Call call) {
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  const mode_t mode = makes ? va_arg(rest, mode_t) : 0;
  return repeated([&] { return call(mode); }, Text{path});
}

}  // namespace

// clang-format off

// ---- Paths ----

REPEATED(int, creat, (const char* path, mode_t mode), (path, mode), Text{path})
REPEATED(int, creat64, (const char* path, mode_t mode), (path, mode), Text{path})
REPEATED_NX(int, stat, (const char* path, struct stat* to), (path, to), Text{path}, room(to))
REPEATED_NX(int, stat64, (const char* path, struct stat64* to), (path, to), Text{path}, room(to))
REPEATED_NX(int, lstat, (const char* path, struct stat* to), (path, to), Text{path}, room(to))
REPEATED_NX(int, lstat64, (const char* path, struct stat64* to), (path, to), Text{path}, room(to))
REPEATED_NX(int, fstat, (int file, struct stat* to), (file, to), room(to))
REPEATED_NX(int, fstat64, (int file, struct stat64* to), (file, to), room(to))
REPEATED_NX(int, fstatat, (int at, const char* path, struct stat* to, int flags), (at, path, to, flags), Text{path}, room(to))
REPEATED_NX(int, fstatat64, (int at, const char* path, struct stat64* to, int flags), (at, path, to, flags), Text{path}, room(to))
REPEATED_NX(int, statx, (int at, const char* path, int flags, unsigned mask, struct statx* to), (at, path, flags, mask, to), Text{path}, room(to))
REPEATED_NX(int, statfs, (const char* path, struct statfs* to), (path, to), Text{path}, room(to))
REPEATED_NX(int, statfs64, (const char* path, struct statfs64* to), (path, to), Text{path}, room(to))
REPEATED_NX(int, fstatfs, (int file, struct statfs* to), (file, to), room(to))
REPEATED_NX(int, fstatfs64, (int file, struct statfs64* to), (file, to), room(to))
REPEATED_NX(int, statvfs, (const char* path, struct statvfs* to), (path, to), Text{path})
REPEATED_NX(int, statvfs64, (const char* path, struct statvfs64* to), (path, to), Text{path})
REPEATED_NX(int, access, (const char* path, int mode), (path, mode), Text{path})
REPEATED_NX(int, faccessat, (int at, const char* path, int mode, int flags), (at, path, mode, flags), Text{path})
REPEATED_NX(ssize_t, readlink, (const char* path, char* to, std::size_t bytes), (path, to, bytes), Text{path}, Room{to, bytes})
REPEATED_NX(ssize_t, readlinkat, (int at, const char* path, char* to, std::size_t bytes), (at, path, to, bytes), Text{path}, Room{to, bytes})
REPEATED_NX(char*, realpath, (const char* path, char* to), (path, to), Text{path}, Room{to, PATH_MAX})
REPEATED_NX(char*, getcwd, (char* to, std::size_t bytes), (to, bytes), Room{to, bytes})
REPEATED_NX(int, chdir, (const char* path), (path), Text{path})
REPEATED_NX(int, chmod, (const char* path, mode_t mode), (path, mode), Text{path})
REPEATED_NX(int, fchmodat, (int at, const char* path, mode_t mode, int flags), (at, path, mode, flags), Text{path})
REPEATED_NX(int, chown, (const char* path, uid_t user, gid_t group), (path, user, group), Text{path})
REPEATED_NX(int, lchown, (const char* path, uid_t user, gid_t group), (path, user, group), Text{path})
REPEATED_NX(int, fchownat, (int at, const char* path, uid_t user, gid_t group, int flags), (at, path, user, group, flags), Text{path})
REPEATED_NX(int, truncate, (const char* path, off_t bytes), (path, bytes), Text{path})
REPEATED_NX(int, truncate64, (const char* path, off64_t bytes), (path, bytes), Text{path})
REPEATED_NX(int, mkdir, (const char* path, mode_t mode), (path, mode), Text{path})
REPEATED_NX(int, mkdirat, (int at, const char* path, mode_t mode), (at, path, mode), Text{path})
REPEATED_NX(int, mkfifo, (const char* path, mode_t mode), (path, mode), Text{path})
REPEATED_NX(int, rmdir, (const char* path), (path), Text{path})
REPEATED_NX(int, unlink, (const char* path), (path), Text{path})
REPEATED_NX(int, unlinkat, (int at, const char* path, int flags), (at, path, flags), Text{path})
REPEATED_NX(int, remove, (const char* path), (path), Text{path})
REPEATED_NX(int, rename, (const char* from, const char* to), (from, to), Text{from}, Text{to})
REPEATED_NX(int, renameat, (int at, const char* from, int there, const char* to), (at, from, there, to), Text{from}, Text{to})
REPEATED_NX(int, renameat2, (int at, const char* from, int there, const char* to, unsigned flags), (at, from, there, to, flags), Text{from}, Text{to})
REPEATED_NX(int, link, (const char* from, const char* to), (from, to), Text{from}, Text{to})
REPEATED_NX(int, linkat, (int at, const char* from, int there, const char* to, int flags), (at, from, there, to, flags), Text{from}, Text{to})
REPEATED_NX(int, symlink, (const char* from, const char* to), (from, to), Text{from}, Text{to})
REPEATED_NX(int, symlinkat, (const char* from, int at, const char* to), (from, at, to), Text{from}, Text{to})
REPEATED_NX(int, utimensat, (int at, const char* path, const timespec* times, int flags), (at, path, times, flags), Text{path}, Bytes{times, 2 * sizeof(timespec)})
REPEATED_NX(int, utimes, (const char* path, const timeval* times), (path, times), Text{path}, Bytes{times, 2 * sizeof(timeval)})
REPEATED(DIR*, opendir, (const char* path), (path), Text{path})

// ---- Programs ----

REPEATED_NX(int, execve, (const char* path, char* const* arguments, char* const* variables), (path, arguments, variables), Text{path}, Texts{arguments}, Texts{variables})
REPEATED_NX(int, execv, (const char* path, char* const* arguments), (path, arguments), Text{path}, Texts{arguments}, Texts{::environ})
REPEATED_NX(int, execvp, (const char* path, char* const* arguments), (path, arguments), Text{path}, Texts{arguments}, Texts{::environ})
REPEATED_NX(int, execvpe, (const char* path, char* const* arguments, char* const* variables), (path, arguments, variables), Text{path}, Texts{arguments}, Texts{variables})
REPEATED_NX(int, fexecve, (int file, char* const* arguments, char* const* variables), (file, arguments, variables), Texts{arguments}, Texts{variables})

// ---- Waiting ----

REPEATED(int, poll, (pollfd* set, nfds_t count, int timeout_ms), (set, count, timeout_ms), Room{set, count * sizeof(pollfd)})
REPEATED(int, epoll_wait, (int file, epoll_event* to, int count, int timeout_ms), (file, to, count, timeout_ms), Room{to, static_cast<unsigned>(count) * sizeof(epoll_event)})
REPEATED_NX(int, epoll_ctl, (int file, int what, int descriptor, epoll_event* event), (file, what, descriptor, event), value(event))

// ---- Sockets and pipes ----

REPEATED(int, connect, (int socket, const sockaddr* name, socklen_t bytes), (socket, name, bytes), Bytes{name, bytes})
REPEATED_NX(int, bind, (int socket, const sockaddr* name, socklen_t bytes), (socket, name, bytes), Bytes{name, bytes})
REPEATED_NX(int, getsockname, (int socket, sockaddr* to, socklen_t* bytes), (socket, to, bytes), room(bytes), room(to, bytes))
REPEATED_NX(int, getpeername, (int socket, sockaddr* to, socklen_t* bytes), (socket, to, bytes), room(bytes), room(to, bytes))
REPEATED_NX(int, setsockopt, (int socket, int level, int name, const void* from, socklen_t bytes), (socket, level, name, from, bytes), Bytes{from, bytes})
REPEATED_NX(int, getsockopt, (int socket, int level, int name, void* to, socklen_t* bytes), (socket, level, name, to, bytes), room(bytes), room(to, bytes))
REPEATED_NX(int, pipe, (int* ends), (ends), Room{ends, 2 * sizeof(int)})
REPEATED_NX(int, pipe2, (int* ends, int flags), (ends, flags), Room{ends, 2 * sizeof(int)})
REPEATED_NX(int, socketpair, (int family, int type, int protocol, int* ends), (family, type, protocol, ends), Room{ends, 2 * sizeof(int)})

// ---- The rest ----

REPEATED(int, getentropy, (void* to, std::size_t bytes), (to, bytes), Room{to, bytes})
REPEATED(ssize_t, getdents64, (int file, void* to, std::size_t bytes), (file, to, bytes), Room{to, bytes})
REPEATED_NX(int, gethostname, (char* to, std::size_t bytes), (to, bytes), Room{to, bytes})
REPEATED_NX(int, uname, (utsname* to), (to), room(to))
REPEATED_NX(int, sysinfo, (struct sysinfo* to), (to), room(to))
REPEATED_NX(int, sched_getaffinity, (pid_t thread, std::size_t bytes, cpu_set_t* to), (thread, bytes, to), Room{to, bytes})
REPEATED_NX(int, sched_setaffinity, (pid_t thread, std::size_t bytes, const cpu_set_t* from), (thread, bytes, from), Bytes{from, bytes})
REPEATED(int, nanosleep, (const timespec* time, timespec* rest), (time, rest), value(time), room(rest))
REPEATED_NX(int, getrusage, (__rusage_who_t who, rusage* to), (who, to), room(to))
REPEATED_NX(int, getrlimit, (__rlimit_resource_t what, rlimit* to), (what, to), room(to))
REPEATED_NX(int, getrlimit64, (__rlimit_resource_t what, rlimit64* to), (what, to), room(to))
REPEATED_NX(int, setrlimit, (__rlimit_resource_t what, const rlimit* from), (what, from), value(from))
REPEATED_NX(int, setrlimit64, (__rlimit_resource_t what, const rlimit64* from), (what, from), value(from))

// clang-format on

// ---- Other signatures ----

TONARI_NEXT(open)
TONARI_NEXT(open64)
TONARI_NEXT(openat)
TONARI_NEXT(openat64)
TONARI_NEXT(readdir)
TONARI_NEXT(readdir64)

TONARI_EXPORTED int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int file = open_with_mode(flags, rest, path, [&](mode_t mode) { return next::open(path, flags, mode); });
  va_end(rest);
  return file;
}
TONARI_EXPORTED int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int file = open_with_mode(flags, rest, path, [&](mode_t mode) { return next::open64(path, flags, mode); });
  va_end(rest);
  return file;
}
TONARI_EXPORTED int openat(int at, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int file = open_with_mode(flags, rest, path, [&](mode_t mode) { return next::openat(at, path, flags, mode); });
  va_end(rest);
  return file;
}
TONARI_EXPORTED int openat64(int at, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int file =
      open_with_mode(flags, rest, path, [&](mode_t mode) { return next::openat64(at, path, flags, mode); });
  va_end(rest);
  return file;
}

// The variants that _FORTIFY_SOURCE uses: for open() without a mode, and for buffers of known size.
TONARI_EXPORTED int __open_2(const char* path, int flags) { return open(path, flags); }
TONARI_EXPORTED int __open64_2(const char* path, int flags) { return open64(path, flags); }
TONARI_EXPORTED int __openat_2(int at, const char* path, int flags) { return openat(at, path, flags); }
TONARI_EXPORTED int __openat64_2(int at, const char* path, int flags) { return openat64(at, path, flags); }

extern "C" [[noreturn]] void __chk_fail() noexcept;
TONARI_EXPORTED int __poll_chk(pollfd* set, nfds_t count, int timeout_ms, std::size_t room) {
  if (room / sizeof(pollfd) < count) __chk_fail();
  return poll(set, count, timeout_ms);
}
TONARI_EXPORTED int __ppoll_chk(pollfd* set, nfds_t count, const timespec* timeout, const sigset_t* mask,
                                std::size_t room) {
  if (room / sizeof(pollfd) < count) __chk_fail();
  return ::ppoll(set, count, timeout, mask);
}
TONARI_EXPORTED ssize_t __readlink_chk(const char* path, char* to, std::size_t bytes, std::size_t room) {
  if (room < bytes) __chk_fail();
  return readlink(path, to, bytes);
}
TONARI_EXPORTED ssize_t __readlinkat_chk(int at, const char* path, char* to, std::size_t bytes, std::size_t room) {
  if (room < bytes) __chk_fail();
  return readlinkat(at, path, to, bytes);
}
TONARI_EXPORTED char* __getcwd_chk(char* to, std::size_t bytes, std::size_t room) {
  if (room < bytes) __chk_fail();
  return getcwd(to, bytes);
}
TONARI_EXPORTED char* __realpath_chk(const char* path, char* to, std::size_t room) {
  if (room < PATH_MAX) __chk_fail();
  return realpath(path, to);
}

// The entries of a directory follow its DIR in memory, which the program's own allocator may have put into the arena.
// glibc reads 32 KiB at a time, and more if the file system prefers that.
constexpr std::size_t folder_bytes = 256 << 10;
TONARI_EXPORTED dirent* readdir(DIR* folder) {
  return repeated([&] { return next::readdir(folder); }, Bytes{folder, folder_bytes});
}
TONARI_EXPORTED dirent64* readdir64(DIR* folder) {
  return repeated([&] { return next::readdir64(folder); }, Bytes{folder, folder_bytes});
}
