#include "cli/launch_output.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace tonari::cli {

namespace {

constexpr std::size_t read_bytes = 64 * 1024;

bool is_regular(int number) noexcept {
  struct stat status;
  return ::fstat(number, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

// A regular file takes any number of bytes. For pipes, poll() guarantees only that PIPE_BUF bytes can be written
// without blocking. O_NONBLOCK is no alternative: it would also affect the shell and other programs that share the open
// file.
Outlet::Outlet(int number) : number_(number), piece_bytes_max_(is_regular(number) ? SSIZE_MAX : PIPE_BUF) {}

void Outlet::write(int writer, std::string_view text) {
  if (text.empty() || is_broken()) return;
  if (open_line_ != nobody && open_line_ != writer) waiting_ += '\n';
  waiting_ += text;
  open_line_ = text.back() == '\n' ? nobody : writer;
}

void Outlet::flush() noexcept {
  while (!is_empty()) {
    pollfd room{.fd = number_, .events = POLLOUT, .revents = 0};
    if (::poll(&room, 1, 0) <= 0) break;
    const auto bytes = std::min(waiting_.size() - written_, piece_bytes_max_);
    const auto done = ::write(number_, waiting_.data() + written_, bytes);
    if (done > 0) {
      written_ += static_cast<std::size_t>(done);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      write_error_ = errno;
      written_ = waiting_.size();
    }
  }
  // Written text is erased once it is at least half of all, so that each byte is moved at most once.
  if (written_ < waiting_.size() / 2) return;
  waiting_.erase(0, written_);
  written_ = 0;
}

bool Outlet::is_same_place(const Outlet& other) const noexcept {
  struct stat mine;
  struct stat others;
  const bool same_file = ::fstat(number_, &mine) == 0 && ::fstat(other.number_, &others) == 0 &&
                         mine.st_dev == others.st_dev && mine.st_ino == others.st_ino;
  // Both may lead to /dev/null, but one of them because it was closed: see open_missing_descriptors().
  const auto access = [](int number) { return ::fcntl(number, F_GETFL) & O_ACCMODE; };
  return same_file && access(number_) == access(other.number_);
}

Stream::Stream(FileDescriptor pipe, Outlet& outlet, int writer, std::string prefix)
    : pipe_(std::move(pipe)), outlet_(&outlet), writer_(writer), prefix_(std::move(prefix)) {
  ::fcntl(pipe_.number(), F_SETFL, O_NONBLOCK);
}

void Stream::read_on() {
  std::array<char, read_bytes> buffer;
  while (is_open() && !outlet_->is_full()) {
    const auto bytes = ::read(pipe_.number(), buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes <= 0) return close();
    line_.append(buffer.data(), static_cast<std::size_t>(bytes));
    pass_lines();
  }
}

void Stream::pass_lines() {
  const auto end = line_.rfind('\n') + 1;  // 0 when there is none
  if (prefix_.empty()) {
    pass(std::string_view{line_}.substr(0, end));
  } else {
    for (std::size_t first = 0; first < end;) {
      const auto next = line_.find('\n', first) + 1;
      pass(std::string_view{line_}.substr(first, next - first));
      first = next;
    }
  }
  line_.erase(0, end);
  if (line_.size() > line_bytes_max) show_unfinished();
}

void Stream::show_unfinished() {
  if (line_.empty()) return;
  pass(line_);
  line_.clear();
}

void Stream::pass(std::string_view piece) {
  if (!outlet_->has_open_line(writer_)) outlet_->write(writer_, prefix_);
  outlet_->write(writer_, piece);
}

void Stream::close() {
  show_unfinished();
  pipe_ = {};
}

}  // namespace tonari::cli
