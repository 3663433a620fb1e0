#include "far/file_store.hpp"

#include "base/error.hpp"
#include "far/blocks.hpp"
#include "job/memory.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace tonari::far {

using pager::block_bytes;
using pager::page_bytes;
using pager::PageSet;

namespace {

constexpr int flags = O_RDWR | O_CLOEXEC;

// For file systems without O_TMPFILE, such as NFS.
FileDescriptor create_and_unlink(const std::string& directory) {
  std::string name = directory + "/tonari-far-XXXXXX";
  FileDescriptor file{::mkostemp(name.data(), O_CLOEXEC)};
  if (file) ::unlink(name.c_str());
  return file;
}

// File systems of the kernel's own objects (/proc, /sys, control groups) have no blocks.
bool holds_no_files(const std::string& directory) {
  struct statvfs about {};
  return ::statvfs(directory.c_str(), &about) == 0 && about.f_blocks == 0;
}

FileDescriptor create_file(const std::string& directory) {
  FileDescriptor file{::open(directory.c_str(), flags | O_TMPFILE, S_IRUSR | S_IWUSR)};
  if (!file && (errno == EOPNOTSUPP || errno == EISDIR)) file = create_and_unlink(directory);
  if (!file) {
    const int error = errno;
    if (holds_no_files(directory)) {
      throw SetupError(
          fmt::format("--store file:{}: creating a file there: the file system of {} holds no files of users; name a "
                      "directory on a disk",
                      directory, directory));
    }
    throw_system_error(error, fmt::format("--store file:{}: creating a file there", directory),
                       "name a directory on a disk, where you may create files");
  }
  // Fails where the file system always uses the page cache.
  (void)::fcntl(file.number(), F_SETFL, ::fcntl(file.number(), F_GETFL) | O_DIRECT);
  return file;
}

// Calls transfer(offset, done) until all bytes are transferred. Returns 0; an error number; or -1 at the end of the
// file.
template <class Transfer>
int transfer_all(std::uint64_t place, std::size_t bytes, Transfer transfer) noexcept {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t more = transfer(static_cast<off_t>(place + done), done);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return errno;
    if (more == 0) return -1;
    done += static_cast<std::size_t>(more);
  }
  return 0;
}

constexpr bool is_of_full_disk(int error) noexcept { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

}  // namespace

std::uint64_t room_for_file(const std::string& directory) {
  const FileDescriptor file = create_file(directory);
  struct statvfs about {};
  if (::fstatvfs(file.number(), &about) != 0) throw_system_error("statvfs of " + directory);
  return about.f_bavail * about.f_frsize;
}

FileStore::FileStore(const std::string& directory, std::uint64_t bytes)
    : FileStore(create_file(directory), directory, bytes) {}

FileStore::FileStore(FileDescriptor file, std::string directory, std::uint64_t bytes)
    : directory_(std::move(directory)),
      file_(std::move(file)),
      stored_memory_(Mapping::of_sparse_zeros((bytes + block_bytes - 1) / block_bytes * sizeof(PageSet),
                                              "the table of the far memory's file")),
      stored_(reinterpret_cast<PageSet*>(stored_memory_.bytes().data())) {}

Status FileStore::fetch(std::uint64_t place, std::span<std::byte> into) noexcept {
  return status_of(transfer_all(place, into.size(), [&](off_t at, std::size_t done) {
    return ::pread(file_.number(), into.data() + done, into.size() - done, at);
  }));
}

Status FileStore::store(std::uint64_t place, std::span<const std::byte> from) noexcept {
  PageSet& stored = stored_at(place);
  const bool is_first = stored.is_empty();
  Status status = is_first ? reserve(place) : Status::ok;
  if (status != Status::ok) return status;
  status = status_of(transfer_all(place, from.size(), [&](off_t at, std::size_t done) {
    return ::pwrite(file_.number(), from.data() + done, from.size() - done, at);
  }));
  if (status == Status::ok) {
    set_stored(stored, stored | PageSet::of(place % block_bytes / page_bytes, from.size() / page_bytes));
  } else if (is_first) {
    release(place);
  }
  return status;
}

Status FileStore::discard(std::uint64_t place, std::uint64_t bytes) noexcept {
  return for_each_block(place, bytes, [this](std::uint64_t at, std::uint64_t part) {
    PageSet& stored = stored_at(at);
    const bool had_some = !stored.is_empty();
    set_stored(stored, stored - PageSet::of(at % block_bytes / page_bytes, part / page_bytes));
    if (had_some && stored.is_empty()) release(at);
    return Status::ok;
  });
}

void FileStore::set_stored(PageSet& stored, const PageSet& now) noexcept {
  const std::size_t before = stored.count();
  const std::size_t after = now.count();
  stored = now;
  if (after > before) pages_.add(after - before);
  if (after < before) pages_.subtract(before - after);
}

// File systems that cannot reserve space (NFS before 4.2) refuse only the write.
Status FileStore::reserve(std::uint64_t place) noexcept {
  const std::uint64_t block = place / block_bytes * block_bytes;
  int result = 0;
  do {
    result = ::fallocate(file_.number(), 0, static_cast<off_t>(block), block_bytes) == 0 ? 0 : errno;
  } while (result == EINTR);
  if (result != 0 && result != EOPNOTSUPP) return status_of(result);
  if (result != 0) reserves_.store(false, std::memory_order_relaxed);
  blocks_.add(1);
  return Status::ok;
}

// Where the file system cannot take the space back, it stays with the file.
void FileStore::release(std::uint64_t place) noexcept {
  const std::uint64_t block = place / block_bytes * block_bytes;
  constexpr int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  (void)::fallocate(file_.number(), mode, static_cast<off_t>(block), block_bytes);
  blocks_.subtract(1);
}

Status FileStore::status_of(int error) noexcept {
  if (error == 0) return Status::ok;
  error_.store(error, std::memory_order_relaxed);
  if (error == truncated) return Status::bounds;
  return is_of_full_disk(error) ? Status::no_memory : Status::invalid;
}

std::string FileStore::sparse_text() const {
  if (used_bytes() / 2 <= data_bytes()) return {};
  return fmt::format(", which takes {} because they are sparse and it grows in pieces of 2 MiB",
                     job::memory_text(used_bytes()));
}

std::string FileStore::why_it_failed() const {
  const int error = error_.load(std::memory_order_relaxed);
  if (error == truncated) {
    return fmt::format("the file in {} has become shorter: another process has truncated it", directory_);
  }
  if (is_of_full_disk(error)) {
    return fmt::format(
        "{} has no room left for the program's data, of which {} are in the file{} ({}): free space "
        "there, name another directory (--store file:DIRECTORY), or raise --local",
        directory_, job::memory_text(data_bytes()), sparse_text(), std::generic_category().message(error));
  }
  return fmt::format("the disk of {} does not work: {}; see the kernel's log", directory_,
                     std::generic_category().message(error));
}

}  // namespace tonari::far
