// A program that knows nothing of tonari: system calls of all kinds, with all that they read and write in large memory
// that has never been touched, or not for a while. Prints "ok", or says which call went wrong. With "pipes": only pipes
// that hold pages for a while.

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

extern "C" ssize_t __read_chk(int file, void* to, size_t bytes, size_t room);
extern "C" size_t __fread_chk(void* to, size_t room, size_t size, size_t count, FILE* stream);

namespace {

constexpr std::size_t far_bytes = 2 << 20;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::_Exit(1);
}

/// Memory that nobody has touched, and that begins as no page does.
template <class T = char>
T* fresh() {
  return reinterpret_cast<T*>(static_cast<char*>(std::malloc(far_bytes)) + 64);
}

/// Touches so much memory that the pages touched before it are moved to a server.
void sweep() {
  constexpr std::size_t all = 48 << 20;
  static volatile char* const memory = static_cast<char*>(std::malloc(all));
  for (std::size_t i = 0; i < all; i += 4096) memory[i] = 1;
}

template <class T>
T* far(const T& value) {
  return new (fresh<T>()) T(value);
}
char* far_text(std::string_view text) { return std::strncpy(fresh(), std::string(text).c_str(), text.size() + 1); }
bool holds(const char* memory, std::string_view text) { return std::string_view(memory, text.size()) == text; }

