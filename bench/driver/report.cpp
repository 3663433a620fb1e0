#include "driver/report.hpp"

#include "base/error.hpp"
#include "base/file_descriptor.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>

namespace tonari::bench::driver {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view remedy_of_json = "give --json a path that can be written";

[[noreturn]] void refuse(const std::string& path, int error, std::string_view remedy) {
  const auto folder = fs::absolute(path).parent_path();
  std::error_code ignored;
  if (error == ENOENT && fs::is_directory(folder, ignored)) {  // in /proc, for example
    throw SetupError(fmt::format("cannot write {}: no file can be made in {}; {}", path, folder.string(), remedy));
  }
  if (error == ENOENT) {
    throw SetupError(
        fmt::format("cannot write {}: there is no folder {}; make it, or {}", path, folder.string(), remedy));
  }
  throw_system_error(error, fmt::format("cannot write {}", path), remedy);
}

/// A temporary file beside the final one. keep() renames it; otherwise the destructor removes it.
class Draft {
 public:
  Draft(const std::string& path, std::string_view remedy) : path_(path), remedy_(remedy) {
    std::error_code ignored;
    const auto status = fs::status(path_, ignored);
    in_place_ = fs::exists(status) && !fs::is_regular_file(status);
    if (fs::is_symlink(fs::symlink_status(path_, ignored)) && !in_place_) path_ = fs::weakly_canonical(path_, ignored);
    draft_ = in_place_ ? path_ : path_ + fmt::format(".{}.tmp", ::getpid());
    file_ = FileDescriptor(
        ::open(draft_.c_str(), in_place_ ? O_WRONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file_) refuse(path, errno, remedy);
  }
  Draft(Draft&&) = delete;
  ~Draft() {
    if (!in_place_ && !kept_) ::unlink(draft_.c_str());
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::write(file_.number(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw_system_error(fmt::format("cannot write {}", path_), "free some space, or " + remedy_);
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void keep() {
    if (in_place_) return;
    if (::fsync(file_.number()) != 0 || ::rename(draft_.c_str(), path_.c_str()) != 0) {
      throw_system_error(fmt::format("cannot write {}", path_), "free some space, or " + remedy_);
    }
    kept_ = true;
  }

 private:
  std::string path_;
  std::string remedy_;
  std::string draft_;
  bool in_place_ = false;
  bool kept_ = false;
  FileDescriptor file_;
};

}  // namespace

void check_writable(const std::string& path) { const Draft draft(path, remedy_of_json); }

void write_whole(const std::string& path, std::string_view bytes, std::string_view remedy) {
  Draft draft(path, remedy);
  draft.write(bytes);
  draft.keep();
}

void write_report(const std::string& path, const nlohmann::ordered_json& report) {
  write_whole(path, report.dump(1) + "\n", remedy_of_json);
}

}  // namespace tonari::bench::driver
