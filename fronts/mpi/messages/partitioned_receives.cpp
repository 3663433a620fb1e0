#include "functions.hpp"
#include "message/message_runtime.hpp"
#include "message/requests.hpp"
#include "message/schedule.hpp"
#include "mpi/messages/errors.hpp"
#include "mpi/messages/partitioned.hpp"
#include "mpi/messages/peers.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/status.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace tonari::mpi {

namespace {

using message::Context;
using message::Operation;
using message::Requests;
using message::Schedule;

/// The receives of one request: first of the sender's plan, then in each round of the sender's partitions.
///
/// The plan is received as a collective of two ranks is. So the thread that has made the request, or
/// has looked at it last, posts the receives of the first round in any call of the library. Otherwise
/// two ranks that wait for their sends first would block each other.
class Receives {
 public:
  Receives(Comm& comm, std::span<std::byte> room, int source, int tag) : comm_(comm), room_(room), source_(source) {
    Context& context = *comm.context;
    const JobRank self{job::rank_at(context.group(), context.rank())};
    const JobRank peer{job_rank_of(comm, source)};
    const std::vector<JobRank> both = peer == self ? std::vector{self} : std::vector{peer, self};
    pair_.emplace(context.runtime(), tonari::Group(both), Context::Provisional{plans_id(comm), tag});
    Operation* const operation = context.runtime().make_started(Operation::Kind::collective, *pair_);
    awaiting_plan_ = Requests::started(operation);
    operation->schedule.reset(new Schedule(*pair_, job::Wait::receive, static_cast<std::uint32_t>(tag)));
    operation->schedule->receive(std::as_writable_bytes(std::span(&plan_, 1)), 0);
    operation->schedule->at_end([this](Status status) noexcept { return accept_plan(status); });
    (void)Requests::advance(awaiting_plan_);
  }
  Receives(Receives&&) = delete;

  void start_round() {
    const std::lock_guard guard(posting_);
    is_round_started_ = true;
    is_posted_.store(false, std::memory_order_relaxed);
    post_if_due();
  }
  /// Returns true if the receives of this round are posted.
  bool are_posted() { return is_posted_.load(std::memory_order_acquire) || look_for_plan(); }
  void wait_for_plan() noexcept { (void)awaiting_plan_.wait(); }
  void give_up_plan() noexcept {
    if (!awaiting_plan_.complete()) Requests::give_up(awaiting_plan_);
  }
  [[nodiscard]] bool has_plan() noexcept { return Requests::advance(awaiting_plan_); }

  // Once they are posted:
  [[nodiscard]] std::vector<tonari::Request>& all() noexcept { return receives_; }
  [[nodiscard]] std::size_t partition_bytes() const noexcept { return plan_.partition_bytes; }
  /// Ends a round whose receives are complete.
  Status end_round() noexcept {
    is_round_started_ = false;
    Status status = status_;
    for (tonari::Request& each : receives_) {
      const Status one = each.wait().status;
      if (status == Status::ok) status = one;
    }
    return status;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return plan_.partitions * plan_.partition_bytes; }

 private:
  bool look_for_plan() { return has_plan() && is_posted_.load(std::memory_order_acquire); }

  // Called by the thread that owns the operation, which may hold no lock of this object but the request's.
  Status accept_plan(Status status) noexcept {
    const std::lock_guard guard(posting_);
    std::uint64_t bytes = 0;
    const bool is_sane = plan_.first_tag <= 0x7fffffff && plan_.partitions <= 0x7fffffff - plan_.first_tag &&
                         !__builtin_mul_overflow(plan_.partition_bytes, plan_.partitions, &bytes);
    status_ = status == Status::ok && !is_sane ? Status::invalid : status;
    if (status_ != Status::ok) plan_ = {};
    is_plan_accepted_ = true;
    if (is_round_started_) post_if_due();
    return status;
  }

  // Called under the lock.
  void post_if_due() noexcept {
    if (!is_plan_accepted_) return;
    receives_.clear();
    try {
      receives_.reserve(plan_.partitions);
      for (std::uint32_t i = 0; i < plan_.partitions; ++i) {
        const std::size_t offset = std::min<std::size_t>(i * plan_.partition_bytes, room_.size());
        const std::size_t bytes = std::min<std::size_t>(plan_.partition_bytes, room_.size() - offset);
        receives_.push_back(start_receive(comm_, room_.subspan(offset, bytes), job_rank_of(comm_, source_),
                                          static_cast<int>(plan_.first_tag + i), partitions_id(comm_)));
      }
    } catch (const std::bad_alloc&) {
      status_ = Status::no_memory;
    }
    is_posted_.store(true, std::memory_order_release);  // after receives_: pairs with are_posted()
  }