void mappings() {
  auto* const start = static_cast<char*>(
      ::mmap(nullptr, far_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  check(start != MAP_FAILED && start[5000] == 0, "mmap");
  check(::madvise(start, far_bytes, MADV_DONTNEED) == 0, "madvise to give back");
  check(::madvise(start, far_bytes, MADV_POPULATE_WRITE) == 0, "madvise to have at once");
  check(::munmap(start, far_bytes) == 0, "munmap");
  constexpr int there = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  check(::mmap(start, far_bytes, PROT_READ | PROT_WRITE, there, -1, 0) == start, "mmap where there was a mapping");
  start[5000] = 1;
  check(::mmap(start, far_bytes, PROT_READ | PROT_WRITE, there, -1, 0) == MAP_FAILED && errno == EEXIST &&
            start[5000] == 1,
        "mmap where there is one");
  check(::munmap(start, far_bytes) == 0, "munmap again");
}

void files() {
  char* const path = far_text("calls_of_far_memory");
  char* const text = far_text("abcdefghij");
  sweep();
  const int file = ::open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
  check(file >= 0, "open");
  check(::write(file, text, 10) == 10, "write");
  check(::pwrite(file, text, 10, 10) == 10, "pwrite");
  auto* parts = far(std::array<iovec, 2>{iovec{text, 3}, iovec{text + 5, 5}});
  sweep();
  check(::pwritev(file, parts->data(), 2, 20) == 8, "pwritev");
  ::lseek(file, 28, SEEK_SET);
  sweep();
  check(::writev(file, parts->data(), 2) == 8, "writev");
  constexpr std::string_view all = "abcdefghijabcdefghijabcfghijabcfghij";

  char* to = fresh();
  check(::pread(file, to, 100, 0) == 36 && holds(to, all), "pread");
  ::lseek(file, 0, SEEK_SET);
  to = fresh();
  check(::read(file, to, far_bytes / 2) == 36 && holds(to, all) && to[36] == 0, "read");
  ::lseek(file, 0, SEEK_SET);
  to = fresh();
  check(__read_chk(file, to, 100, 100) == 36 && holds(to, all), "__read_chk");
  auto* rooms = far(std::array<iovec, 2>{iovec{fresh(), 10}, iovec{fresh(), 100}});
  check(::preadv(file, rooms->data(), 2, 0) == 36, "preadv");
  check(holds(static_cast<char*>((*rooms)[1].iov_base), all.substr(10)), "preadv's second part");
  check(::preadv2(file, rooms->data(), 2, 10, 0) == 26, "preadv2");
  ::lseek(file, 0, SEEK_SET);
  check(::readv(file, rooms->data(), 2) == 36, "readv");

  struct stat* status = fresh<struct stat>();
  check(::fstat(file, status) == 0 && status->st_size == 36, "fstat");
  status = fresh<struct stat>();
  sweep();
  check(::stat(path, status) == 0 && status->st_size == 36, "stat");
  check(::statx(AT_FDCWD, path, 0, STATX_SIZE, fresh<struct statx>()) == 0, "statx");
  char* const other = far_text("calls_of_far_memory.other");
  sweep();
  check(::symlink(path, other) == 0, "symlink");
  check(::readlink(other, fresh(), 1000) == 19, "readlink");
  sweep();
  check(::rename(other, path) == 0 && ::unlink(path) == 0, "rename and unlink");
  check(::getcwd(fresh(), 4096) != nullptr, "getcwd");
  errno = 0;
  check(::access(reinterpret_cast<const char*>(8), F_OK) == -1 && errno == EFAULT, "access of a wrong address");
  check(::read(-1, fresh(), 5) == -1 && errno == EBADF, "read of nothing");
  ::close(file);
}

constexpr std::size_t page = 4096;

/// Large memory of which a page is protected, and absent, and so are the pages around it.
char* protected_page(int protection, std::string_view text = {}) {
  auto* const start =
      static_cast<char*>(::mmap(nullptr, far_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  check(start != MAP_FAILED, "mmap");
  char* const at = start + far_bytes / 2;
  text.copy(at, text.size());
  check(::mprotect(at, page, protection) == 0, "mprotect");
  sweep();
  return at;
}

void check_fails(ssize_t result, const char* what) {
  if (result != -1) errno = 0;
  check(result == -1 && errno == EFAULT, what);
}

void protected_room() {
  constexpr std::string_view text = "stays here";
  std::array<char, 100> to{};
  std::array<int, 2> ends{};
  check(::pipe(ends.data()) == 0 && ::write(ends[1], text.data(), text.size()) == 10, "pipe");
  char* const room = protected_page(PROT_READ);
  iovec part{room, 100};
  check_fails(::read(ends[0], room, 100), "read to a page that is protected");
  check_fails(::readv(ends[0], &part, 1), "readv");
  check_fails(::read(ends[0], protected_page(PROT_NONE), 100), "read to a page that is closed");
  check(::read(ends[0], to.data(), 100) == 10 && holds(to.data(), text), "the bytes that were not read");

  const int file = ::open("/proc/self/exe", O_RDONLY);
  check_fails(::pread(file, room, 100, 0), "pread");
  check_fails(::preadv(file, &part, 1, 0), "preadv");
  check(::pread(file, room - page, 3 * page, 0) == page && holds(room - page, "\177ELF"), "pread to a part");
  check(::read(file, room - 2 * page, 2 * page) == 2 * page, "read before the page");
  check_fails(::getrandom(room, 8, 0), "getrandom");
  check_fails(::fstat(file, reinterpret_cast<struct stat*>(room)), "fstat");
  check(::read(-1, room, 1) == -1 && errno == EBADF, "read of nothing");
  ::close(file);

  check(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) == 0, "socketpair");
  const auto send = [&] { check(::send(ends[0], text.data(), 10, 0) == 10, "send"); };
  send();
  check_fails(::recv(ends[1], room, 100, 0), "recv");
  send();
  check_fails(::recv(ends[1], room - 4, 100, 0), "recv of a message that is too long for its room");
  send();
  check(::recv(ends[1], room - 10, 100, 0) == 10 && holds(room - 10, text), "recv of one that is not");
  send();
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  check_fails(::recvmsg(ends[1], &message, 0), "recvmsg");
  send();
  message.msg_iov = reinterpret_cast<iovec*>(protected_page(PROT_NONE));
  check_fails(::recvmsg(ends[1], &message, 0), "recvmsg with closed parts");
  check_fails(::recvmsg(ends[1], reinterpret_cast<msghdr*>(protected_page(PROT_NONE)), 0), "recvmsg of a closed one");
  for (const int each : ends) ::close(each);

  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  check_fails(::waitpid(child, reinterpret_cast<int*>(room), 0), "waitpid");
}

void protected_data() {
  char* const closed = protected_page(PROT_NONE);
  iovec part{closed, 10};
  std::array<int, 2> ends{};
  check(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends.data()) == 0, "socketpair");
  check_fails(::write(ends[0], closed, 10), "write from a closed page");
  check_fails(::write(ends[0], closed - 4, 10), "write from a page and a closed one");
  check_fails(::writev(ends[0], &part, 1), "writev");
  check_fails(::send(ends[0], closed, 10, 0), "send");
  check_fails(::send(ends[0], closed - 4, 10, 0), "send from a page and a closed one");
  check(::recv(ends[1], fresh(), 100, MSG_DONTWAIT) == -1 && errno == EAGAIN, "that nothing was sent");
  const int file = ::memfd_create("data", 0);
  check_fails(::pwrite(file, closed, 10, 0), "pwrite");
  check(::lseek(file, 0, SEEK_END) == 0, "that nothing was written");
  check_fails(::access(closed, F_OK), "access");
  ::close(file);

  const auto readable = [](std::string_view text) { return protected_page(PROT_READ, text); };
  check(::write(ends[0], readable("read-only"), 9) == 9, "write from a page that is only read");
  char* const to = fresh();
  check(::recv(ends[1], to, 100, 0) == 9 && holds(to, "read-only"), "what was written");
  check(::access(readable("/proc/self/exe"), F_OK) == 0, "access of a text that is only read");
  check(::close(ends[0]) == 0 && ::close(ends[1]) == 0, "close");

  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in name{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero{}};
  socklen_t bytes = sizeof name;
  check(::bind(socket, reinterpret_cast<sockaddr*>(&name), bytes) == 0, "bind");
  check(::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &bytes) == 0, "getsockname");
  const char* const constant = readable({reinterpret_cast<const char*>(&name), sizeof name});
  check(::sendto(socket, far_text("hello"), 5, 0, reinterpret_cast<const sockaddr*>(constant), bytes) == 5,
        "sendto a name that is only read");
  ::close(socket);
}

void pipes() {
  std::array<int, 2> ends{};
  check(::pipe(ends.data()) == 0, "pipe");
  for (const unsigned flags : {0U, unsigned{SPLICE_F_GIFT}}) {
    auto* const parts = far(std::array<iovec, 2>{iovec{far_text("spliced"), 7}, iovec{fresh(), 3 * page}});
    sweep();
    check(::vmsplice(ends[1], parts->data(), 2, flags) == 7 + 3 * page, "vmsplice");
    sweep();
    iovec room{fresh(), far_bytes / 2};
    check(::vmsplice(ends[0], &room, 1, 0) == 7 + 3 * page, "vmsplice out of a pipe");
    check(holds(static_cast<char*>(room.iov_base), {"spliced\0", 8}), "what was spliced");
  }
  iovec part{fresh(), far_bytes / 2};
  const ssize_t fits = ::vmsplice(ends[1], &part, 1, 0);
  check(fits > 0 && fits <= 64 << 10, "vmsplice of more than fits");
  check(::vmsplice(ends[1], &part, 1, SPLICE_F_NONBLOCK) == -1 && errno == EAGAIN, "vmsplice to a full pipe");
  check(::read(ends[0], fresh(), far_bytes / 2) == fits, "read of the bytes that fit");
  part.iov_base = protected_page(PROT_NONE);
  check_fails(::vmsplice(ends[1], &part, 1, 0), "vmsplice from a closed page");
  part.iov_base = protected_page(PROT_READ);
  check(::write(ends[1], "kept", 4) == 4, "write");
  check_fails(::vmsplice(ends[0], &part, 1, 0), "vmsplice to a protected page");
  check(::read(ends[0], fresh(), 100) == 4, "the bytes that were not spliced");
  check(::vmsplice(-1, &part, 1, 0) == -1 && errno == EBADF, "vmsplice to nothing");
  check(::close(ends[0]) == 0 && ::close(ends[1]) == 0, "close");
}

/// Pages that leave, and whose memory others get, while a pipe has them.
void filled_pipes() {
  constexpr std::size_t bytes = 64 << 20;
  constexpr std::size_t some = 1 << 20;
  const auto map = [] {
    void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(start != MAP_FAILED, "mmap");
    return static_cast<std::size_t*>(start);
  };
  std::size_t* const from = map();
  std::size_t* const others = map();
  static std::array<std::size_t, some / sizeof(std::size_t)> read_back;
  std::array<int, 2> ends{};
  check(::pipe(ends.data()) == 0 && ::fcntl(ends[1], F_SETPIPE_SZ, some) == some, "pipe");
  for (std::size_t round = 1; round <= 10; ++round) {
    for (std::size_t i = 0; i < bytes / sizeof *from; ++i) from[i] = round * bytes + i;
    const std::size_t first = round * 5 * some / sizeof *from;
    iovec part{from + first, some};
    check(::vmsplice(ends[1], &part, 1, 0) == some, "vmsplice");
    for (std::size_t i = 0; i < 3 * bytes / sizeof *from; ++i) others[i % (bytes / sizeof *from)] = 1;
    for (std::size_t got = 0; got < some;) {
      const ssize_t more = ::read(ends[0], reinterpret_cast<char*>(read_back.data()) + got, some - got);
      check(more > 0, "read");
      got += static_cast<std::size_t>(more);
    }
    for (std::size_t i = 0; i < read_back.size(); ++i) check(read_back[i] == round * bytes + first + i, "the bytes");
  }
}

void folders() {
  DIR* const folder = ::opendir(far_text("/usr"));
  check(folder != nullptr, "opendir");
  errno = 0;
  int entries = 0;
  while (::readdir(folder) != nullptr) ++entries;
  check(entries > 3 && errno == 0, "readdir");
  ::closedir(folder);
}

void sockets() {
  std::array<int, 2>& ends = *fresh<std::array<int, 2>>();
  check(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) == 0, "socketpair");
  char* const text = far_text("message");
  sweep();
  check(::send(ends[0], text, 7, 0) == 7, "send");
  char* to = fresh();
  check(::recv(ends[1], to, 100, 0) == 7 && holds(to, "message"), "recv");
  check(::write(ends[0], "a longer message", 16) == 16, "write to a socket");
  to = fresh();
  check(::recv(ends[1], to, 8, MSG_TRUNC) == 16 && holds(to, "a longer") && to[8] == 0, "recv of a part");

  // A descriptor as control.
  auto* control = fresh<std::array<char, CMSG_SPACE(sizeof(int))>>();
  auto* message = fresh<msghdr>();
  message->msg_iov = far(iovec{text, 7});
  message->msg_iovlen = 1;
  message->msg_control = control->data();
  message->msg_controllen = control->size();
  cmsghdr* const header = CMSG_FIRSTHDR(message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &ends[0], sizeof(int));
  sweep();
  check(::sendmsg(ends[0], message, 0) == 7, "sendmsg");
  message->msg_iov = far(iovec{fresh(), 100});
  message->msg_control = fresh();
  message->msg_controllen = control->size();
  check(::recvmsg(ends[1], message, 0) == 7 && holds(static_cast<char*>(message->msg_iov->iov_base), "message"),
        "recvmsg");
  int received = -1;
  check(message->msg_controllen >= CMSG_LEN(sizeof(int)) && CMSG_FIRSTHDR(message)->cmsg_type == SCM_RIGHTS,
        "recvmsg's control");
  std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(message)), sizeof received);
  check(::write(received, "x", 1) == 1 && ::read(ends[1], fresh(), 1) == 1, "the descriptor that came");
  ::close(received);

  auto* several = fresh<std::array<mmsghdr, 2>>();
  for (mmsghdr& each : *several) {
    each.msg_hdr.msg_iov = far(iovec{text, 7});
    each.msg_hdr.msg_iovlen = 1;
  }
  sweep();
  int sent = 0;
  while (sent < 2) {
    const int more = ::sendmmsg(ends[0], several->data() + sent, static_cast<unsigned>(2 - sent), 0);
    check(more > 0, "sendmmsg");
    sent += more;
  }
  for (mmsghdr& each : *several) each.msg_hdr.msg_iov = far(iovec{fresh(), 100});
  const int came = ::recvmmsg(ends[1], several->data(), 2, 0, nullptr);
  check(came > 0 && (*several)[0].msg_len == 7, "recvmmsg");
  if (came == 1) check(::recv(ends[1], fresh(), 10, 0) == 7, "the second message");

  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  auto* name =
      far(sockaddr_in{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero{}});
  auto* bytes = far<socklen_t>(sizeof *name);
  sweep();
  check(::bind(listener, reinterpret_cast<sockaddr*>(name), sizeof *name) == 0, "bind");
  check(::listen(listener, 5) == 0, "listen");
  sweep();
  check(::getsockname(listener, reinterpret_cast<sockaddr*>(name), bytes) == 0, "getsockname");
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sweep();
  check(::connect(client, reinterpret_cast<sockaddr*>(name), sizeof *name) == 0, "connect");
  auto* peer = fresh<sockaddr_in>();
  const int server = ::accept(listener, reinterpret_cast<sockaddr*>(peer), bytes);
  check(server >= 0 && peer->sin_family == AF_INET && *bytes == sizeof *peer, "accept");
  check(::getsockopt(server, SOL_SOCKET, SO_ERROR, fresh<int>(), far<socklen_t>(4)) == 0, "getsockopt");

  const int datagrams = ::socket(AF_INET, SOCK_DGRAM, 0);
  name->sin_port = 0;
  check(::bind(datagrams, reinterpret_cast<sockaddr*>(name), sizeof *name) == 0, "bind");
  check(::getsockname(datagrams, reinterpret_cast<sockaddr*>(name), bytes) == 0, "getsockname");
  sweep();
  check(::sendto(datagrams, text, 7, 0, reinterpret_cast<sockaddr*>(name), sizeof *name) == 7, "sendto");
  to = fresh();
  peer = fresh<sockaddr_in>();
  check(::recvfrom(datagrams, to, 100, 0, reinterpret_cast<sockaddr*>(peer), bytes) == 7, "recvfrom");
  check(holds(to, "message") && peer->sin_port == name->sin_port, "what recvfrom brought");

  auto* waiting = far(std::array<pollfd, 2>{pollfd{server, POLLIN, 0}, pollfd{client, POLLOUT, 0}});
  sweep();
  check(::poll(waiting->data(), 2, 1000) == 1 && (*waiting)[1].revents == POLLOUT, "poll");
  auto* set = fresh<fd_set>();
  FD_SET(client, set);
  sweep();
  check(::select(client + 1, nullptr, set, nullptr, nullptr) == 1 && FD_ISSET(client, set), "select");
  const int events = ::epoll_create1(0);
  auto* event = far(epoll_event{.events = EPOLLOUT, .data{.u64 = 77}});
  sweep();
  check(::epoll_ctl(events, EPOLL_CTL_ADD, client, event) == 0, "epoll_ctl");
  auto* happened = fresh<epoll_event>();
  check(::epoll_wait(events, happened, 1000, -1) == 1 && happened->data.u64 == 77, "epoll_wait");
  for (const int each : {ends[0], ends[1], listener, client, server, datagrams, events}) ::close(each);
}

