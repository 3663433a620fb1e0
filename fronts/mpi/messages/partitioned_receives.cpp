#include "functions.hpp"
#include "message/requests.hpp"
#include "mpi/messages/errors.hpp"
#include "mpi/messages/partitioned.hpp"
#include "mpi/messages/peers.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/status.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace tonari::mpi {

namespace {

using message::Requests;

class PartitionedReceive final : public Conduct {
 public:
  PartitionedReceive(const Partitions& data, int source, int tag)
      : data_(data),
        source_(source),
        tag_(tag),
        packed_(data.all.is_plain() ? nullptr : new std::byte[data.all.bytes()]),
        room_(packed_ == nullptr ? data.all.write() : std::span(packed_.get(), data.all.bytes())) {}

  void await_plan(Comm& comm) {
    comm_ = &comm;
    if (source_ == MPI_PROC_NULL) return;
    awaiting_plan_ = start_receive(comm, std::as_writable_bytes(std::span(&plan_, 1)), job_rank_of(comm, source_), tag_,
                                   plans_id(comm));
  }

  void start(Request& /*request*/) override {
    const std::lock_guard guard(mutex_);
    is_started_ = true;
    is_posted_ = false;
    try_post();
  }

  Next go_on(Request& request) override {
    const std::lock_guard guard(mutex_);
    if (source_ != MPI_PROC_NULL) {
      if (!try_post()) return Next::later;
      while (first_ < receives_.size() && Requests::advance(receives_[first_])) ++first_;
      if (first_ < receives_.size()) return Next::later;
    }
    is_started_ = false;
    request.result = result();
    if (packed_ != nullptr) data_.all.unpack(room_.first(std::min(room_.size(), request.result.value.bytes)));
    return Next::complete;
  }

  void block(Request& /*request*/) override {
    {
      const std::lock_guard guard(mutex_);
      is_awaited_ = true;
    }
    (void)(is_posted_ ? wait_all(receives_) : awaiting_plan_.wait().status);
    const std::lock_guard guard(mutex_);
    is_awaited_ = false;
  }

  void cancel(Request& /*request*/) override { (void)awaiting_plan_.cancel(); }
  bool may_be_destroyed() override { return Requests::advance(awaiting_plan_); }

  // Any thread.
  bool has_arrived(int partition) {
    data_.check(partition);
    const std::lock_guard guard(mutex_);
    if (!is_started_ || source_ == MPI_PROC_NULL) return true;
    if (is_awaited_ || !try_post()) return false;
    return packed_ == nullptr && look(partition);  // data with gaps are unpacked at the end
  }

 private:
  // The functions below are called under the lock.

  // Posts the receives of this round, if the plan has arrived. Returns true if they are posted.
  bool try_post() {
    if (is_posted_) return true;
    if (!Requests::advance(awaiting_plan_)) return false;
    first_ = 0;
    receives_.clear();
    receives_.reserve(plan_.partitions);
    for (std::uint32_t i = 0; i < plan_.partitions; ++i) {
      const std::size_t offset = std::min<std::size_t>(i * plan_.partition_bytes, room_.size());
      const std::size_t bytes = std::min<std::size_t>(plan_.partition_bytes, room_.size() - offset);
      receives_.push_back(start_receive(*comm_, room_.subspan(offset, bytes), job_rank_of(*comm_, source_),
                                        static_cast<int>(plan_.first_tag + i), partitions_id(*comm_)));
    }
    is_posted_ = true;
    return true;
  }

  // Returns true if all partitions of the sender that touch this one are here.
  bool look(int partition) {
    const std::size_t bytes = data_.bytes();
    if (bytes == 0 || plan_.partition_bytes == 0) return true;
    const std::size_t begin = static_cast<std::size_t>(partition) * bytes;
    const std::size_t end = std::min<std::size_t>((begin + bytes - 1) / plan_.partition_bytes + 1, receives_.size());
    for (std::size_t i = begin / plan_.partition_bytes; i < end; ++i) {
      if (!Requests::advance(receives_[i])) return false;
    }
    return true;
  }

  Result<Envelope> result() {
    Result<Envelope> all{Status::ok, envelope_of_nobody()};
    if (source_ == MPI_PROC_NULL) return all;
    all.value = {Rank{source_}, Tag{tag_}, plan_.partitions * plan_.partition_bytes};
    for (tonari::Request& each : receives_) {
      const Status status = each.wait().status;
      if (all.status == Status::ok) all.status = status;
    }
    return all;
  }

  Partitions data_;
  int source_;
  int tag_;
  Comm* comm_ = nullptr;  // the request refers to it
  Plan plan_{};
  tonari::Request awaiting_plan_;
  std::unique_ptr<std::byte[]> packed_;  // if the data have gaps
  std::span<std::byte> room_;            // memory for the data without gaps
  std::mutex mutex_;
  std::vector<tonari::Request> receives_;  // one per partition of the sender
  std::size_t first_ = 0;                  // all receives before it are complete
  bool is_started_ = false;
  bool is_posted_ = false;
  bool is_awaited_ = false;  // a thread waits for the operations, and no other may touch them
};

PartitionedReceive& receive_of(MPI_Request request) {
  return static_cast<PartitionedReceive&>(conduct_of(request, Request::Kind::partitioned_receive, "receive"));
}

}  // namespace

void precv_init(void* buf, int partitions, MPI_Count count, Datatype& datatype, int source, int tag, Comm& comm, Info*,
                MPI_Request* request) {
  auto conduct = std::make_unique<PartitionedReceive>(make_partitions(buf, partitions, count, datatype), source, tag);
  auto made = std::make_unique<Request>(Request::Kind::partitioned_receive, &comm);
  made->buffer_bytes = static_cast<std::size_t>(count) * datatype.size * static_cast<std::size_t>(partitions);
  conduct->await_plan(comm);
  made->conduct = std::move(conduct);
  made->make_persistent();
  *request = made.release();
}

void parrived(MPI_Request request, int partition, int* flag) {
  PartitionedReceive& receive = receive_of(request);
  *flag = receive.has_arrived(partition) ? 1 : 0;
  if (*flag != 0) return;
  make_progress();
  *flag = receive.has_arrived(partition) ? 1 : 0;
}

}  // namespace tonari::mpi
