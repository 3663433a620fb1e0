#pragma once

#include "mpi.h"

#include <tonari/request.hpp>

#include <cstring>

// The part of MPI_Status that programs do not see has a number of bytes, and whether the operation
// was cancelled. A program's status may have the alignment of an int only.
namespace tonari::mpi {

inline constexpr int status_cancelled = 0;  // index in MPI_internal; the bytes are in the next two

/// Length of the message in bytes.
inline MPI_Count bytes_of(const MPI_Status& status) noexcept {
  MPI_Count bytes = 0;
  std::memcpy(&bytes, &status.MPI_internal[status_cancelled + 1], sizeof bytes);
  return bytes;
}
inline void set_bytes(MPI_Status& status, MPI_Count bytes) noexcept {
  std::memcpy(&status.MPI_internal[status_cancelled + 1], &bytes, sizeof bytes);
}
inline bool is_cancelled(const MPI_Status& status) noexcept { return status.MPI_internal[status_cancelled] != 0; }
inline void set_cancelled(MPI_Status& status, bool is_cancelled) noexcept {
  status.MPI_internal[status_cancelled] = is_cancelled ? 1 : 0;
}

/// Writes all but MPI_ERROR, which only functions that complete several requests write.
inline void write_status(MPI_Status& status, int source, int tag, std::size_t bytes, bool is_cancelled) noexcept {
  status.MPI_SOURCE = source;
  status.MPI_TAG = tag;
  set_bytes(status, static_cast<MPI_Count>(bytes));
  set_cancelled(status, is_cancelled);
}
/// The same from an envelope of the runtime, whose wildcards have other numbers. Does nothing for MPI_STATUS_IGNORE.
inline void write_status(MPI_Status* status, const Envelope& envelope) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  const int tag = envelope.tag < 0 ? int{MPI_ANY_TAG} : envelope.tag.value();
  write_status(*status, envelope.source.value(), tag, envelope.bytes, false);
}
/// Writes the standard's empty status.
inline void write_empty_status(MPI_Status* status) noexcept {
  if (status == MPI_STATUS_IGNORE) return;
  write_status(*status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, false);
  status->MPI_ERROR = MPI_SUCCESS;
}

/// The envelope of a message from MPI_PROC_NULL.
inline Envelope envelope_of_nobody() noexcept { return {Rank{int{MPI_PROC_NULL}}, Tag::any, 0}; }

}  // namespace tonari::mpi
