#pragma once

#include "harness/placement.hpp"
#include "harness/wire.hpp"
#include "harness/worker.hpp"

#include <mpi.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tonari::bench {

/// An MPI as a Wire. Errors end the job, as is MPI's default.
class MpiWire {
 public:
  using Request = MPI_Request;
  static constexpr int any_source = MPI_ANY_SOURCE;

  MpiWire(int& argc, char**& argv, bool thread_multiple) : thread_multiple_(thread_multiple) {
    if (thread_multiple) {
      int provided = 0;
      MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
      if (provided != MPI_THREAD_MULTIPLE) throw std::runtime_error("this MPI does not offer MPI_THREAD_MULTIPLE");
    } else {
      MPI_Init(&argc, &argv);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  MpiWire(MpiWire&&) = delete;
  ~MpiWire() { MPI_Finalize(); }

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// Returns "openmpi-4.1.4", with " thread-multiple" if MPI_THREAD_MULTIPLE was requested; for tonari's MPI, where
  /// that makes no difference, "tonari-mpi".
  std::string system() const {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string_view said(text.data());
    if (said.starts_with("tonari")) return "tonari-mpi";
    const std::string name = said.starts_with("Open MPI") ? "openmpi"
                             : said.starts_with("MPICH")  ? "mpich"
                             : said.starts_with("Intel")  ? "impi"
                                                          : "mpi";
    const auto start = said.find_first_of("0123456789");
    const auto end = start == said.npos ? start : said.find_first_not_of("0123456789.abrc", start);
    const auto version = start == said.npos ? std::string() : "-" + std::string(said.substr(start, end - start));
    return name + version + (thread_multiple_ ? " thread-multiple" : "");
  }

  void send(std::span<const std::byte> bytes, int rank, int tag) {
    MPI_Send(bytes.data(), count(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD);
  }
  void receive(std::span<std::byte> bytes, int rank, int tag) {
    MPI_Recv(bytes.data(), count(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  Arrived receive_from(std::span<std::byte> bytes, int rank, int tag) {
    MPI_Status status;
    MPI_Recv(bytes.data(), count(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &status);
    return {status.MPI_SOURCE, status.MPI_TAG};
  }
  Request start_send(std::span<const std::byte> bytes, int rank, int tag) {
    Request request;
    MPI_Isend(bytes.data(), count(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request);
    return request;
  }
  Request start_receive(std::span<std::byte> bytes, int rank, int tag) {
    Request request;
    MPI_Irecv(bytes.data(), count(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request);
    return request;
  }
  void wait(Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }
  void wait_all(std::span<Request> requests) {
    MPI_Waitall(count(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
  std::size_t wait_any(std::span<Request> requests) {
    int index = 0;
    MPI_Waitany(count(requests.size()), requests.data(), &index, MPI_STATUS_IGNORE);
    return static_cast<std::size_t>(index);
  }
  bool test(Request& request) {
    int complete = 0;
    MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
    return complete != 0;
  }
  void cancel(Request& request) {
    MPI_Cancel(&request);
    MPI_Status status;
    MPI_Wait(&request, &status);
    int cancelled = 0;
    MPI_Test_cancelled(&status, &cancelled);
    if (cancelled == 0) throw std::runtime_error("a receive that should wait has met a message");
  }
  void send_when_posted(std::span<const std::byte> bytes, int rank, int tag) {
    MPI_Ssend(bytes.data(), count(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD);
  }
  Request start_send_when_posted(std::span<const std::byte> bytes, int rank, int tag) {
    Request request;
    MPI_Issend(bytes.data(), count(bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request);
    return request;
  }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  void broadcast(std::span<std::byte> bytes, int root) {
    MPI_Bcast(bytes.data(), count(bytes.size()), MPI_BYTE, root, MPI_COMM_WORLD);
  }
  Request start_broadcast(std::span<std::byte> bytes, int root) {
    Request request;
    MPI_Ibcast(bytes.data(), count(bytes.size()), MPI_BYTE, root, MPI_COMM_WORLD, &request);
    return request;
  }
  void all_to_all(std::span<const std::byte> from, std::span<std::byte> to) {
    const auto part = count(from.size() / static_cast<std::size_t>(size_));
    MPI_Alltoall(from.data(), part, MPI_BYTE, to.data(), part, MPI_BYTE, MPI_COMM_WORLD);
  }
  void all_reduce(std::span<double> values) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), count(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }

 protected:
  static int count(std::size_t bytes) {
    if (bytes > INT_MAX) throw std::invalid_argument("this MPI counts with int: no message of 2 GiB or more");
    return static_cast<int>(bytes);
  }

 private:
  bool thread_multiple_;
  int rank_ = 0;
  int size_ = 0;
};

static_assert(MatchWire<MpiWire> && PostedWire<MpiWire> && CollectiveWire<MpiWire>);

/// The main() of a rival: calls `question(wire, options, output)` between MPI_Init_thread and MPI_Finalize.
template <class W = MpiWire, class Question>
int run_rival(int argc, char** argv, Question question) {
  try {
    const Options options(argc, argv, 1);
    bind_as_told(options);
    W wire(argc, argv, options.text("threads", "default") == "multiple");
    try {
      Output output(options, wire.rank());
      const auto variant = options.text("variant", "");
      output.system(wire.system() + (variant.empty() ? "" : " " + variant));
      question(wire, options, output);
      output.done();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", wire.rank(), error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);  // the other ranks may be waiting for this one
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace tonari::bench
