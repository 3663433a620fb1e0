#include "far/program.hpp"

#include "base/error.hpp"
#include "job/handshake.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

namespace tonari::far {

namespace {

FileDescriptor make_channel_file() {
  FileDescriptor file{::memfd_create("tonari-far", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file || ::ftruncate(file.number(), sizeof(Channel)) != 0 ||
      ::fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw_system_error("the memory that a program and its keeper share");
  }
  return file;
}

// The kernel may refuse a look into a process of the same user. That nothing is there yet, it says to whom it lets.
void check_memory_is_reached(pid_t process, std::uint64_t address) {
  std::uint64_t word = 0;
  const iovec here{&word, sizeof word};
  const iovec there{reinterpret_cast<void*>(address), sizeof word};
  if (::process_vm_readv(process, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT) return;
  throw_system_error("reading the program's memory (process_vm_readv)",
                     "the system must let a process look into its user's others: see kernel.yama.ptrace_scope, and a "
                     "container's filter of system calls");
}

}  // namespace

Program::Program(FileDescriptor socket, pid_t process, const Terms& terms)
    : socket_(std::move(socket)), process_(process) {
  const FileDescriptor file = make_channel_file();
  memory_ = Mapping(file.number(), sizeof(Channel), "the memory that a program and its keeper share");
  channel_ = std::construct_at(reinterpret_cast<Channel*>(memory_.bytes().data()));
  channel_->buffers = terms.buffers;
  channel_->arena_bytes = terms.arena_bytes;
  channel_->min_bytes = terms.min_bytes;
  channel_->keeper = ::getpid();
  constexpr std::byte nothing{};
  job::send_message(socket_, &nothing, sizeof nothing, file.number());  // a program that has ended shows in hear()
}

bool Program::hear() {
  FileDescriptor faults;
  Hello hello;
  const ssize_t bytes = job::receive_message(socket_, &hello, sizeof hello, false, &faults);
  if (bytes == 0) {
    if (space_) space_->end();
    return false;
  }
  const bool nothing_yet = bytes < 0 && errno == EAGAIN;
  if (space_ || nothing_yet) return true;  // after its hello it says nothing
  if (bytes != sizeof hello || hello.version != channel_version) {
    throw SetupError("the preload library is of another version of tonari: install both from one build");
  }
  if (hello.error != 0) {
    hello.what.back() = '\0';
    throw_system_error(hello.error, std::string("in the program: ") + hello.what.data());
  }
  if (!faults) throw SetupError("the program sent no userfaultfd: raise the limit of open files, see ulimit -n");
  check_memory_is_reached(process_, hello.buffers);
  hello_ = hello;
  const auto reach = hello.reaches_everything != 0 ? pager::Reach::everything : pager::Reach::user_mode;
  space_.emplace(pager::Userfaultfd(std::move(faults), reach), *channel_, hello_, process_);
  return true;
}

void Program::go() noexcept {
  const Go go{.taken = 1};
  job::send_message(socket_, &go, sizeof go);
}

}  // namespace tonari::far
