#include "driver/tight_memory.hpp"

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "cli/standard_streams.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace tonari::bench::driver {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view zram_control = "/sys/class/zram-control";

std::string name_of_this_process() { return fmt::format("tonari-bench-{}", ::getpid()); }

void write_setting(const fs::path& file, std::string_view value) {
  const FileDescriptor descriptor(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!descriptor || ::write(descriptor.number(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
    throw_system_error(fmt::format("cannot write '{}' to {}", value, file.string()));
  }
}

std::string read_setting(const fs::path& file) {
  std::string text;
  if (!(std::ifstream(file) >> text)) throw SetupError(fmt::format("cannot read {}", file.string()));
  return text;
}

/// The folder of memory cgroups.
struct CgroupRoot {
  fs::path path;
  bool unified = false;  ///< Version 2.
};

std::optional<CgroupRoot> find_cgroup_root() {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device;
    std::string path;
    std::string type;
    std::string options;
    words >> device >> path >> type >> options;
    if (type == "cgroup" && ("," + options + ",").find(",memory,") != std::string::npos) return CgroupRoot{path, false};
    if (type != "cgroup2") continue;
    std::ifstream controllers(path + "/cgroup.controllers");
    for (std::string controller; controllers >> controller;) {
      if (controller == "memory") return CgroupRoot{path, true};
    }
  }
  return std::nullopt;
}

fs::path cgroup_path() {
  const auto root = find_cgroup_root();
  if (!root) throw SetupError("no cgroups for memory here: mount cgroup2 with its controller `memory`");
  return root->path / name_of_this_process();
}

class Cgroup final : public MadeTight::Part {
 public:
  explicit Cgroup(std::uint64_t limit_bytes) : path_(cgroup_path()) {
    const bool unified = find_cgroup_root()->unified;
    if (unified) write_setting(path_.parent_path() / "cgroup.subtree_control", "+memory");
    if (::mkdir(path_.c_str(), 0755) != 0) throw_system_error(fmt::format("cannot make the cgroup {}", path_.string()));
    write_setting(path_ / (unified ? "memory.max" : "memory.limit_in_bytes"), std::to_string(limit_bytes));
  }
  ~Cgroup() override {
    constexpr int tries = 100;  // the last process may still be ending
    for (int i = 0; i < tries && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i) ::usleep(20'000);
  }

 private:
  fs::path path_;
};

/// Writes the header that mkswap writes to `file`, and enables swapping to it, with the highest priority.
class SwapArea final : public MadeTight::Part {
 public:
  SwapArea(const fs::path& file, std::uint64_t bytes) : file_(file) {
    write_header(bytes);
    if (::swapon(file_.c_str(), SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK) != 0) {
      throw_system_error(fmt::format("cannot swap to {}", file_.string()),
                         "it takes root, and a file on a disk; --folder says where files are made");
    }
  }
  ~SwapArea() override { ::swapoff(file_.c_str()); }

 private:
  // The first page of a swap area, offsets in bytes:
  //   0          1024      1028        1032                     4086          4096
  //   +----------+---------+-----------+------------------------+-------------+
  //   | (boots)  | version | last page | label, bad pages: none | SWAPSPACE2  |
  //   +----------+---------+-----------+------------------------+-------------+
  void write_header(std::uint64_t bytes) {
    constexpr std::size_t page_bytes = 4096;
    constexpr std::string_view magic = "SWAPSPACE2";
    std::array<char, page_bytes> page{};
    const std::array<std::uint32_t, 2> numbers{1, static_cast<std::uint32_t>(bytes / page_bytes - 1)};
    std::memcpy(&page[1024], numbers.data(), sizeof numbers);
    std::memcpy(&page[page_bytes - magic.size()], magic.data(), magic.size());
    const FileDescriptor area(::open(file_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!area || ::pwrite(area.number(), page.data(), page.size(), 0) != page_bytes || ::fsync(area.number()) != 0) {
      throw_system_error(fmt::format("cannot write to {}", file_.string()));
    }
  }

  fs::path file_;
};

class ZramDevice final : public MadeTight::Part {
 public:
  explicit ZramDevice(std::uint64_t bytes) : number_(read_setting(fs::path(zram_control) / "hot_add")) {
    try {
      write_setting(folder() / "disksize", std::to_string(bytes));
    } catch (...) {
      remove();
      throw;
    }
  }
  ~ZramDevice() override { remove(); }

  [[nodiscard]] fs::path path() const { return "/dev/zram" + number_; }

 private:
  [[nodiscard]] fs::path folder() const { return "/sys/block/zram" + number_; }
  void remove() noexcept {
    try {
      write_setting(folder() / "reset", "1");
      write_setting(fs::path(zram_control) / "hot_remove", number_);
    } catch (const std::exception& error) {
      cli::print_stderr("tonari bench: zram{} stays behind: {}\n", number_, error.what());
    }
  }

  std::string number_;
};

/// A file that the destructor removes, even if another process made it.
class OwnFile final : public MadeTight::Part {
 public:
  explicit OwnFile(fs::path path) : path_(std::move(path)) {}
  void make(std::uint64_t bytes) const {
    const FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file || ::fallocate(file.number(), 0, 0, static_cast<off_t>(bytes)) != 0) {
      throw_system_error(fmt::format("cannot make {} of {} bytes", path_.string(), bytes),
                         "--folder says where files are made");
    }
  }
  ~OwnFile() override { ::unlink(path_.c_str()); }

 private:
  fs::path path_;
};

fs::path swap_file(const TightMemory& memory) { return memory.folder / (name_of_this_process() + ".swap"); }

}  // namespace

MadeTight::MadeTight(const TightMemory& memory) {
  switch (memory.overflow) {
    case Overflow::swap_zram: {
      auto device = std::make_unique<ZramDevice>(memory.overflow_bytes);
      const auto path = device->path();
      overflow_ = std::move(device);
      swap_ = std::make_unique<SwapArea>(path, memory.overflow_bytes);
      break;
    }
    case Overflow::swap_file: {
      auto file = std::make_unique<OwnFile>(swap_file(memory));
      file->make(memory.overflow_bytes);
      overflow_ = std::move(file);
      swap_ = std::make_unique<SwapArea>(swap_file(memory), memory.overflow_bytes);
      break;
    }
    case Overflow::file: overflow_ = std::make_unique<OwnFile>(mapped_file(memory)); break;
  }
  cgroup_ = std::make_unique<Cgroup>(memory.limit_bytes);
}

fs::path mapped_file(const TightMemory& memory) { return memory.folder / (name_of_this_process() + ".data"); }

Command in_cgroup(Command command) {
  const std::string join = R"(echo $$ > "$0"/cgroup.procs && exec "$@")";
  command.arguments.insert(command.arguments.begin(), {"sh", "-c", join, cgroup_path()});
  return command;
}

void check_tight_memory(Overflow overflow) {
  if (::geteuid() != 0) throw SetupError("it takes root: memory cgroups and swap are the system's");
  (void)cgroup_path();
  if (overflow == Overflow::swap_zram && ::access((fs::path(zram_control) / "hot_add").c_str(), R_OK) != 0) {
    throw SetupError("no zram here: load the module zram (CONFIG_ZRAM)");
  }
}

}  // namespace tonari::bench::driver
