#pragma once

#include "check.hpp"

#include <cstring>
#include <vector>

// For tests of messages.
namespace test {

/// Length of the message in bytes.
inline MPI_Count length(const MPI_Status& status) {
  MPI_Count bytes = -1;
  MPI_Get_count_c(&status, MPI_BYTE, &bytes);
  return bytes;
}

inline bool is_cancelled(const MPI_Status& status) {
  int flag = -1;
  MPI_Test_cancelled(&status, &flag);
  return flag != 0;
}

inline void check_empty(const MPI_Status& status) {
  CHECK_EQUAL(status.MPI_SOURCE, int{MPI_ANY_SOURCE});
  CHECK_EQUAL(status.MPI_TAG, int{MPI_ANY_TAG});
  CHECK_EQUAL(status.MPI_ERROR, int{MPI_SUCCESS});
  CHECK_EQUAL(length(status), 0);
  CHECK(!is_cancelled(status));
}

inline void check_nobody(const MPI_Status& status) {
  CHECK_EQUAL(status.MPI_SOURCE, int{MPI_PROC_NULL});
  CHECK_EQUAL(status.MPI_TAG, int{MPI_ANY_TAG});
  CHECK_EQUAL(length(status), 0);
}

inline void check_status(const MPI_Status& status, int source, int tag, MPI_Count bytes) {
  CHECK_EQUAL(status.MPI_SOURCE, source);
  CHECK_EQUAL(status.MPI_TAG, tag);
  CHECK_EQUAL(length(status), bytes);
  CHECK(!is_cancelled(status));
}

/// Bytes that differ from the bytes of other messages.
inline std::vector<unsigned char> payload(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<unsigned char>((i * 31 + i / 251 + seed) % 253);
  return made;
}

/// The right and the left neighbour on a ring of all ranks.
inline int right() { return (rank() + 1) % ranks(); }
inline int left() { return (rank() + ranks() - 1) % ranks(); }

/// Waits until all ranks are here. By messages with a tag that no test uses.
inline void meet() {
  constexpr int tag = 987654;
  for (int round = 0; round < 2; ++round) {
    if (rank() != 0) MPI_Recv(nullptr, 0, MPI_BYTE, rank() - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank() + 1 < ranks()) MPI_Send(nullptr, 0, MPI_BYTE, rank() + 1, tag, MPI_COMM_WORLD);
    if (rank() + 1 == ranks() && rank() != 0) MPI_Send(nullptr, 0, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    if (rank() == 0 && ranks() > 1) {
      MPI_Recv(nullptr, 0, MPI_BYTE, ranks() - 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}

}  // namespace test
