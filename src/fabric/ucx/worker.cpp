#include "fabric/ucx/worker.hpp"

#include "base/clock.hpp"
#include "fabric/ucx/names.hpp"
#include "fabric/ucx/rdma_devices.hpp"
#include "job/signals.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <span>
#include <string_view>
#include <system_error>

namespace tonari::fabric::ucx {

namespace {

constexpr const char* prefix = "TONARI";  // UCX adds _UCX_ to it
// The kernel's limits.
constexpr int keepalive_s_max = 32767;
constexpr int keepalive_probes_max = 127;

// Settings that tonari handles itself: set_for_tcp(), library.cpp.
constexpr auto names_seen_to =
    std::to_array<std::string_view>({"TCP_CONN_NB", "TCP_KEEPIDLE", "TCP_KEEPCNT", "TCP_KEEPINTVL", "LOG_LEVEL"});

/// UCX's settings. In order of precedence: TONARI_UCX_NAME, tonari's values, UCX_NAME, UCX's defaults.
class Config {
 public:
  explicit Config(const Library& ucx) : ucx_(ucx) {
    require(ucx_.config_read(prefix, nullptr, &config_), "reading TONARI_UCX_... settings",
            "set TONARI_UCX_LOG_LEVEL=warn to see which one is wrong; `ucx_info -f` lists them");
  }
  Config(Config&&) = delete;
  ~Config() { ucx_.config_release(config_); }

  /// Returns the value of TONARI_UCX_NAME; null if it is not set.
  [[nodiscard]] static const char* given(const std::string& name) noexcept {
    return std::getenv(fmt::format("{}_UCX_{}", prefix, name).c_str());
  }
  void set(const std::string& name, const std::string& value) {
    if (given(name) == nullptr) modify(name, value);
  }
  void modify(const std::string& name, const std::string& value) {
    require(ucx_.config_modify(config_, name.c_str(), value.c_str()), fmt::format("setting UCX's {}={}", name, value),
            "use another version of UCX");
  }
  [[nodiscard]] const ucp_config_t* get() const noexcept { return config_; }

 private:
  const Library& ucx_;
  ucp_config_t* config_ = nullptr;
};

// UCX 1.13 knows TCP's settings by short names; later versions, and TONARI_UCX_..., use long names. Sets both: each
// version ignores the name that it does not know.
void set_for_tcp(Config& config, const std::string& name, const std::string& value) {
  const std::string long_name = "TCP_" + name;
  const char* const given = Config::given(long_name);
  config.modify(name, given != nullptr ? given : value);
  config.modify(long_name, given != nullptr ? given : value);
}

// A host counts as dead after 10 s of silence: idle + count x interval (keepalive.hpp). UCX's default is 16 s.
constexpr Keepalive::Times usual_keepalive{.idle_s = 4, .count = 3, .interval_s = 2};

// Returns the value of TONARI_UCX_TCP_..., in whole seconds if it is a time; nothing for "inf", which is forever.
std::optional<int> number_of(const char* name, int otherwise, int most) {
  const char* const given = Config::given(name);
  if (given == nullptr) return otherwise;
  const std::string_view text(given);
  if (text == "inf") return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || number <= 0 || number > most || !(unit.empty() || unit == "s")) {
    throw SetupError(fmt::format("{}_UCX_{}={}: must be a number from 1 to {} (in seconds, if it is a time) or inf",
                                 prefix, name, text, most));
  }
  return number;
}

std::optional<Keepalive::Times> keepalive_times() {
  const auto idle_s = number_of("TCP_KEEPIDLE", usual_keepalive.idle_s, keepalive_s_max);
  const auto count = number_of("TCP_KEEPCNT", usual_keepalive.count, keepalive_probes_max);
  const auto interval_s = number_of("TCP_KEEPINTVL", usual_keepalive.interval_s, keepalive_s_max);
  if (!idle_s || !count || !interval_s) return std::nullopt;
  return Keepalive::Times{*idle_s, *count, *interval_s};
}

void choose(Config& config, const std::string& network, const std::string& devices) {
  config.set("TLS", network == "any" ? "^sm" : network);  // tonari has its own shared memory
  if (!devices.empty()) config.set("NET_DEVICES", devices);
  set_for_tcp(config, "CONN_NB", "y");  // otherwise a send waits for a host that does not react
  set_for_tcp(config, "KEEPIDLE", fmt::format("{}s", usual_keepalive.idle_s));
  set_for_tcp(config, "KEEPCNT", fmt::format("{}", usual_keepalive.count));
  set_for_tcp(config, "KEEPINTVL", fmt::format("{}s", usual_keepalive.interval_s));
  config.set("KEEPALIVE_INTERVAL", "4s");  // for verbs; the time until UCX gives up is added. UCX's default is 20 s
}

// Whether a card copies. Without one, UCX would have the peer's processor copy at any address that a packet names, so
// tonari does not use UCX's copies then.
bool has_rdma(const std::string& network, const std::string& devices) {
  if (network != "rc" && network != "any") return false;  // datagrams have no RDMA
  const char* given = Config::given("NET_DEVICES");
  if (given == nullptr && !devices.empty()) given = devices.c_str();
  if (given == nullptr) given = std::getenv("UCX_NET_DEVICES");
  const char* const transports = Config::given("TLS");
  return finds_rdma_card(transports != nullptr ? transports : "all", given != nullptr ? given : "all");
}

}  // namespace

