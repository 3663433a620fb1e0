#pragma once

#include "mpi/request.hpp"

#include <string>

// The texts of errors that messages meet, out of the way of messages without errors.
namespace tonari::mpi {

/// Says why a send failed, and what to do.
[[gnu::cold]] std::string text_of_send(Status status, int dest, int tag);
/// The same for a receive into `buffer_bytes`.
[[gnu::cold]] std::string text_of_receive(const Result<Envelope>& result, std::size_t buffer_bytes);

[[noreturn, gnu::cold]] void fail_send(Status status, int dest, int tag);
/// The error handler of `comm` hears of it.
[[noreturn, gnu::cold]] void fail_receive(Comm& comm, const Result<Envelope>& result, std::size_t buffer_bytes);

}  // namespace tonari::mpi
