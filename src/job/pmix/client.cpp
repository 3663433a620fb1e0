#include "job/pmix/client.hpp"

#include "job/pmix/library.hpp"
#include "job/signals.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

namespace tonari::job::pmix {

namespace {

constexpr std::size_t no_handler = std::numeric_limits<std::size_t>::max();

// One per process, like PMIx and its connection.
std::atomic<bool> server_lost{false};

void require(pmix_status_t status, std::string_view what, std::string_view remedy) {
  if (status == PMIX_SUCCESS || status == PMIX_OPERATION_SUCCEEDED) return;
  throw SetupError(fmt::format("{}: {}; {}", what, library().error_string(status), remedy));
}

pmix_proc_t process(std::string_view job, pmix_rank_t rank) noexcept {
  pmix_proc_t named{};
  job.copy(named.nspace, sizeof named.nspace - 1);
  named.rank = rank;
  return named;
}

pmix_info_t yes(std::string_view key) noexcept {
  pmix_info_t info{};
  key.copy(info.key, sizeof info.key - 1);
  info.value.type = PMIX_BOOL;
  info.value.data.flag = true;
  return info;
}

pmix_info_t within(std::chrono::seconds limit) noexcept {
  pmix_info_t info{};
  std::string_view{PMIX_TIMEOUT}.copy(info.key, sizeof info.key - 1);
  info.value.type = PMIX_INT;
  info.value.data.integer = static_cast<int>(limit.count());
  return info;
}

/// The result of an asynchronous PMIx call. Shared with PMIx's thread, which may deliver the result after the wait has
/// timed out.
template <class Value>
class Answer {
 public:
  void give(Value value) {
    const std::lock_guard guard(mutex_);
    value_ = value;
    given_.notify_all();
  }
  std::optional<Value> wait(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    given_.wait_for(lock, limit, [this] { return value_.has_value(); });
    return value_;
  }

