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
// File:    one for all ranks, in a file system that all their hosts share. Each rank opens it by `path`, which may be
//          relative to its own working directory. The file holds the contents of the arrays and nothing else: no
//          guarded data, mutex, flag or counter, and no private memory. The loading program has the same byte order
//          and the same types.
// Threads: no thread uses shared memory during these calls. They are collective, with the same arguments.
// Errors:  SetupError in all ranks, with the file, the cause and the remedy; the job may go on. After a rank has died,
//          all further calls throw.
namespace tonari::share {

/// Collective. Synchronises as barrier() does, and writes all shared arrays that exist, all ranks at the same time,
/// with checksums. `step` is a number of the program, for load(). The file replaces the file at `path` only when all of
/// it is on the disk: after a crash at any moment, or with a full disk, the previous file is still there. The next
/// save() removes a temporary file (`path`.tmp-...) that a crash left.
void save(Job& job, const std::string& path, std::uint64_t step = 0);

/// Collective. Fills the shared arrays that exist with the saved contents, and synchronises as barrier() does. Returns
/// the step; or nothing, if there is no such file. The program must have created the same number of arrays, in the same
/// order and of the same sizes, as when they were saved; the ranks, their hosts and the arrays' options may differ. The
/// whole file is checked first: a file that is damaged, cut short or of other arrays is refused, and the arrays stay as
/// they were. They are undefined only if the file becomes unreadable after that check.
[[nodiscard]] std::optional<std::uint64_t> load(Job& job, const std::string& path);

}  // namespace tonari::share
