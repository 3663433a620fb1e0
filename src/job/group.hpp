#pragma once

#include <tonari/job.hpp>

namespace tonari::job {

// Inside the library ranks are plain integers; each function's name or comment says whether it means ranks of the job
// or of a communicator.

/// Returns the job rank of the member at `position` of the group.
inline int rank_at(const Group& group, int position) noexcept { return group.at(Rank{position}).value(); }

/// Returns the position in the group of a job rank; -1 if it is not a member.
inline int position_in(const Group& group, int job_rank) noexcept {
  const auto position = group.position(JobRank{job_rank});
  return position ? position->value() : -1;
}

}  // namespace tonari::job