  Comm& comm_;  // the request refers to it
  std::span<std::byte> room_;
  int source_;
  std::optional<Context> pair_;
  Plan plan_{};
  tonari::Request awaiting_plan_;
  std::mutex posting_;  // protects the posting of receives
  bool is_round_started_ = false;
  bool is_plan_accepted_ = false;
  Status status_ = Status::ok;
  std::vector<tonari::Request> receives_;  // one per partition of the sender
  std::atomic<bool> is_posted_{false};     // in this round
};

class PartitionedReceive final : public Conduct {
 public:
  PartitionedReceive(Comm& comm, const Partitions& data, int source, int tag)
      : data_(data),
        source_(source),
        tag_(tag),
        packed_(data.all.is_plain() ? nullptr : new std::byte[data.all.bytes()]),
        room_(packed_ == nullptr ? data.all.write() : std::span(packed_.get(), data.all.bytes())) {
    if (source != MPI_PROC_NULL) receives_.emplace(comm, room_, source, tag);
  }

  void start(Request& /*request*/) override {
    const std::lock_guard guard(mutex_);
    is_started_ = true;
    first_ = 0;
    if (receives_) receives_->start_round();
  }

  Next go_on(Request& request) override {
    const std::lock_guard guard(mutex_);
    if (receives_) {
      if (!receives_->are_posted()) return Next::later;
      auto& all = receives_->all();
      while (first_ < all.size() && Requests::advance(all[first_])) ++first_;
      if (first_ < all.size()) return Next::later;
    }
    is_started_ = false;
    request.result = result();
    if (packed_ != nullptr) data_.all.unpack(room_.first(std::min(room_.size(), request.result.value.bytes)));
    return Next::complete;
  }

  void block(Request& /*request*/) override {
    set_awaited(true);
    if (receives_->are_posted()) {
      (void)wait_all(receives_->all());
    } else {
      receives_->wait_for_plan();
    }
    set_awaited(false);
  }

  void cancel(Request& /*request*/) override {
    if (receives_) receives_->give_up_plan();
  }
  bool may_be_destroyed() override { return !receives_ || receives_->has_plan(); }

  // Any thread.
  bool has_arrived(int partition) {
    data_.check(partition);
    const std::lock_guard guard(mutex_);
    if (!is_started_ || !receives_) return true;
    if (is_awaited_ || !receives_->are_posted()) return false;
    return packed_ == nullptr && look(partition);  // data with gaps are unpacked at the end
  }

 private:
  void set_awaited(bool is_awaited) {
    const std::lock_guard guard(mutex_);
    is_awaited_ = is_awaited;
  }

  // Called under the lock. Returns true if all partitions of the sender that touch this one are here.
  bool look(int partition) {
    auto& all = receives_->all();
    const bool has_bytes = data_.bytes() != 0 && receives_->partition_bytes() != 0;
    // Without data they are compared as if both sides had as many bytes as partitions of the other.
    const std::size_t bytes = has_bytes ? data_.bytes() : all.size();
    const std::size_t sent_bytes = has_bytes ? receives_->partition_bytes() : static_cast<std::size_t>(data_.count);
    const std::size_t begin = static_cast<std::size_t>(partition) * bytes;
    const std::size_t end = std::min((begin + bytes - 1) / sent_bytes + 1, all.size());
    for (std::size_t i = begin / sent_bytes; i < end; ++i) {
      if (!Requests::advance(all[i])) return false;
    }
    return true;
  }

  Result<Envelope> result() noexcept {
    if (!receives_) return {Status::ok, envelope_of_nobody()};
    const Status status = receives_->end_round();
    return {status, {Rank{source_}, Tag{tag_}, receives_->bytes()}};
  }

  Partitions data_;
  int source_;
  int tag_;
  std::unique_ptr<std::byte[]> packed_;  // if the data have gaps
  std::span<std::byte> room_;            // memory for the data without gaps
  std::optional<Receives> receives_;     // empty if the source is MPI_PROC_NULL
  std::mutex mutex_;
  std::size_t first_ = 0;  // all receives before it are complete
  bool is_started_ = false;
  bool is_awaited_ = false;  // a thread waits for the operations, and no other may touch them
};

PartitionedReceive& receive_of(MPI_Request request) {
  return static_cast<PartitionedReceive&>(conduct_of(request, Request::Kind::partitioned_receive, "receive"));
}

}  // namespace

void precv_init(void* buf, int partitions, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, Info*,
                MPI_Request* request) {
  const Partitions data = make_partitions(buf, partitions, count, datatype);
  auto made = std::make_unique<Request>(Request::Kind::partitioned_receive, &comm);
  made->buffer = data.all.place();
  made->conduct = std::make_unique<PartitionedReceive>(comm, data, source, tag);
  made->make_persistent();
  *request = made.release();
}

void parrived(MPI_Request request, int partition, int* flag) {
  PartitionedReceive& receive = receive_of(request);
  *flag = receive.has_arrived(partition) ? 1 : 0;
  if (*flag != 0) return;
  make_progress();
  *flag = receive.has_arrived(partition) ? 1 : 0;
  if (*flag == 0) let_others_run();
}

}  // namespace tonari::mpi
