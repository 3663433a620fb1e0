#include "base/settings.hpp"

#include <tonari/status.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace tonari {
namespace {

// An environment variable for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Variable(Variable&&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

Settings settings_with(const std::string& override) { return read_settings(std::vector{override}); }

std::string refusal_of(const std::string& override) {
  try {
    (void)settings_with(override);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "accepted";
}

SettingText text_of(std::string_view name, const std::vector<std::string>& overrides = {}) {
  for (const auto& text : describe_settings(overrides)) {
    if (text.name == name) return text;
  }
  ADD_FAILURE() << "no setting " << name;
  return {};
}

TEST(BaseSettings, TakeTheEnvironmentAndLetTheJobOverrideIt) {
  const Variable split("TONARI_SPLIT", "16");
  const Variable chunk("TONARI_CHUNK_BYTES", "1M");

  const Settings settings = settings_with("TONARI_SPLIT=32");

  EXPECT_EQ(settings.split, 32U);
  EXPECT_EQ(settings.chunk_bytes, 1U << 20);
  EXPECT_EQ(settings.ring_slots, Settings{}.ring_slots);
}

TEST(BaseSettings, SayWhereEveryValueCameFrom) {
  const Variable split("TONARI_SPLIT", "16");

  EXPECT_EQ(text_of("TONARI_SPLIT").origin, Origin::environment);
  EXPECT_EQ(text_of("TONARI_SPLIT", {"TONARI_SPLIT=8"}).origin, Origin::job);
  EXPECT_EQ(text_of("TONARI_SPLIT", {"TONARI_SPLIT=8"}).value, "8");
  EXPECT_EQ(text_of("TONARI_SPLIT").built_in, "48");
  EXPECT_EQ(text_of("TONARI_LOG").origin, Origin::built_in);
}

TEST(BaseSettings, AcceptEveryValueTheyDescribe) {
  for (const auto& text : describe_settings()) {
    EXPECT_EQ(refusal_of(std::string(text.name) + '=' + text.value), "accepted");
    EXPECT_EQ(refusal_of(std::string(text.name) + '=' + text.built_in), "accepted");
    EXPECT_FALSE(text.meaning.empty());
  }
}

TEST(BaseSettings, ReadSizesWithUnits) {
  EXPECT_EQ(settings_with("TONARI_UNEXPECTED_BYTES=12345").unexpected_bytes, 12345U);
  EXPECT_EQ(settings_with("TONARI_UNEXPECTED_BYTES=3k").unexpected_bytes, 3072U);
  EXPECT_EQ(settings_with("TONARI_UNEXPECTED_BYTES=2G").unexpected_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(text_of("TONARI_UNEXPECTED_BYTES", {"TONARI_UNEXPECTED_BYTES=2048K"}).value, "2M");
}

TEST(BaseSettings, ReadSwitchesInWords) {
  EXPECT_FALSE(settings_with("TONARI_SERVICE_THREAD=off").service_thread);
  EXPECT_TRUE(settings_with("TONARI_SERVICE_THREAD=1").service_thread);
  EXPECT_FALSE(settings_with("TONARI_DIRECT_COPIES=no").direct_copies);
}

TEST(BaseSettings, TreatAnEmptyVariableAsUnset) {
  const Variable split("TONARI_SPLIT", "");

  EXPECT_EQ(read_settings().split, Settings{}.split);
  EXPECT_EQ(text_of("TONARI_SPLIT").origin, Origin::built_in);
}

TEST(BaseSettings, HaveTheirDefaultsWhereTheJobEmptiesThem) {
  const Variable split("TONARI_SPLIT", "16");
  const Variable apart("TONARI_APART", "memory");

  EXPECT_EQ(settings_with("TONARI_SPLIT=").split, Settings{}.split);
  EXPECT_EQ(settings_with("TONARI_APART=").apart, Settings{}.apart);
  EXPECT_EQ(text_of("TONARI_SPLIT", {"TONARI_SPLIT="}).origin, Origin::built_in);
}

TEST(BaseSettings, RefuseAValueWithItsNameAndTheValidOnes) {
  EXPECT_EQ(refusal_of("TONARI_SPLIT=49"), "TONARI_SPLIT=49: must be a number from 0 to 48; the default is 48");
  EXPECT_EQ(refusal_of("TONARI_RING_SLOTS=100"),
            "TONARI_RING_SLOTS=100: must be a power of two from 64 to 65536; the default is 1024");
  EXPECT_EQ(refusal_of("TONARI_CHUNK_BYTES=1K"),
            "TONARI_CHUNK_BYTES=1K: must be a size from 24K to 1G; the default is 256K");
  EXPECT_EQ(refusal_of("TONARI_APART=disk"),
            "TONARI_APART=disk: must be one of none|memory|network; the default is none");
  EXPECT_EQ(refusal_of("TONARI_SERVICE_THREAD=maybe"),
            "TONARI_SERVICE_THREAD=maybe: must be on or off; the default is on");
}

TEST(BaseSettings, RefuseStringsThatOnlyResembleValues) {
  for (const char* text : {"TONARI_SPLIT=-1", "TONARI_SPLIT= 8", "TONARI_SPLIT=8x", "TONARI_SPLIT=1K",
                           "TONARI_CHUNK_BYTES=1KB", "TONARI_CHUNK_BYTES=K", "TONARI_CHUNK_BYTES=99999999999999999999",
                           "TONARI_CHUNK_BYTES=18014398509481985K", "TONARI_APART=none|memory", "TONARI_APART= "}) {
    EXPECT_NE(refusal_of(text), "accepted") << text;
  }
}

TEST(BaseSettings, SuggestTheNearestSettingForAnUnknownName) {
  EXPECT_EQ(refusal_of("TONARI_RING_SLOT=64"),
            "there is no setting TONARI_RING_SLOT; the nearest is TONARI_RING_SLOTS");
  EXPECT_EQ(refusal_of("nonsense"), "'nonsense' is not a setting: write NAME=VALUE");
}

TEST(BaseSettings, ReportUnknownVariablesButNotTheRuntimesOwn) {
  const Variable rank("TONARI_RANK", "0");
  const Variable log("TONARI_LOG", "warn");
  const Variable wrong("TONARI_WARN_SECOND", "5");
  const Variable of_ucx("TONARI_UCX_TLS", "tcp");
  const Variable of_mpicc("TONARI_MPI_CC", "gcc");

  const auto lines = unknown_settings();

  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], "TONARI_WARN_SECOND is set, but there is no such setting; the nearest is TONARI_WARN_SECONDS");
}

}  // namespace
}  // namespace tonari
