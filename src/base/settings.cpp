#include "base/settings.hpp"

#include "base/edit_distance.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

namespace tonari {

namespace {

// The kinds of settings. Each kind reads a value from text, writes it as text, and describes the accepted values.

struct Choice {
  std::string Settings::*member;
  std::string_view values;  // separated by '|'

  bool read(Settings& settings, std::string_view text) const {
    if (text.find('|') != text.npos || fmt::format("|{}|", values).find(fmt::format("|{}|", text)) == text.npos) {
      return false;
    }
    settings.*member = text;
    return true;
  }
  [[nodiscard]] std::string write(const Settings& settings) const { return settings.*member; }
  [[nodiscard]] std::string takes() const { return fmt::format("one of {}", values); }
};

struct Switch {
  bool Settings::*member;

  bool read(Settings& settings, std::string_view text) const {
    const bool on = text == "on" || text == "1" || text == "true" || text == "yes";
    const bool off = text == "off" || text == "0" || text == "false" || text == "no";
    settings.*member = on;
    return on || off;
  }
  [[nodiscard]] std::string write(const Settings& settings) const { return settings.*member ? "on" : "off"; }
  [[nodiscard]] std::string takes() const { return "on or off"; }
};

enum class Form : std::uint8_t { count, power_of_two, bytes };

std::string write_bytes(std::uint64_t bytes) {
  constexpr std::string_view units = "KMGT";
  std::size_t unit = 0;
  while (unit < units.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? std::to_string(bytes) : fmt::format("{}{}", bytes, units[unit - 1]);
}

std::optional<std::uint64_t> read_number(std::string_view text, bool with_unit) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return value;

  const auto unit = std::string_view{"KMGTkmgt"}.find(text.front());
  if (!with_unit || text.size() != 1 || unit == text.npos) return std::nullopt;
  const auto shift = static_cast<int>(10 * (unit % 4 + 1));
  if (shift > std::countl_zero(value)) return std::nullopt;
  return value << shift;
}

struct Number {
  std::uint64_t Settings::*member;
  Form form;
  std::uint64_t min;
  std::uint64_t max;

  bool read(Settings& settings, std::string_view text) const {
    const auto value = read_number(text, form == Form::bytes);
    if (!value || *value < min || *value > max) return false;
    if (form == Form::power_of_two && !std::has_single_bit(*value)) return false;
    settings.*member = *value;
    return true;
  }
  [[nodiscard]] std::string write(const Settings& settings) const { return write(settings.*member); }
  [[nodiscard]] std::string takes() const {
    constexpr std::array names{"a number", "a power of two", "a size"};
    return fmt::format("{} from {} to {}", names[static_cast<std::size_t>(form)], write(min), write(max));
  }
  [[nodiscard]] std::string write(std::uint64_t value) const {
    return form == Form::bytes ? write_bytes(value) : std::to_string(value);
  }
};

struct Row {
  std::string_view name;
  std::variant<Choice, Number, Switch> kind;
  std::string_view meaning;

