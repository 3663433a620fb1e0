#include "far/program.hpp"

#include "base/error.hpp"
#include "base/futex.hpp"
#include "job/handshake.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

namespace tonari::far {

namespace {

FileDescriptor make_shared_file(std::uint64_t bytes) {
  FileDescriptor file{::memfd_create("tonari-far", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file || ::ftruncate(file.number(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw_system_error("creating the memory that a program and its keeper share");
  }
  return file;
}

// Returns the remedy for an error at the start of a program.
const char* remedy_for(int error) noexcept {
  switch (error) {
    case ENOMEM: return "it needs terabytes of address space, without memory for them: raise ulimit -v";
    case EMFILE:
    case ENFILE: return "raise the limit of open files with ulimit -n";
    default: return "";
  }
}

}  // namespace

std::uint64_t random_identity() {
  std::uint64_t number = 0;
  while (number == 0) {
    if (::getrandom(&number, sizeof number, 0) != sizeof number) throw_system_error("getrandom");
  }
  return number;
}

Program::Program(FileDescriptor socket, const Terms& terms, const Lent& lent)
    : socket_(std::move(socket)), lent_(lent.memory) {
  const FileDescriptor file = make_shared_file(channel_bytes);
  memory_ = Mapping(file.number(), channel_bytes, "mapping the memory that a program and its keeper share");
  channel_ = std::construct_at(reinterpret_cast<Channel*>(memory_.bytes().data()));
  channel_->identity = random_identity();
  channel_->buffers = terms.buffers;
  channel_->agents = terms.agents;
  channel_->arena_bytes = terms.arena_bytes;
  channel_->min_bytes = terms.min_bytes;
  channel_->lent_offset = lent.offset;
  channel_->lent_bytes = lent.memory.size();
  channel_->table_bytes = terms.table_bytes;
  constexpr std::byte nothing{};
  // on failure: hear() finds that the program has ended
  job::send_message(socket_, &nothing, sizeof nothing, file.number());
  if (!lent.memory.empty()) job::send_message(socket_, &nothing, sizeof nothing, lent.file);
  if (terms.table_bytes == 0) return;
  const FileDescriptor tables = make_shared_file(terms.table_bytes);
  tables_ = Mapping(tables.number(), terms.table_bytes, "mapping the tables that a program and its keeper share");
  job::send_message(socket_, &nothing, sizeof nothing, tables.number());
}

bool Program::hear() {
  FileDescriptor faults;
  Hello hello;
  ssize_t bytes = job::receive_message(socket_, &hello, sizeof hello, false, &faults);
  // If the program has closed the socket before it read all messages, the kernel reports that once, before the Hello.
  if (bytes == 0 && !space_) bytes = job::receive_message(socket_, &hello, sizeof hello, false, &faults);
  if (bytes == 0) {
    if (space_) space_->end();
    return false;
  }
  const bool nothing_yet = bytes < 0 && errno == EAGAIN;
  if (space_ || nothing_yet) return true;  // after its Hello the program sends nothing
  if (bytes != sizeof hello || hello.version != channel_version) {
    throw SetupError(
        "the preload library belongs to another version of tonari than the keeper: install both from one build");
  }
  if (hello.error != 0 && hello.stays_local != 0) {
    hello_ = hello;
    return false;
  }
  if (hello.error != 0) {
    hello.what.back() = '\0';
    throw_system_error(hello.error, std::string("in the program: ") + hello.what.data(), remedy_for(hello.error));
  }
  if (!faults) throw SetupError("the program sent no userfaultfd: raise the limit of open files with ulimit -n");
  hello_ = hello;
  const auto reach = hello.reaches_everything != 0 ? pager::Reach::everything : pager::Reach::user_mode;
  const bool threads_serve = hello.threads_serve != 0 && channel_->table_bytes != 0;
  const auto touch = threads_serve ? pager::Userfaultfd::Touch::signals : pager::Userfaultfd::Touch::waits;
  const std::span<std::byte> tables = threads_serve ? tables_.bytes() : std::span<std::byte>{};
  space_.emplace(pager::Userfaultfd(std::move(faults), reach, touch), memory_.bytes(), lent_, tables);
  return true;
}

void Program::go() noexcept {
  const Go go{.taken = 1};
  job::send_message(socket_, &go, sizeof go);
}

void Program::end() noexcept {
  channel_->ended.store(1, std::memory_order_relaxed);  // relaxed: the doorbell publishes it
  ring_doorbell(channel_->agent_doorbell);
}

}  // namespace tonari::far
