#include <tonari/share.hpp>
#include <tonari/shared_reduce.hpp>

#include "job/session.hpp"
#include "share/share_runtime.hpp"
#include "share/shared_memory.hpp"

#include <spdlog/logger.h>

#include <exception>

namespace tonari::share {

namespace {

// Calls a collective function. If there is no shared memory yet, the first call makes it, in all ranks.
Status with_sharing(Job& job, Status (SharedMemory::*call)()) noexcept {
  try {
    return (ShareRuntime::of(job.session()).sharing(job).*call)();
  } catch (const std::exception& failure) {
    job.session().log().error("{}", failure.what());
    return job.session().somebody_died() ? Status::peer_gone : Status::no_memory;
  }
}

}  // namespace

Status barrier(Job& job) noexcept { return with_sharing(job, &SharedMemory::barrier); }

Status release(Job& job, Others others) noexcept {
  SharedMemory* const sharing = ShareRuntime::of(job.session()).sharing();
  return sharing != nullptr ? sharing->release(others) : Status::ok;
}

Status acquire(Job& job) noexcept {
  SharedMemory* const sharing = ShareRuntime::of(job.session()).sharing();
  return sharing != nullptr ? sharing->acquire() : Status::ok;
}

}  // namespace tonari::share

namespace tonari {

using share::ShareRuntime;

std::shared_ptr<detail::Memory> detail::make_memory(Job& job, std::uint64_t bytes, const ArrayOptions& options) {
  return ShareRuntime::of(job.session()).sharing(job).make(job, bytes, options);
}

Communicator& detail::ranks_of(Job& job) { return ShareRuntime::of(job.session()).sharing(job).ranks(); }

}  // namespace tonari
