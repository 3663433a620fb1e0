#include "fabric/ucx/rdma_devices.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tonari::fabric::ucx {
namespace {

namespace fs = std::filesystem;

// A directory like /sys/class/infiniband, with three cards: one with a link, one without a link, one without ports.
struct RdmaDevices : testing::Test {
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "cards-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
    add_port("mlx5_0", "4: ACTIVE");
    add_port("mlx5_1", "1: DOWN");
    fs::create_directories(root / "mlx5_2");
  }
  void TearDown() override { fs::remove_all(root); }
  void add_port(const std::string& card, const char* state) const {
    fs::create_directories(root / card / "ports" / "1");
    std::ofstream(root / card / "ports" / "1" / "state") << state << '\n';
  }
  [[nodiscard]] bool finds(const char* transports, const char* devices) const {
    return finds_rdma_card(transports, devices, root);
  }
  fs::path root;
};

TEST_F(RdmaDevices, CountIfTheyHaveALinkAndTheSettingNamesThem) {
  EXPECT_TRUE(finds("all", "all"));
  EXPECT_TRUE(finds("all", "eth0,mlx5_0:1"));
  EXPECT_TRUE(finds("all", "mlx5_0"));
  EXPECT_FALSE(finds("all", "eth0"));
  EXPECT_FALSE(finds("all", "mlx5_1:1,mlx5_2:1"));
  EXPECT_FALSE(finds("all", "mlx5_01:1"));
}

TEST_F(RdmaDevices, CountIfTheSettingNamesATransportThatUsesThem) {
  EXPECT_TRUE(finds("rc_verbs,tcp", "all"));
  EXPECT_TRUE(finds("ib", "all"));
  EXPECT_FALSE(finds("tcp", "all"));
  EXPECT_FALSE(finds("ud,tcp", "all"));
  EXPECT_FALSE(finds("^sm", "all"));
}

TEST_F(RdmaDevices, AreNotFoundWithoutTheDirectory) { EXPECT_FALSE(finds_rdma_card("all", "all", root / "none")); }

}  // namespace
}  // namespace tonari::fabric::ucx