  /// Calls `ask(ticket)`, which starts a PMIx call. If that returns PMIX_SUCCESS, PMIx's thread redeems the ticket
  /// later; otherwise the ticket is freed here.
  template <class Ask>
  static pmix_status_t start(const std::shared_ptr<Answer>& answer, Ask ask) {
    auto ticket = std::make_unique<std::shared_ptr<Answer>>(answer);
    const pmix_status_t status = ask(ticket.get());
    if (status == PMIX_SUCCESS) static_cast<void>(ticket.release());
    return status;
  }
  static std::unique_ptr<std::shared_ptr<Answer>> redeem(void* ticket) noexcept {
    return std::unique_ptr<std::shared_ptr<Answer>>(static_cast<std::shared_ptr<Answer>*>(ticket));
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::optional<Value> value_;
};

using Done = Answer<pmix_status_t>;
using Registered = Answer<std::size_t>;

void is_done(pmix_status_t status, void* ticket) { (*Done::redeem(ticket))->give(status); }

void is_registered(pmix_status_t status, std::size_t handler, void* ticket) {
  (*Registered::redeem(ticket))->give(status == PMIX_SUCCESS ? handler : no_handler);
}

void lose_server(std::size_t /*handler*/, pmix_status_t /*status*/, const pmix_proc_t* /*source*/,
                 pmix_info_t* /*info*/, std::size_t /*infos*/, pmix_info_t* /*results*/, std::size_t /*result_count*/,
                 pmix_event_notification_cbfunc_fn_t go_on, void* data) {
  server_lost.store(true, std::memory_order_release);  // pairs with connected(); publishes no other data
  if (go_on != nullptr)
    go_on(PMIX_SUCCESS, nullptr, 0, nullptr, nullptr, data);  // lets other handlers run, such as MPI's
}

}  // namespace

std::string why_absent() {
  try {
    library();
    return {};
  } catch (const SetupError& error) {
    return error.what();
  }
}

Client::Client() : handler_(no_handler) {
  if (const std::string why = why_absent(); !why.empty()) {
    throw SetupError(
        fmt::format("a launcher with PMIx started this process, which cannot join its job: {}, or unset "
                    "PMIX_NAMESPACE to run alone",
                    why));
  }
  const Library& pmix = library();
  pmix_proc_t self{};
  {
    const AllSignalsBlocked none_for_its_thread;
    require(pmix.init(&self, nullptr, 0), "connecting to the launcher by PMIx (PMIX_NAMESPACE is set)",
            "either it has ended, or this process cannot reach it any more; unset PMIX_NAMESPACE to run alone");
  }
  try {
    job_ = self.nspace;
    rank_ = static_cast<int>(self.rank);
    size_ = ask_for_size();
    watch_server();
  } catch (...) {
    pmix.finalize(nullptr, 0);
    throw;
  }
}

Client::~Client() {
  const Library& pmix = library();
  if (handler_ != no_handler && connected()) {  // otherwise no reply would come
    const auto done = std::make_shared<Done>();
    const auto status =
        Done::start(done, [&](void* ticket) { return pmix.deregister_event_handler(handler_, is_done, ticket); });
    if (status == PMIX_SUCCESS) done->wait(std::chrono::seconds{1});
  }
  pmix.finalize(nullptr, 0);
}

int Client::ask_for_size() const {
  constexpr auto what = "asking the launcher for the size of the job";
  constexpr auto remedy = "use another launcher: mpirun of Open MPI, srun --mpi=pmix, or `tonari run`";
  const pmix_proc_t all = process(job_, PMIX_RANK_WILDCARD);
  pmix_value_t* value = nullptr;
  require(library().get(&all, PMIX_JOB_SIZE, nullptr, 0, &value), what, remedy);
  const std::uint32_t size = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
  std::free(value);
  if (size > 0 && size <= std::numeric_limits<int>::max()) return static_cast<int>(size);
  throw SetupError(fmt::format("{}: the reply is not a valid number of ranks; {}", what, remedy));
}

std::vector<std::vector<std::byte>> Client::exchange(const char* key, std::span<const std::byte> bytes,
                                                     std::chrono::seconds limit) {
  put(key, bytes);
  wait_for_all(limit);
  std::vector<std::vector<std::byte>> all;
  all.reserve(static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank) all.push_back(get(rank, key, limit));
  return all;
}

void Client::put(const char* key, std::span<const std::byte> bytes) {
  const Library& pmix = library();
  std::vector<std::byte> copy{bytes.begin(), bytes.end()};  // PMIx takes a non-const pointer
  pmix_value_t value{};
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo.bytes = reinterpret_cast<char*>(copy.data());
  value.data.bo.size = copy.size();
  require(pmix.put(PMIX_GLOBAL, key, &value), "PMIx_Put", "check that the launcher still runs");
  require(pmix.commit(), "PMIx_Commit", "check that the launcher still runs");
}

void Client::wait_for_all(std::chrono::seconds limit) {
  const pmix_proc_t all = process(job_, PMIX_RANK_WILDCARD);
  const auto done = std::make_shared<Done>();
  // Static, because PMIx uses it until it has replied, which may be after the wait has timed out.
  static const pmix_info_t collect = yes(PMIX_COLLECT_DATA);
  const auto started =
      Done::start(done, [&](void* ticket) { return library().fence_nb(&all, 1, &collect, 1, is_done, ticket); });
  if (started == PMIX_OPERATION_SUCCEEDED) return;  // a job of one rank
  constexpr auto remedy = "check that the launcher and the other ranks still run";
  require(started, "PMIx_Fence", remedy);
  const std::optional<pmix_status_t> status = done->wait(limit);
  if (!status) {
    throw SetupError(fmt::format(
        "rank {} has waited {} s, and not all {} ranks have joined: every rank must join (make a "
        "tonari::Job, or call MPI_Init), or none; if the program needs longer before it does, set "
        "TONARI_JOIN_SECONDS higher; of programs that run one after another in one launch, only the first can join",
        rank_, limit.count(), size_));
  }
  require(*status, fmt::format("waiting for all {} ranks to join (PMIx_Fence)", size_), remedy);
}

std::vector<std::byte> Client::get(int rank, const char* key, std::chrono::seconds limit) const {
  const Library& pmix = library();
  const pmix_proc_t whose = process(job_, static_cast<pmix_rank_t>(rank));
  // Without PMIX_IMMEDIATE: Open MPI 5 collects data from other hosts only on request.
  const pmix_info_t patience = within(limit);
  pmix_value_t* value = nullptr;
  require(pmix.get(&whose, key, &patience, 1, &value), fmt::format("getting {1} of rank {0}", rank, key),
          "every rank must use the same version of tonari, make its tonari::Job and call MPI_Init in the same order, "
          "and be the only program of its launch slot that joins");
  std::vector<std::byte> bytes;
  if (value->type == PMIX_BYTE_OBJECT) {
    const auto* const first = reinterpret_cast<const std::byte*>(value->data.bo.bytes);
    bytes.assign(first, first + value->data.bo.size);
    std::free(value->data.bo.bytes);
  }
  std::free(value);
  return bytes;
}

// Without the handler, PMIx would end the process itself when the server is lost.
void Client::watch_server() noexcept {
  const auto registered = std::make_shared<Registered>();
  // Static, because PMIx uses it until it has replied.
  static pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
  const auto started = Registered::start(registered, [](void* ticket) {
    return library().register_event_handler(&lost, 1, nullptr, 0, lose_server, is_registered, ticket);
  });
  if (started == PMIX_SUCCESS) handler_ = registered->wait(std::chrono::seconds{10}).value_or(no_handler);
}

// Acquire: pairs with lose_server(), which runs on a thread of PMIx. No data but the flag itself are read.
void Client::abort(int exit_status) noexcept { library().abort(exit_status, nullptr, nullptr, 0); }

bool Client::connected() noexcept { return !server_lost.load(std::memory_order_acquire); }

}  // namespace tonari::job::pmix