void streams() {
  constexpr std::size_t bytes = 300'001;
  char* const content = fresh();
  for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>('a' + i % 26);
  std::FILE* const file = std::tmpfile();
  check(file != nullptr, "tmpfile");
  sweep();
  check(std::fwrite(content, 3, bytes / 3, file) == bytes / 3, "fwrite");
  content[bytes / 3 * 3] = '\0';
  sweep();
  check(std::fputs(content, file) != EOF && std::fflush(file) == 0, "fputs");
  for (const bool is_checked : {false, true}) {
    std::rewind(file);
    char* const to = fresh();
    const std::size_t got =
        is_checked ? __fread_chk(to, far_bytes / 2, 1, far_bytes / 2, file) : std::fread(to, 1, far_bytes / 2, file);
    check(got == bytes / 3 * 6 && std::feof(file), "fread");
    check(std::memcmp(to, content, bytes / 3 * 3) == 0 && std::memcmp(to + got / 2, content, got / 2) == 0, "content");
  }
  for (const bool is_descriptor : {false, true}) {
    constexpr int printed = bytes / 3 * 3 + 2;
    std::rewind(file);
    check(::ftruncate(::fileno(file), 0) == 0, "ftruncate");
    sweep();
    check(
        (is_descriptor ? ::dprintf(::fileno(file), "<%s>", content) : std::fprintf(file, "<%s>", content)) == printed &&
            std::fflush(file) == 0,
        "printf of a long text");
    std::rewind(file);
    char* const to = fresh();
    check(std::fread(to, 1, far_bytes / 2, file) == printed && to[0] == '<' && to[printed - 1] == '>' &&
              std::memcmp(to + 1, content, printed - 2) == 0,
          "what was printed");
  }
  check(std::freopen(far_text("/dev/zero"), "r", file) == file && std::fread(fresh(), 1, 5000, file) == 5000,
        "freopen");
  check(std::setvbuf(file, fresh(), _IOFBF, 1 << 16) == 0 && std::fgetc(file) == 0, "setvbuf");
  std::fclose(file);
  std::FILE* const command = ::popen(far_text("echo from a command"), "r");
  char* const line = fresh();
  check(command != nullptr && std::fgets(line, 100, command) != nullptr && holds(line, "from a command\n"), "popen");
  check(::pclose(command) == 0, "pclose");
}

