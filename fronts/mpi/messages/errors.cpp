#include "mpi/messages/errors.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace tonari::mpi {

namespace {

// Returns whether the process may read, or also write, all bytes. They may be wrong all the same by the time of the
// call, but this is only for the text of an error.
bool is_accessible(std::span<const std::byte> bytes, bool to_write) {
  std::uintptr_t next = number_of(bytes.data());
  const std::uintptr_t end = next + bytes.size();
  std::ifstream maps("/proc/self/maps");
  for (std::string line; next < end && std::getline(maps, line);) {  // 7f0000000000-7f0000021000 rw-p ...
    char* rest = nullptr;
    const std::uintptr_t from = std::strtoull(line.c_str(), &rest, 16);
    const std::uintptr_t to = std::strtoull(rest + 1, &rest, 16);
    const std::string_view rights(rest + 1, 2);
    if (from <= next && next < to && rights[0] == 'r' && (!to_write || rights[1] == 'w')) next = to;
  }
  return next >= end;
}

// Says which buffer of a message is no memory: that of this rank, or of the other one.
std::string text_of_bad_buffer(std::span<const std::byte> buffer, bool is_receive, std::string_view other) {
  const char* const here = is_receive ? "written" : "read";
  const char* const there = is_receive ? "read" : "written";
  if (buffer.data() == nullptr) {
    return fmt::format(
        "the buffer of this rank is not memory that may be {}, or that of {} is not memory that may be {}", here, other,
        there);
  }
  if (!is_accessible(buffer, is_receive)) {
    return fmt::format("the buffer of {} bytes at {} is not memory that may be {}: check the address and the count",
                       buffer.size(), static_cast<const void*>(buffer.data()), here);
  }
  return fmt::format(
      "the buffer of {} is not memory that may be {}: check its address and count there; the buffer of "
      "this rank is right",
      other, there);
}

}  // namespace

std::string text_of_bad_send_buffer(std::span<const std::byte> buffer) {
  return text_of_bad_buffer(buffer, false, "the receiver");
}

std::string text_of_send(Status status, int dest, int tag, std::span<const std::byte> buffer) {
  const std::string why = status == Status::bad_address
                              ? text_of_bad_buffer(buffer, false, fmt::format("the receiver, rank {},", dest))
                              : explanation_of(status);
  return fmt::format("sending to rank {} with tag {}: {}", dest, tag, why);
}

std::string text_of_receive(const Result<Envelope>& result, std::span<const std::byte> buffer) {
  const Envelope& envelope = result.value;
  const int source = envelope.source.value();
  if (result.status == Status::bad_address) {
    return fmt::format("receiving {} bytes from rank {} with tag {}: {}", envelope.bytes, source, envelope.tag.value(),
                       text_of_bad_buffer(buffer, true, fmt::format("the sender, rank {},", source)));
  }
  if (result.status != Status::truncated) return "receiving: " + explanation_of(result.status);
  return fmt::format(
      "a message of {} bytes from rank {} with tag {} is longer than the buffer of {} bytes, which has its first part: "
      "receive it with a larger count, or ask for its length first with MPI_Probe",
      envelope.bytes, source, envelope.tag.value(), buffer.size());
}

void fail_send(Status status, int dest, int tag, std::span<const std::byte> buffer) {
  throw Failure(class_of(status), text_of_send(status, dest, tag, buffer));
}

void fail_receive(Comm& comm, const Result<Envelope>& result, std::span<const std::byte> buffer) {
  throw CommFailure(class_of(result.status), text_of_receive(result, buffer), Ref<Comm>(&comm));
}

}  // namespace tonari::mpi
