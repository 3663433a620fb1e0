#include "share/shared_memory.hpp"

#include "base/error.hpp"
#include "base/thread.hpp"
#include "fabric/wait.hpp"
#include "job/memory.hpp"
#include "job/session.hpp"
#include "job/signals.hpp"
#include "share/agreement.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/logger.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <utility>

namespace tonari::share {

namespace {

WindowOptions options_of_slots() { return {.locks = slots_per_rank, .notifications = 0}; }

// The arguments that must be equal in all ranks that make an array, as error messages name them.
constexpr std::array<std::string_view, 7> facts{
    "the mutexes, flags and counters that they made before it",
    "its bytes",
    "ArrayOptions::placement",
    "ArrayOptions::writes_are_named",
    "ArrayOptions::homes_move",
    "ArrayOptions::updates",
    "where ArrayOptions::cyclic_bytes or home place its pages",
};
using Facts = std::array<std::uint64_t, facts.size()>;
constexpr std::size_t last_number = 5;  // index of the last fact that is a number; the next one is a hash

Facts facts_of(std::uint64_t slots, std::uint64_t bytes, const ArrayOptions& options, std::uint64_t plan) noexcept {
  const auto as_word = [](auto value) { return static_cast<std::uint64_t>(value); };
  return {slots,
          bytes,
          as_word(options.placement),
          as_word(options.writes_are_named),
          as_word(options.homes_move),
          as_word(options.updates),
          plan};
}

// Throws in all ranks if their arguments differ.
void expect_same(const std::array<Extremes, facts.size()>& asked) {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (asked[i].is_one()) continue;
    const auto [least, greatest] = asked[i];
    throw SetupError(fmt::format(
        "making a shared array: the ranks differ in {}{}: sizes, options and the order of collective calls must be the "
        "same in all",
        facts[i], i <= last_number ? fmt::format(", from {} to {}", least, greatest) : ""));
  }
}

}  // namespace

SharedMemory::SharedMemory(Job& job, fabric::Engine& engine, Communicator& ranks, fabric::Requests& requests,
                           fabric::SendQueue& send_queue)
    : engine_(engine),
      ranks_(ranks),
      requests_(requests),
      send_queue_(send_queue),
      rank_(job.rank().value()),
      size_(job.size()),
      spread_(job.hosts() > 1),
      exceptions_(std::uncaught_exceptions()),
      range_(job.session(), ranks_),
      window_(job, slots_per_rank * slot_bytes, options_of_slots()),
      slots_(std::make_shared<SyncSlots>(size_)) {
  if (!spread_) return;
  std::exception_ptr failure;
  try {
    release_.emplace(*this);
    pager::Userfaultfd::Options options;
    options.pages = pager::Userfaultfd::Pages::of_file;
    options.newest = job.session().settings().newest_kernel;
    faults_.emplace(options);
    stop_doorbell_ = FileDescriptor{::eventfd(0, EFD_CLOEXEC)};
    if (!stop_doorbell_) throw_system_error("eventfd", "raise the limit of open files: see ulimit -n");
    start_fault_thread();
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    agree(ranks_, failure, "shared memory");
  } catch (...) {
    stop_fault_thread();
    throw;
  }
  engine_.session().set_paged(range_.bytes().data(), range_.bytes().size());
  if (faults_->reach() == pager::Reach::user_mode) range_.tell_unreached(engine_.session());
}

SharedMemory::~SharedMemory() { stop_fault_thread(); }

void SharedMemory::start_fault_thread() {
  const job::AllSignalsBlocked blocked;
  fault_thread_ = start_thread("the thread of shared memory", [this] { serve_faults(); });
}

void SharedMemory::stop_fault_thread() noexcept {
  if (!fault_thread_.joinable()) return;
  const std::uint64_t one = 1;
  (void)!::write(stop_doorbell_.number(), &one, sizeof one);
  fault_thread_.join();
}

bool SharedMemory::is_alone() const noexcept {
  const job::Arena& arena = engine_.session().arena();
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && arena.block(rank).phase.load(std::memory_order_acquire) < job::Phase::leaving) return false;
  }
  return size_ > 1;
}

bool SharedMemory::unwinds() const noexcept { return std::uncaught_exceptions() > exceptions_; }

