#pragma once

#include "harness/gather.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace tonari::bench {

/// Where a rank runs. Sent between ranks in this layout.
struct Place {
  std::array<char, 44> host{};  // truncated if longer
  int processor = -1;           // -1: not bound to one
};

inline Place place_of_this_rank() {
  Place place;
  ::gethostname(place.host.data(), place.host.size() - 1);
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) == 1) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &allowed)) place.processor = i;
    }
  }
  return place;
}

/// Binds this process to the processor that --processors names for its rank, if the option is given. Call it before the
/// system starts, so that its threads and memory are near the rank. Reads the rank from the launcher's environment.
inline void bind_as_told(const Options& options) {
  const auto told = options.sizes("processors", "");
  if (told.empty()) return;
  for (const char* const name : {"TONARI_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    const char* const rank = std::getenv(name);
    if (rank == nullptr) continue;
    const auto processor = told.at(std::stoull(rank));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    if (::sched_setaffinity(0, sizeof one, &one) == 0) return;
    throw std::system_error(errno, std::generic_category(),
                            "sched_setaffinity to processor " + std::to_string(processor));
  }
  throw std::runtime_error("--processors: the launcher did not tell this process its rank");
}

/// Binds this process to its allowed processor number `index`, if it may use at least two.
inline void bind_to_processor(int index) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

/// Returns true when `file` has the same contents for both processors in sysfs.
inline bool same_in_sysfs(int left, int right, const std::string& file) {
  const auto read = [&](int processor) {
    std::ifstream stream("/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/" + file);
    std::string text;
    std::getline(stream, text);
    return text;
  };
  const auto text = read(left);
  return !text.empty() && text == read(right);
}

/// Returns the distance of two ranks in words: "same cache". Unbound ranks may be anywhere on their host.
inline std::string distance(const Place& left, const Place& right) {
  if (std::strncmp(left.host.data(), right.host.data(), left.host.size()) != 0) return "other host";
  if (left.processor < 0 || right.processor < 0) return "same host";
  if (left.processor == right.processor) return "same processor";
  if (same_in_sysfs(left.processor, right.processor, "topology/thread_siblings_list")) return "same core";
  for (int index = 0; index < 8; ++index) {
    const auto cache = "cache/index" + std::to_string(index) + "/";
    if (same_in_sysfs(left.processor, right.processor, cache + "shared_cpu_list")) return "same cache";
  }
  if (same_in_sysfs(left.processor, right.processor, "topology/physical_package_id")) return "same socket";
  return "same host";
}

/// Returns the places of all ranks on rank 0, and only the own place on others. Every rank calls it.
template <Wire W>
std::vector<Place> gather_places(W& wire) {
  constexpr int tag_place = 901;
  return gather_values(wire, wire.size(), place_of_this_rank(), tag_place);
}

inline std::string processors(const std::vector<Place>& places) {
  std::string text;
  for (const auto& place : places) {
    if (!text.empty()) text += ' ';
    text += place.processor < 0 ? std::string("any") : std::to_string(place.processor);
  }
  return text;
}

}  // namespace tonari::bench