void processes() {
  const auto arguments_of = [](std::string_view text) {
    return far(std::array<char*, 4>{far_text("sh"), far_text("-c"), far_text(text), nullptr})->data();
  };
  char** const variables = far(std::array<char*, 2>{far_text("SAID=7"), nullptr})->data();
  char* const shell = far_text("/bin/sh");
  char** arguments = arguments_of("exit $SAID");
  sweep();
  auto* process = fresh<pid_t>();
  auto* status = fresh<int>();
  check(::posix_spawn(process, shell, nullptr, nullptr, arguments, variables) == 0, "posix_spawn");
  check(::waitpid(*process, status, 0) == *process && WEXITSTATUS(*status) == 7, "waitpid");
  sweep();
  const pid_t child = ::vfork();
  if (child == 0) {
    ::execve(shell, arguments, variables);
    ::_exit(1);
  }
  status = fresh<int>();
  check(::waitpid(child, status, 0) == child && WEXITSTATUS(*status) == 7, "execve");
  check(WEXITSTATUS(std::system(far_text("exit 5"))) == 5, "system");
  char* const random = fresh();
  const std::array<char, 16> zeros{};
  check(::getrandom(random, 10'000, 0) == 10'000, "getrandom");
  check(std::memcmp(random + 9'000, zeros.data(), zeros.size()) != 0, "what getrandom gave");
}

void questions() {
  check(::uname(fresh<utsname>()) == 0, "uname");
  check(::sysinfo(fresh<struct sysinfo>()) == 0, "sysinfo");
  auto* const processors = fresh<cpu_set_t>();
  check(::sched_getaffinity(0, sizeof *processors, processors) == 0, "sched_getaffinity");
  auto* const signals = fresh<sigset_t>();
  check(::sigprocmask(SIG_BLOCK, nullptr, signals) == 0, "sigprocmask, what is blocked");
  auto* const moment = far(timespec{.tv_sec = 0, .tv_nsec = 1});
  sweep();
  check(::sched_setaffinity(0, sizeof *processors, processors) == 0, "sched_setaffinity");
  check(::sigprocmask(SIG_SETMASK, signals, nullptr) == 0, "sigprocmask, what is to be blocked");
  check(::nanosleep(moment, nullptr) == 0, "nanosleep");
}

// True if the thread is inside the system call `call`, and no longer runs.
bool waits_in(pid_t thread, long call) {
  const std::string name = "/proc/self/task/" + std::to_string(thread) + "/syscall";
  std::FILE* const file = std::fopen(name.c_str(), "r");
  check(file != nullptr, name.c_str());
  long found = -1;  // the file has "running", or the number of a system call, or -1
  const bool has_number = std::fscanf(file, "%ld", &found) == 1;
  std::fclose(file);
  return has_number && found == call;
}

void cancellation() {
  struct Reader {
    std::array<int, 2> ends{};
    std::atomic<pid_t> number{0};
  } reader;
  check(::pipe(reader.ends.data()) == 0, "pipe");
  pthread_t thread{};
  const auto wait = [](void* argument) -> void* {
    auto& self = *static_cast<Reader*>(argument);
    self.number = ::gettid();
    (void)!::read(self.ends[0], fresh(), far_bytes / 2);
    return nullptr;
  };
  check(::pthread_create(&thread, nullptr, wait, &reader) == 0, "pthread_create");
  for (int tries = 0; reader.number == 0 || !waits_in(reader.number, SYS_read); ++tries) {
    check(tries < 30'000, "a read that waits");
    ::usleep(1'000);
  }
  check(::pthread_cancel(thread) == 0, "pthread_cancel");
  void* result = nullptr;
  check(::pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED, "a cancelled read");
}

/// Transfers that are larger than the wrappers' local memory: as much as the kernel would transfer at once.
void large_transfers() {
  constexpr ssize_t all = (70 << 20) + 12'345;
  constexpr ssize_t half = all / 2;
  auto* const from = static_cast<unsigned char*>(std::malloc(all));
  for (ssize_t i = 0; i < all; ++i) from[i] = static_cast<unsigned char>(i % 251);
  const auto check_received = [from](const unsigned char* to, const char* what) {
    check(std::memcmp(from, to, all) == 0, what);
    std::free(const_cast<unsigned char*>(to));
  };
  const auto room = [] { return static_cast<unsigned char*>(std::malloc(all)); };

  char* const path = far_text("calls_of_far_memory.large");
  const int file = ::open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
  check(file >= 0 && ::unlink(path) == 0, "open");
  check(::write(file, from, all) == all, "a large write");
  unsigned char* to = room();
  check(::pread(file, to, all, 0) == all, "a large pread");
  check_received(to, "the bytes of a large pread");
  const std::array<iovec, 2> parts{iovec{from, half}, iovec{from + half, all - half}};
  check(::pwritev(file, parts.data(), 2, 5) == all, "a large pwritev");
  to = room();
  ::lseek(file, 5, SEEK_SET);
  check(::read(file, to, all) == all, "a large read");
  check_received(to, "the bytes of a large read");
  ::close(file);

  std::array<int, 2> ends{};
  check(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "socketpair");
  struct Sending {
    int socket;
    const unsigned char* from;
  } sending{ends[0], from};
  pthread_t sender;
  const auto send_all = [](void* argument) -> void* {
    const auto& [socket, data] = *static_cast<const Sending*>(argument);
    check(::send(socket, data, all, 0) == all, "a large send");
    return nullptr;
  };
  check(::pthread_create(&sender, nullptr, send_all, &sending) == 0, "pthread_create");
  to = room();
  check(::recv(ends[1], to, all, MSG_WAITALL) == all, "a large recv");
  check(::pthread_join(sender, nullptr) == 0, "pthread_join");
  check_received(to, "the bytes of a large recv");
  std::free(from);
}

}  // namespace

int main(int count, char** words) {
  if (count > 1 && words[1] == std::string_view("pipes")) {
    filled_pipes();
    std::puts("ok");
    return 0;
  }
  large_transfers();
  mappings();
  files();
  protected_room();
  protected_data();
  pipes();
  folders();
  sockets();
  streams();
  processes();
  questions();
  cancellation();
  std::puts(far_text("ok"));
  return 0;
}
