#pragma once

#include <tonari/job.hpp>

namespace tonari::job {

// Behind the public headers ranks are plain numbers: every function says which ranks it means.

/// The rank of the job at `position` of the group.
inline int rank_at(const Group& group, int position) noexcept { return group.at(Rank{position}).value(); }

/// The position in the group of a rank of the job; -1 if it is not a member.
inline int position_in(const Group& group, int job_rank) noexcept {
  const auto position = group.position(JobRank{job_rank});
  return position ? position->value() : -1;
}

}  // namespace tonari::job
