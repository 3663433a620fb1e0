#pragma once

#include <tonari/job.hpp>
#include <tonari/status.hpp>

#include <cstdint>
#include <optional>
#include <string>

// All shared arrays of a job in a file, from which another run goes on. docs/modules/checkpoint.md draws the file.
//
//   std::uint64_t step = share::load(job, "heat.ckpt").value_or(0);
//   for (; step < steps; ++step) {
//     if (step % 100 == 0) share::save(job, "heat.ckpt", step);
//     ...
//   }
//
// File:    one for all ranks, in a file system that all their hosts share. It has what the arrays contain, and nothing
//          else: no guarded data, mutex, flag or counter, and nothing of a rank's own. Whoever loads it has the same
//          byte order and the same types.
// Threads: none of a rank uses shared memory during these calls. They are collective, with the same arguments.
// Errors:  SetupError in all ranks, with the file, the cause and the remedy; the job may go on. Where a rank has died,
//          all further calls throw.
namespace tonari::share {

/// Collective. Meets as barrier() does, and writes all shared arrays that there are, all ranks at once, with checksums.
/// `step` is the program's own, for load(). The file replaces what was at `path` only when all of it is on the disk:
/// whatever happens before, a crash at any moment or a full disk, leaves the previous one. What a crash leaves beside
/// it (`path`.tmp-...), the next save() there removes.
void save(Job& job, const std::string& path, std::uint64_t step = 0);

/// Collective. Fills the shared arrays that there are with what was saved, and meets as barrier() does. Answers the
/// step; or nothing, if there is no such file. The program must have made the arrays as it had when they were saved: as
/// many, in the same order, of the same sizes; the number of ranks, where they are and the arrays' options may differ.
/// The whole file is checked first: what is torn, cut short or of other arrays is refused, and the arrays are as they
/// were. Only where the file can be read no longer after that are they undefined.
[[nodiscard]] std::optional<std::uint64_t> load(Job& job, const std::string& path);

}  // namespace tonari::share
