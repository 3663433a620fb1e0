#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string_view>

namespace tonari {

/// Returns a logger that writes lines `tonari[RANK]: text` to standard error, for messages of `level` (a value of
/// TONARI_LOG) and above. A negative rank omits the number: for the command, and for a process that has not joined yet.
///
/// Owns:    nothing outside itself. It is in no registry, so that several jobs in one process stay separate.
/// Threads: any thread may log. Lines stay whole, also between processes, because each line is written by one write().
/// Errors:  a failed write is dropped. Throws only std::bad_alloc.
std::shared_ptr<spdlog::logger> make_logger(int rank, std::string_view level);

}  // namespace tonari
