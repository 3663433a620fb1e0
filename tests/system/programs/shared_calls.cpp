// Rank 1 gives the kernel shared memory that only rank 0, its home, has: each page once. It checks the result of each
// call and the bytes that it moved. One line says "rank R: N of M calls" and names the calls that were wrong. With
// `raw` as the first argument it prints the error of a system call that is made without libc.
#include <tonari/tonari.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tonari;

constexpr std::size_t page = 4096;
constexpr std::size_t piece = 5 * page;  // no call's memory is in the same page as another's
constexpr std::size_t pieces = 32;
constexpr std::size_t some = 3 * page - 100;

char pattern(std::size_t at) { return static_cast<char>('a' + at * 31 % 26); }

class Calls {
 public:
  explicit Calls(Job& job) : job_(job), array_(job, pieces * piece, at_rank_0()), file_(::memfd_create("calls", 0)) {
    if (job.rank() == 0) {
      for (std::size_t at = 0; at < array_.size(); ++at) array_[at] = pattern(at);
      for (const std::size_t name : {6, 7, 16}) array_[name * piece + 50 + 200] = '\0';
    }
    meet();
  }
  ~Calls() { ::close(file_); }
  Calls(Calls&&) = delete;

  void meet() {
    if (share::barrier(job_) != Status::ok) throw std::runtime_error("barrier: a rank is gone");
  }

  // The next piece, of which nothing is here.
  char* absent() { return &array_[piece * next_++ + 50]; }
  // The next, which is here, and protected: it was only read.
  char* read_only() {
    char* const start = absent();
    for (std::size_t at = 0; at < some; at += page) (void)*const_cast<volatile char*>(start + at);
    (void)*const_cast<volatile char*>(start + some - 1);
    return start;
  }

  void check(const char* name, bool is_right) {
    ++tried_;
    if (is_right) {
      ++right_;
    } else {
      wrong_ += std::string(" ") + name + " (" + std::strerror(errno) + ")";
    }
    errno = 0;
  }
  void say() const { std::printf("rank 1: %d of %d calls%s\n", right_, tried_, wrong_.c_str()); }

  void move_data();
  void name_things();
  void fill_structures();
  void use_streams();
  void fork_a_child();
  void send_messages();
  // Checks on rank 0, after a barrier, the data that the kernel wrote for rank 1.
  void look_at_home() const;

 private:
  static ArrayOptions at_rank_0() {
    ArrayOptions options;
    options.placement = Placement::by_function;
    options.home = [](std::uint64_t) { return JobRank{0}; };
    return options;
  }
  bool is_in_file(const char* start) const {
    std::vector<char> here(some);
    return ::pread(file_, here.data(), some, 0) == static_cast<ssize_t>(some) &&
           std::memcmp(here.data(), start, some) == 0;
  }
  [[nodiscard]] const char* at(std::size_t number) const { return &array_[piece * number + 50]; }

  Job& job_;
  shared_array<char> array_;
  int file_;
  std::size_t next_ = 0;
  int tried_ = 0;
  int right_ = 0;
  std::string wrong_{};
};

constexpr auto bytes = static_cast<ssize_t>(some);

void Calls::move_data() {  // pieces 0 to 5
  const char* const out = absent();
  check("pwrite", ::pwrite(file_, out, some, 0) == bytes && is_in_file(out));
  char* const in = absent();
  check("pread", ::pread(file_, in, some, 0) == bytes && is_in_file(in));
  char* const onto = read_only();
  check("pread of protected pages", ::pread(file_, onto, some, 0) == bytes && is_in_file(onto));
  const iovec parts[] = {{absent(), some / 2}, {absent(), some - some / 2}};
  check("pwritev", ::pwritev(file_, parts, 2, 0) == bytes);
  std::array<int, 2> ends{};
  check("socketpair", ::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends.data()) == 0);
  char* const received = absent();
  check("send", ::send(ends[0], out, some, 0) == bytes);
  check("recv", ::recv(ends[1], received, some, MSG_DONTWAIT) == bytes && std::memcmp(received, out, some) == 0);
  for (const int end : ends) ::close(end);
}

void Calls::name_things() {  // 6 and 7, which rank 0 has made texts
  struct stat status {};
  check("stat", ::stat(absent(), &status) == -1 && errno == ENOENT);
  check("open", ::open(absent(), O_RDONLY) == -1 && errno == ENOENT);
}

