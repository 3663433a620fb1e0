#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <string_view>

namespace tonari {

/// A logger that writes lines `tonari[RANK]: text` to standard error, from `level` on (a value of TONARI_LOG).
/// A negative rank leaves the number out: the command, or a process that has not joined yet.
///
/// Owns:    nothing outside itself: it is in no registry, so that several jobs in a process stay apart.
/// Threads: any thread may log; lines stay whole, also between processes (one write a line).
/// Errors:  a failed write is dropped. Throws std::bad_alloc only.
std::shared_ptr<spdlog::logger> make_logger(int rank, std::string_view level);

}  // namespace tonari