  bool read(Settings& settings, std::string_view text) const {
    return std::visit([&](const auto& what) { return what.read(settings, text); }, kind);
  }
  [[nodiscard]] std::string write(const Settings& settings) const {
    return std::visit([&](const auto& what) { return what.write(settings); }, kind);
  }
  [[nodiscard]] std::string takes() const {
    return std::visit([](const auto& what) { return what.takes(); }, kind);
  }
};

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t gib = kib * kib * kib;

const std::array table{
    Row{"TONARI_APART", Choice{&Settings::apart, "none|memory|network"},
        "treat ranks of one machine as separate hosts: only in the sharing protocol (memory), or in the transport too "
        "(network)"},
    Row{"TONARI_APART_RANKS", Number{&Settings::apart_ranks, Form::count, 1, 65536},
        "number of consecutive ranks that TONARI_APART treats as one host"},
    Row{"TONARI_NETWORK", Choice{&Settings::network, "any|tcp|rc|ud"},
        "the network between hosts: any that UCX finds, TCP, or InfiniBand verbs with reliable connections (rc) or "
        "datagrams (ud)"},
    Row{"TONARI_SPLIT", Number{&Settings::split, Form::count, 0, 48},
        "the longest payload that travels in its head; a longer payload goes through bulk memory"},
    Row{"TONARI_RING_SLOTS", Number{&Settings::ring_slots, Form::power_of_two, 64, 65536},
        "number of heads that fit into a rank's ring; when it is full, senders wait"},
    Row{"TONARI_DIRECT_BYTES", Number{&Settings::direct_bytes, Form::bytes, 0, 1024 * gib},
        "from this size on, a payload is copied directly between the two programs' memory"},
    Row{"TONARI_PUT_BYTES", Number{&Settings::put_bytes, Form::bytes, 0, 1024 * gib},
        "from this size on, guarded data are written to the remote host by RDMA, if the network has it"},
    Row{"TONARI_CHUNK_BYTES", Number{&Settings::chunk_bytes, Form::bytes, 24 * kib, gib},
        "the largest chunk of a direct copy that sender or receiver claims at a time"},
    Row{"TONARI_UNEXPECTED_BYTES", Number{&Settings::unexpected_bytes, Form::bytes, 0, 1024 * gib},
        "memory for unexpected messages (no receive posted yet); at the limit their senders wait, and each costs 64 "
        "bytes here"},
    Row{"TONARI_SCAN_DEPTH", Number{&Settings::scan_depth, Form::count, 0, 1ULL << 32},
        "queues of unexpected messages up to this length are searched in order, longer queues by hash"},
    Row{"TONARI_JOIN_SECONDS", Number{&Settings::join_seconds, Form::count, 1, 86400},
        "seconds that the first rank to join waits for the last one"},
    Row{"TONARI_WARN_SECONDS", Number{&Settings::warn_seconds, Form::count, 0, 86400},
        "seconds until a rank warns that it waits for others to leave, or to receive from a full queue; 0: never"},
    Row{"TONARI_SHARE_BYTES", Number{&Settings::share_bytes, Form::bytes, 2 * kib* kib, 64 * kib* gib},
        "size of the address range reserved for shared memory, at the same address in all ranks"},
    Row{"TONARI_DIRECT_COPIES", Switch{&Settings::direct_copies},
        "copy directly to and from other programs' memory if the system (process_vm_readv) or the network (RDMA) can"},
    Row{"TONARI_SERVICE_THREAD", Switch{&Settings::service_thread},
        "serve other ranks with a thread of the runtime while the program computes"},
    Row{"TONARI_NEWEST_KERNEL", Switch{&Settings::newest_kernel},
        "let shared arrays use features of Linux 6.4 and 6.6 if the kernel has them; off: use the fallbacks"},
    Row{"TONARI_WRAP_CALLS", Switch{&Settings::wrap_calls},
        "let tonari run preload wrappers of libc calls, for users whose system calls would fail on absent pages of "
        "shared memory"},
    Row{"TONARI_LOG", Choice{&Settings::log, "trace|debug|info|warn|error|critical|off"},
        "lowest level of the lines that are written to standard error"},
};

// Variables that the runtime, its commands or its tests use. They are not settings.
constexpr auto runtime_names = std::to_array<std::string_view>(
    {"TONARI_RANK", "TONARI_SIZE", "TONARI_JOIN", "TONARI_SECRET", "TONARI_FAR", "TONARI_FAR_KEEPER", "TONARI_BIN",
     "TONARI_TEST_BIN", "TONARI_TEST_NETWORK", "TONARI_TEST_DEVICES", "TONARI_TEST_SLOWNESS", "TONARI_SOAK",
     "TONARI_SEED", "TONARI_MPI_CC", "TONARI_MPI_CXX", "TONARI_MPI_APPNUM", "TONARI_MPI_INITIAL_ERRHANDLER"});

constexpr std::string_view ucx_prefix = "TONARI_UCX_";  // UCX's own settings; UCX reads them (fabric/ucx/worker.cpp)

std::string_view nearest_name(std::string_view name) {
  return std::ranges::min_element(table, {}, [&](const Row& row) { return edit_distance(name, row.name); })->name;
}

std::pair<std::string_view, std::string_view> split_pair(std::string_view pair) {
  const auto equals = pair.find('=');
  if (equals == pair.npos) throw SetupError(fmt::format("'{}' is not a setting: write NAME=VALUE", pair));
  return {pair.substr(0, equals), pair.substr(equals + 1)};
}

struct Reading {
  Settings settings;
  std::array<Origin, table.size()> origins{};
};

Reading read_all(std::span<const std::string> overrides) {
  Reading reading;
  const auto take = [&](const Row& row, std::string_view text, Origin origin) {
    if (!row.read(reading.settings, text)) {
      throw SetupError(
          fmt::format("{}={}: must be {}; the default is {}", row.name, text, row.takes(), row.write(Settings{})));
    }
    reading.origins[static_cast<std::size_t>(&row - table.data())] = origin;
  };

  const auto reset = [&](const Row& row) {
    row.read(reading.settings, row.write(Settings{}));
    reading.origins[static_cast<std::size_t>(&row - table.data())] = Origin::built_in;
  };

  for (const Row& row : table) {
    const char* const text = std::getenv(row.name.data());
    if (text != nullptr && *text != '\0') take(row, text, Origin::environment);  // an empty value counts as not set
  }
  for (const std::string_view pair : overrides) {
    const auto [name, text] = split_pair(pair);
    const auto row = std::ranges::find(table, name, &Row::name);
    if (row == table.end()) {
      throw SetupError(fmt::format("there is no setting {}; the nearest is {}", name, nearest_name(name)));
    }
    if (text.empty()) {
      reset(*row);
    } else {
      take(*row, text, Origin::job);
    }
  }
  return reading;
}

}  // namespace

std::string_view to_string(Origin origin) noexcept {
  switch (origin) {
    case Origin::built_in: return "built in";
    case Origin::environment: return "environment";
    case Origin::job: return "job";
  }
  return "unknown";
}

Settings read_settings(std::span<const std::string> overrides) { return read_all(overrides).settings; }

std::vector<SettingText> describe_settings(std::span<const std::string> overrides) {
  const auto [settings, origins] = read_all(overrides);
  std::vector<SettingText> texts;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Row& row = table[i];
    texts.push_back({row.name, row.write(settings), row.write(Settings{}), origins[i], row.meaning});
  }
  return texts;
}

std::vector<std::string> unknown_settings() {
  std::vector<std::string> lines;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view pair{*entry};
    const auto name = pair.substr(0, pair.find('='));
    if (!name.starts_with("TONARI_") || name.starts_with(ucx_prefix) ||
        std::ranges::find(runtime_names, name) != runtime_names.end() ||
        std::ranges::find(table, name, &Row::name) != table.end()) {
      continue;
    }
    lines.push_back(
        fmt::format("{} is set, but there is no such setting; the nearest is {}", name, nearest_name(name)));
  }
  return lines;
}

}  // namespace tonari