void Calls::fill_structures() {  // 8 to 12
  auto* const status = reinterpret_cast<struct stat*>(read_only() + 14);
  check("fstat", ::fstat(file_, status) == 0 && status->st_size == bytes);
  auto* const ends = reinterpret_cast<int*>(absent() + 14);
  check("pipe", ::pipe(ends) == 0 && ::write(ends[1], "x", 1) == 1);
  auto* const set = reinterpret_cast<pollfd*>(read_only() + 14);
  *set = {ends[0], POLLIN, 0};
  check("poll", ::poll(set, 1, -1) == 1 && set->revents == POLLIN);
  auto* const name = reinterpret_cast<char*>(read_only());
  check("getcwd", ::getcwd(name, page) == name && name[0] == '/');
  auto* const now = reinterpret_cast<timespec*>(absent() + 14);
  check("clock_gettime", ::clock_gettime(CLOCK_REALTIME, now) == 0 && now->tv_sec > 1'000'000'000);
  for (const int end : {ends[0], ends[1]}) ::close(end);
}

void Calls::use_streams() {  // 13 to 15
  std::FILE* const stream = std::tmpfile();
  if (stream == nullptr) throw std::runtime_error("tmpfile");
  const char* const out = absent();
  check("fwrite", std::fwrite(out, 1, some, stream) == some);
  std::rewind(stream);
  char* const in = absent();
  check("fread", std::fread(in, 1, some, stream) == some && std::memcmp(in, out, some) == 0);
  check("fprintf", std::fprintf(stream, "%.*s", static_cast<int>(some), absent()) == static_cast<int>(some) &&
                       std::fflush(stream) == 0);
  std::fclose(stream);
}

// It has none of the memory, and ends by itself all the same.
void Calls::fork_a_child() {  // 16
  const char* const path = absent();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::access(path, R_OK) == -1 && errno == EFAULT ? 7 : 1);
  int status = 0;
  check("access in a child", ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

void Calls::send_messages() {  // 17 to 19
  constexpr std::size_t much = 4 * page;
  Communicator ranks(job_);
  next_ = 17;
  std::vector<char> here(much);
  char* const start = absent();
  char* const other = absent();
  if (job_.rank() == 1) {
    check("send of a message", ranks.send(std::span(start, much), Rank{0}) == Status::ok);
    check("receive of a message",
          ranks.receive(std::span(other, much), Rank{0}).status == Status::ok && std::memcmp(start, other, much) == 0);
  } else if (job_.rank() == 0) {
    const Status status = ranks.receive(std::span(here), Rank{1}).status;
    if (status != Status::ok) throw std::runtime_error("receive: " + std::string(to_string(status)));
    if (std::memcmp(here.data(), start, much) != 0) throw std::runtime_error("what rank 1 sent is not what it has");
    if (ranks.send(std::span<const char>(here), Rank{1}) != Status::ok) throw std::runtime_error("send");
  }
  char* const own = &array_[piece * (job_.rank() == 0 ? 17 : 19) + 50];
  const Status status = ranks.broadcast(std::span(own, much), Rank{0});
  if (job_.rank() == 1) check("broadcast", status == Status::ok && std::memcmp(own, start, much) == 0);
}

void Calls::look_at_home() const {
  const bool is_there = std::memcmp(at(0), at(1), some) == 0 && std::memcmp(at(0), at(2), some) == 0 &&
                        std::memcmp(at(0), at(5), some) == 0 && std::memcmp(at(13), at(14), some) == 0;
  std::printf("rank 0: %s\n", is_there ? "all is there" : "something is missing");
}

void make_calls(Job& job) {
  Calls calls(job);
  if (job.rank() == 1) {
    calls.move_data();
    calls.name_things();
    calls.fill_structures();
    calls.use_streams();
    calls.fork_a_child();
  }
  calls.send_messages();
  if (job.rank() == 1) calls.say();
  calls.meet();
  if (job.rank() == 0) calls.look_at_home();
}

void make_a_raw_call(Job& job) {
  Calls calls(job);
  const int file = ::memfd_create("raw", 0);
  if (job.rank() == 1) {
    const long answer = ::syscall(SYS_pwrite64, file, calls.absent(), some, 0L);
    std::printf("rank 1: %s\n", answer == bytes ? "it is written" : std::strerror(errno));
  }
  ::close(file);
  calls.meet();
}

}  // namespace

int main(int count, char** arguments) {
  try {
    Job job;
    count > 1 && std::string_view(arguments[1]) == "raw" ? make_a_raw_call(job) : make_calls(job);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
