#include "share/checkpoint/checkpoint_file.hpp"

#include "base/error.hpp"
#include "job/signals.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tonari::share {

namespace {

constexpr std::size_t identity_digits = 16;
constexpr std::string_view before_identity = ".tmp-";

std::string_view remedy_for(int error) noexcept {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "free space there, or choose another place";
    case EFBIG: return "raise the limit of the size of files: see ulimit -f";
    case EACCES:
    case EPERM:
    case EROFS: return "choose a place that this user may use";
    case ENOENT: return "make the directory first";
    case EMFILE:
    case ENFILE: return "raise the limit of open files: see ulimit -n";
    default: return {};
  }
}

[[noreturn]] void fail(std::string_view what, const std::string& path) {
  const int error = errno;
  throw_system_error(error, fmt::format("{} {}", what, path), remedy_for(error));
}

std::filesystem::path directory_of(const std::string& path) {
  const auto directory = std::filesystem::path(path).parent_path();
  return directory.empty() ? "." : directory;
}

bool is_temporary_of(std::string_view name, const std::string& path) {
  const std::string start = std::filesystem::path(path).filename().string() + std::string(before_identity);
  return name.size() == start.size() + identity_digits && name.starts_with(start) &&
         name.find_first_not_of("0123456789abcdef", start.size()) == std::string_view::npos;
}

}  // namespace

CheckpointFile::CheckpointFile(std::string path, FileDescriptor file) noexcept
    : path_(std::move(path)), file_(std::move(file)) {}

CheckpointFile CheckpointFile::make(const std::string& path) {
  FileDescriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (!file) fail("making", path);
  return {path, std::move(file)};
}

CheckpointFile CheckpointFile::join(const std::string& path) {
  FileDescriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!file) {
    throw_system_error(fmt::format("opening {}, which rank 0 has made", path),
                       "checkpoints need a file system that all hosts of the job share, at the same path");
  }
  return {path, std::move(file)};
}

CheckpointFile CheckpointFile::find(const std::string& path) {
  FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // otherwise opening a pipe may block
  if (!file && errno != ENOENT) fail("opening", path);
  CheckpointFile found{path, std::move(file)};
  if (found && !S_ISREG(found.status().st_mode)) {
    throw SetupError(path + " is no ordinary file; give the path of one that was saved");
  }
  return found;
}

struct stat CheckpointFile::status() const {
  struct stat known {};
  if (::fstat(file_.number(), &known) != 0) fail("fstat of", path_);
  return known;
}

std::uint64_t CheckpointFile::bytes() const { return static_cast<std::uint64_t>(status().st_size); }

void CheckpointFile::write(std::span<const std::byte> bytes, std::uint64_t place) const {
  const job::FileSizeSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(place));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("writing", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    place += static_cast<std::uint64_t>(done);
  }
}

void CheckpointFile::read(std::span<std::byte> bytes, std::uint64_t place) const {
  while (!bytes.empty()) {
    const ssize_t done = ::pread(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(place));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("reading", path_);
    if (done == 0) throw SetupError(fmt::format("reading {}: it ends at byte {}: it was cut short", path_, place));
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    place += static_cast<std::uint64_t>(done);
  }
}

void CheckpointFile::sync() const {
  if (::fsync(file_.number()) != 0) fail("fsync of", path_);
}

std::string Temporary::name_of(const std::string& path, std::uint64_t identity) {
  return fmt::format("{}{}{:0{}x}", path, before_identity, identity, identity_digits);
}

Temporary::Temporary(const std::string& path, std::uint64_t identity) : path_(path), name_(name_of(path, identity)) {
  // Otherwise the rename would replace a device or a link by a file.
  struct stat known {};
  if (::lstat(path.c_str(), &known) == 0 && !S_ISREG(known.st_mode)) {
    name_.clear();
    throw SetupError(path + " is there and is no ordinary file; choose another path");
  }
  std::error_code ignored;  // making the file reports any error of the directory
  for (const auto& each : std::filesystem::directory_iterator(directory_of(path), ignored)) {
    if (is_temporary_of(each.path().filename().string(), path)) std::filesystem::remove(each.path(), ignored);
  }
}

Temporary::~Temporary() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

void Temporary::replace() {
  if (::rename(name_.c_str(), path_.c_str()) != 0) fail("renaming " + name_ + " to", path_);
  name_.clear();
  const std::string directory = directory_of(path_).string();
  const FileDescriptor opened{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened && (::fsync(opened.number()) == 0 || errno == EINVAL))
    return;  // EINVAL: the file system does not support it
  fail("fsync of", directory);
}

}  // namespace tonari::share
