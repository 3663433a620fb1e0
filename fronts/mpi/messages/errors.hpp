#pragma once

#include "mpi/request.hpp"

#include <cstddef>
#include <span>
#include <string>

// The texts of errors that messages meet, out of the way of messages without errors.
namespace tonari::mpi {

// Buffers are as Buffer::place() returns them.

/// Says why a send failed, and what to do.
[[gnu::cold]] std::string text_of_send(Status status, int dest, int tag, std::span<const std::byte> buffer);
/// The same for a receive.
[[gnu::cold]] std::string text_of_receive(const Result<Envelope>& result, std::span<const std::byte> buffer);
/// Says whether the buffer of a send is wrong, or that of its receiver.
[[gnu::cold]] std::string text_of_bad_send_buffer(std::span<const std::byte> buffer);

[[noreturn, gnu::cold]] void fail_send(Status status, int dest, int tag, std::span<const std::byte> buffer);
/// The error handler of `comm` hears of it.
[[noreturn, gnu::cold]] void fail_receive(Comm& comm, const Result<Envelope>& result,
                                          std::span<const std::byte> buffer);

}  // namespace tonari::mpi