Worker::Worker(const std::string& network, const std::string& devices, int peers)
    : ucx_(library()), reaches_memory_(has_rdma(network, devices)), keepalive_times_(keepalive_times()) {
  Config config(ucx_);
  check_names(config.get(), prefix, names_seen_to);
  choose(config, network, devices);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  if (reaches_memory_) params.features |= UCP_FEATURE_RMA;
  params.estimated_num_eps = static_cast<std::size_t>(peers);
  params.mt_workers_shared = 0;  // a context has one worker
  require(ucx_.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config.get(), &context_),
          fmt::format("starting UCX for network {}", network),
          "TONARI_UCX_TLS and TONARI_UCX_NET_DEVICES choose transports and devices; `ucx_info -d` lists them");
  try {
    make_worker();
  } catch (...) {
    ucx_.cleanup(context_);
    throw;
  }
}

void Worker::make_worker() {
  const job::AllSignalsBlocked blocked;  // for the thread that UCX starts here
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // Wire's lock serialises
  require(ucx_.worker_create(context_, &params, &worker_), "making a UCX worker",
          "see ulimit -n and, where UCX_TCP_PORT_RANGE is set, whether it has free ports for all ranks of a host");
}

void Worker::check_keepalive() noexcept {
  try {
    if (!keepalive_) keepalive_.emplace(event_descriptor(), keepalive_times_);
    keepalive_->look(monotonic_ns());
  } catch (const std::exception&) {  // no memory or no descriptors: the next look may succeed
  }
}

Worker::~Worker() {
  ucx_.worker_destroy(worker_);
  ucx_.cleanup(context_);
}

std::vector<std::byte> Worker::address() const {
  ucp_address_t* packed = nullptr;
  std::size_t bytes = 0;
  require(ucx_.worker_get_address(worker_, &packed, &bytes), "asking UCX for our address", "see `ucx_info -d`");
  const auto* const first = reinterpret_cast<const std::byte*>(packed);
  std::vector<std::byte> copy(first, first + bytes);
  ucx_.worker_release_address(worker_, packed);
  return copy;
}

int Worker::event_descriptor() const {
  int number = -1;
  require(ucx_.worker_get_efd(worker_, &number), "asking UCX for a descriptor to sleep on", "see ulimit -n");
  return number;
}

}  // namespace tonari::fabric::ucx