std::shared_ptr<detail::Memory> SharedMemory::make(Job& job, std::uint64_t bytes, const ArrayOptions& options) {
  std::exception_ptr failure;
  std::optional<PagePlacement> plan;
  std::byte* start = nullptr;
  try {
    range_.expect_room_for(bytes);  // before a placement function is called for every page
    plan.emplace(bytes, size_, options);
    if (!spread_ && plan->bytes() > job::available_memory_bytes()) {
      throw SetupError(
          fmt::format("{} of shared memory were asked for, but {}: ask for less, or spread the ranks over hosts",
                      job::memory_text(plan->bytes()), job::available_memory_text()));
    }
    start = range_.take(plan->bytes());
  } catch (...) {
    failure = std::current_exception();
  }
  std::shared_ptr<detail::Memory> made;
  try {
    expect_same(
        agree(ranks_, failure, "a shared array", facts_of(slots_->taken(), bytes, options, plan ? plan->digest() : 0)));
    try {
      if (spread_) {
        made = std::make_shared<Array>(*this, arrays_made_++, start, std::move(*plan), options);
      } else {
        made = std::make_shared<MappedArray>(job, *this, start, std::move(*plan));
      }
    } catch (...) {
      failure = std::current_exception();
    }
    agree(ranks_, failure, "a shared array");
  } catch (...) {
    if (start != nullptr && !made) range_.give_back(start);
    throw;
  }
  std::erase_if(made_, [](const MadeOnce& each) { return each.memory.expired(); });
  made_.push_back({made, bytes});
  return made;
}

std::vector<SharedMemory::Made> SharedMemory::made() const {
  std::vector<Made> alive;
  for (const MadeOnce& each : made_) {
    if (auto memory = each.memory.lock()) alive.push_back({std::move(memory), each.bytes});
  }
  return alive;
}

void SharedMemory::add(Array& array) {
  const std::lock_guard no_epoch(epoch_mutex_);
  const std::lock_guard guard(arrays_lock_);
  arrays_.push_back(&array);
}

void SharedMemory::remove(Array& array) noexcept {
  const std::lock_guard no_epoch(epoch_mutex_);
  {
    const std::lock_guard guard(arrays_lock_);
    std::erase(arrays_, &array);
  }
  while (array.users().load(std::memory_order_acquire) != 0)
    ::sched_yield();  // another thread needs a few more instructions
}

// Calls work(array) for all arrays if `some` says that there may be work. A thread that finds none while another thread
// is working waits for that thread.
template <class Work>
Status SharedMemory::work_on_all(std::atomic<bool>& some, Others others, Work work) noexcept {
  // Acquire, in this order: a thread that sees no work left also sees that another thread is working on it.
  if (!some.load(std::memory_order_acquire) && under_way_.load(std::memory_order_acquire) == 0) return Status::ok;
  const std::lock_guard guard(epoch_mutex_);
  under_way_.store(1, std::memory_order_relaxed);  // before `some` is cleared
  some.exchange(false, std::memory_order_acq_rel);
  release_->begin(others);
  for (Array* const array : arrays_) work(*array);  // epoch_mutex_ keeps them from being removed
  const Status status = release_->end();
  for (Array* const array : arrays_)
    array->renew();  // fetches the pages that drop_stale() kept, now that all ranks are told
  under_way_.store(0, std::memory_order_release);  // publishes that all ranks are told
  return status;
}

Status SharedMemory::release(Others others) noexcept {
  if (!spread_) return Status::ok;
  return work_on_all(dirty_, others, [this](Array& array) { array.collect(*release_); });
}

Status SharedMemory::acquire() noexcept {
  if (!spread_) return Status::ok;
  return work_on_all(stale_, Others::may_compute, [this](Array& array) { array.drop_stale(*release_); });
}

Status SharedMemory::barrier() noexcept {
  if (const Status status = release(Others::will_come); status != Status::ok) return status;
  if (const Status status = window_.barrier(); status != Status::ok) return status;
  return acquire();
}

// The fault thread.

void SharedMemory::serve_fault(const pager::Fault& fault) noexcept {
  (void)with_at(reinterpret_cast<const void*>(fault.address), [&](Array& array) { array.answer(fault); });
}

void SharedMemory::serve_faults() noexcept {
  std::array<pollfd, 2> wait{pollfd{faults_->number(), POLLIN, 0}, {stop_doorbell_.number(), POLLIN, 0}};
  for (;;) {
    if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return;
    if ((wait[1].revents & POLLIN) != 0) return;
    // New faults may come while fetches are under way. Once all are done, poll() above waits for the next fault.
    for (;;) {
      for (const pager::Fault& fault : faults_->read()) serve_fault(fault);
      if (fetches_.are_done()) break;
      fetches_.wait_for_one();
      if (fetches_.are_done()) break;
    }
  }
}

}  // namespace tonari::share
