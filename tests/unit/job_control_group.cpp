#include "job/control_group.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace tonari::job {
namespace {

namespace fs = std::filesystem;

/// A folder with the files that the kernel would show.
class ControlGroup : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "groups-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  [[nodiscard]] std::optional<std::uint64_t> limit() const { return control_group_memory_limit(root_); }

 private:
  fs::path root_;
};

constexpr auto mount_of_v2 = "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr auto mount_of_v1 =
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "34 31 0:30 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
constexpr auto no_limit_of_v1 = "9223372036854771712\n";

TEST_F(ControlGroup, HasNoLimitWhereNoHierarchyIsMounted) {
  EXPECT_EQ(limit(), std::nullopt);
  write("proc/self/mountinfo", "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\nnot a mount\n\n");
  write("proc/self/cgroup", "0::/\nnot a group\n");
  EXPECT_EQ(limit(), std::nullopt);
}

TEST_F(ControlGroup, HasTheLimitOfItsOwnGroup) {
  write("proc/self/mountinfo", mount_of_v2);
  write("proc/self/cgroup", "0::/user/job\n");
  write("sys/fs/cgroup/user/job/memory.max", "1048576\n");
  write("sys/fs/cgroup/user/memory.max", "max\n");
  EXPECT_EQ(limit(), 1048576U);
}

TEST_F(ControlGroup, HasTheSmallerLimitOfAnAncestor) {
  write("proc/self/mountinfo", mount_of_v2);
  write("proc/self/cgroup", "0::/slurm/job_7/step_0/task\n");
  write("sys/fs/cgroup/slurm/job_7/step_0/task/memory.max", "max\n");
  write("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "3000000\n");
  write("sys/fs/cgroup/slurm/job_7/memory.max", "2000000\n");
  write("sys/fs/cgroup/slurm/memory.max", "9000000\n");
  EXPECT_EQ(limit(), 2000000U);
}

TEST_F(ControlGroup, CanBeOfVersion1) {
  write("proc/self/mountinfo", mount_of_v1);
  write("proc/self/cgroup", "9:name=systemd:/\n4:memory:/batch/job\n1:cpu,cpuacct:/elsewhere\n0::/\n");
  write("sys/fs/cgroup/memory/batch/job/memory.limit_in_bytes", no_limit_of_v1);
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", no_limit_of_v1);
  EXPECT_EQ(limit(), std::nullopt);
  write("sys/fs/cgroup/memory/batch/memory.limit_in_bytes", "157286400\n");
  EXPECT_EQ(limit(), 157286400U);
}

TEST_F(ControlGroup, CanBeOfBothVersionsAtOnce) {
  write("proc/self/mountinfo",
        fmt::format("{}41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n", mount_of_v1));
  write("proc/self/cgroup", "4:memory:/a\n0::/b\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000000\n");
  write("sys/fs/cgroup/unified/b/memory.max", "4000000\n");
  EXPECT_EQ(limit(), 4000000U);
}

TEST_F(ControlGroup, IsTheTopInAContainer) {
  write("proc/self/mountinfo", "35 31 0:32 /docker/0af /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000000\n");
  for (const char* const path : {"/docker/0af", "/", "/../other"}) {  // the host's path; and with namespaces of groups
    write("proc/self/cgroup", std::string("4:memory:") + path + "\n");
    EXPECT_EQ(limit(), 7000000U) << path;
  }
  write("proc/self/cgroup", "4:memory:/docker/0af/inner\n");
  write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "6000000\n");
  EXPECT_EQ(limit(), 6000000U);
}

TEST_F(ControlGroup, MayBeMountedAtAPathWithSpaces) {
  write("proc/self/mountinfo", "31 23 0:27 / /my\\040groups rw - cgroup2 none rw\n");
  write("proc/self/cgroup", "0::/a b\n");
  write("my groups/a b/memory.max", "123456\n");
  EXPECT_EQ(limit(), 123456U);
}

}  // namespace
}  // namespace tonari::job
