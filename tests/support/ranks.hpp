#pragma once

#include "random.hpp"

#include <tonari/tonari.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace tonari {

inline void PrintTo(Status status, std::ostream* stream) { *stream << to_string(status); }

namespace test {

using Settings = std::vector<std::string>;

/// Runs `body(job)` in ranks that are threads. A failed ASSERT ends its rank, and the other ranks learn of its death.
inline void as_jobs(int ranks, const std::function<void(Job&)>& body, const Settings& settings = {}) {
  run_as_threads(
      ranks,
      [&body](Job& job) {
        body(job);
        if (testing::Test::HasFatalFailure())
          throw testing::AssertionException(
              testing::TestPartResult(testing::TestPartResult::kFatalFailure, __FILE__, __LINE__, "a rank failed"));
      },
      settings);
}

/// The same, with the communicator of all ranks.
inline void as_ranks(int ranks, const std::function<void(Communicator&)>& body, const Settings& settings = {}) {
  as_jobs(
      ranks,
      [&body](Job& job) {
        Communicator world(job);
        body(world);
      },
      settings);
}

/// A rank throws this to die on purpose.
struct Killed {};

/// A named set of settings, with which tests run.
struct Variant {
  std::string name;
  Settings settings;
};
inline void PrintTo(const Variant& variant, std::ostream* stream) { *stream << variant.name; }
inline std::string name_of(const testing::TestParamInfo<Variant>& info) { return info.param.name; }

/// Variants for every way that a payload can travel, and for every resource that can run out.
inline std::vector<Variant> variants() {
  return {
      {"Plain", {}},
      {"SmallestRing", {"TONARI_RING_SLOTS=64"}},
      {"NothingInHeads", {"TONARI_SPLIT=0"}},
      {"SmallChunks", {"TONARI_CHUNK_BYTES=24K", "TONARI_DIRECT_BYTES=0"}},
      {"Pieces", {"TONARI_DIRECT_COPIES=off"}},
      {"PiecesOfAll", {"TONARI_DIRECT_COPIES=off", "TONARI_DIRECT_BYTES=0", "TONARI_SPLIT=0", "TONARI_RING_SLOTS=64"}},
      {"NoService", {"TONARI_SERVICE_THREAD=off"}},
  };
}

/// Returns the setting of the network: TCP, or the value of TONARI_TEST_NETWORK.
inline std::string network_setting() {
  const char* const chosen = std::getenv("TONARI_TEST_NETWORK");
  return std::string("TONARI_NETWORK=") + (chosen != nullptr ? chosen : "tcp");
}

/// The same variants, and variants with several hosts.
inline std::vector<Variant> variants_and_network() {
  const std::string network = network_setting();
  std::vector<Variant> all = variants();
  all.push_back({"Network", {"TONARI_APART=network", network}});
  all.push_back({"TwoAHost", {"TONARI_APART=network", "TONARI_APART_RANKS=2", network}});
  all.push_back({"NetworkNoService", {"TONARI_APART=network", network, "TONARI_SERVICE_THREAD=off"}});
  return all;
}

/// Several hosts, without service threads. A rank that is not in the library then handles no message.
inline bool hears_only_in_calls(const Variant& variant) { return variant.name == "NetworkNoService"; }

/// A test that runs under every variant.
class OnEveryVariant : public testing::TestWithParam<Variant> {
 protected:
  static void run(int ranks, const std::function<void(Communicator&)>& body) {
    as_ranks(ranks, body, GetParam().settings);
  }
};

}  // namespace test

}  // namespace tonari
