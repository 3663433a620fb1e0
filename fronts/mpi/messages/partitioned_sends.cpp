#include "functions.hpp"
#include "message/message_runtime.hpp"
#include "message/requests.hpp"
#include "mpi/messages/errors.hpp"
#include "mpi/messages/partitioned.hpp"
#include "mpi/messages/peers.hpp"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <vector>

namespace tonari::mpi {

namespace {

using message::Requests;

// Returns the first of as many tags that no other request of this process has. A tag comes back after 2^31 others.
std::uint32_t draw_tags(int count) noexcept {
  constexpr std::uint32_t tags = 0x7fffffff;
  static std::atomic<std::uint32_t> drawn{0};  // relaxed: the numbers only have to be unique
  for (;;) {
    const std::uint32_t first = drawn.fetch_add(static_cast<std::uint32_t>(count), std::memory_order_relaxed) & tags;
    if (first <= tags - static_cast<std::uint32_t>(count)) return first;
  }
}

class PartitionedSend final : public Conduct {
 public:
  PartitionedSend(const Partitions& data, int dest, int tag)
      : data_(data),
        dest_(dest),
        tag_(tag),
        plan_{draw_tags(data.count), static_cast<std::uint32_t>(data.count), data.bytes()},
        packed_(data.all.is_plain() ? nullptr : new std::byte[data.all.bytes()]),
        sends_(static_cast<std::size_t>(data.count)),
        is_ready_(static_cast<std::size_t>(data.count)) {}

  void announce(Comm& comm) {
    comm_ = &comm;
    if (dest_ == MPI_PROC_NULL) return;
    announcing_ = start_send(comm, std::as_bytes(std::span(&plan_, 1)), job_rank_of(comm, dest_), tag_, plans_id(comm),
                             SendMode::standard);
  }

  void start(Request& request) override {
    next_ = 0;
    ready_.store(0, std::memory_order_relaxed);
    for (auto& each : is_ready_) each.store(false, std::memory_order_relaxed);
    request.running = Requests::foreign(comm_->context->runtime(), all_ready_);
    is_started_.store(true, std::memory_order_release);
  }

  // Waits until all partitions are ready, then for their sends.
  Next go_on(Request& request) override {
    const Status status = Requests::result(request.running).status;
    if (status_ == Status::ok) status_ = status;
    if (next_ < sends_.size()) {
      request.running = std::move(sends_[next_++]);
      return Next::wait;
    }
    is_started_.store(false, std::memory_order_relaxed);
    const Status all = std::exchange(status_, Status::ok);
    if (all != Status::ok) fail_send(all, dest_, tag_, {});
    return Next::complete;
  }

  bool may_be_destroyed() override { return Requests::advance(announcing_); }

  // Any thread, for different partitions at once.
  void ready(int partition) {
    data_.check(partition);
    const auto index = static_cast<std::size_t>(partition);
    if (!is_started_.load(std::memory_order_acquire)) fail("the request is inactive: call MPI_Start first");
    if (is_ready_[index].exchange(true, std::memory_order_relaxed)) fail("the partition was marked ready before");
    if (dest_ != MPI_PROC_NULL) sends_[index] = start(index);
    // Acquire and release: the thread that waits sees all of sends_.
    if (ready_.fetch_add(1, std::memory_order_acq_rel) + 1 == data_.count) {
      Requests::complete_foreign(*all_ready_, Status::ok);
    }
  }

 private:
  tonari::Request start(std::size_t index) {
    const std::size_t bytes = data_.bytes();
    std::span<const std::byte> part = data_.all.read().subspan(index * bytes, bytes);
    if (packed_ != nullptr) {
      part = {packed_.get() + index * bytes, bytes};
      data_.part(static_cast<int>(index)).pack(packed_.get() + index * bytes);
    }
    return start_send(*comm_, part, job_rank_of(*comm_, dest_), static_cast<int>(plan_.first_tag + index),
                      partitions_id(*comm_), SendMode::standard);
  }
  [[noreturn]] void fail(const char* why) const { throw CommFailure(MPI_ERR_REQUEST, why, Ref<Comm>(comm_)); }

  Partitions data_;
  int dest_;
  int tag_;
  Plan plan_;
  Comm* comm_ = nullptr;  // the request refers to it
  tonari::Request announcing_;
  std::unique_ptr<std::byte[]> packed_;  // the data, if they have gaps
  std::vector<tonari::Request> sends_;   // each by the thread that marks its partition ready
  std::vector<std::atomic<bool>> is_ready_;
  std::atomic<int> ready_{0};                // number of partitions
  message::Operation* all_ready_ = nullptr;  // complete when all are, in this round
  std::atomic<bool> is_started_{false};
  std::size_t next_ = 0;  // the next send to wait for
  Status status_ = Status::ok;
};

PartitionedSend& send_of(MPI_Request request) {
  return static_cast<PartitionedSend&>(conduct_of(request, Request::Kind::partitioned_send, "send"));
}

}  // namespace

void psend_init(const void* buf, int partitions, MPI_Count count, Datatype& datatype, int dest, int tag, Comm& comm,
                Info*, MPI_Request* request) {
  auto conduct = std::make_unique<PartitionedSend>(make_partitions(buf, partitions, count, datatype), dest, tag);
  auto made = std::make_unique<Request>(Request::Kind::partitioned_send, &comm);
  conduct->announce(comm);
  made->conduct = std::move(conduct);
  made->make_persistent();
  *request = made.release();
}

void pready(int partition, MPI_Request request) { send_of(request).ready(partition); }

void pready_range(int partition_low, int partition_high, MPI_Request request) {
  PartitionedSend& send = send_of(request);
  for (int i = partition_low; i <= partition_high; ++i) send.ready(i);
}

void pready_list(int length, const int* array_of_partitions, MPI_Request request) {
  PartitionedSend& send = send_of(request);
  for (int i = 0; i < length; ++i) send.ready(array_of_partitions[i]);
}

}  // namespace tonari::mpi
