#include <tonari/checkpoint.hpp>

#include "job/session.hpp"
#include "share/checkpoint/checkpoint_file.hpp"
#include "share/checkpoint/checkpoint_layout.hpp"
#include "share/share_runtime.hpp"
#include "share/shared_memory.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tonari::share {

namespace {

/// One rank's part in a save or a load. A failure in one rank throws in all ranks, with the message of the lowest rank
/// that failed.
class Checkpoint {
 public:
  /// `doing`: "saving" or "loading".
  Checkpoint(Job& job, std::string_view doing, const std::string& path);

  void save(std::uint64_t step);
  std::optional<std::uint64_t> load();

 private:
  using Piece = CheckpointLayout::Piece;

  template <class Step>
  void all(Step step);  // runs the step in each rank
  void expect(Status status) const;
  [[nodiscard]] std::string who_is_gone() const;
  void expect_path(std::string_view doing) const;
  void meet();
  void expect_same(std::uint64_t number, const char* otherwise);
  void expect_same_call(std::uint64_t step);
  template <class Visit>
  void for_own_pieces(Visit visit) const;
  [[nodiscard]] std::span<std::byte> memory_of(const Piece& piece) const;
  [[nodiscard]] std::span<std::byte> brought(const Piece& piece, int advice) const;

  void write_pieces(const CheckpointFile& file, std::vector<Digest>& digests);
  [[nodiscard]] CheckpointFront read_front(const CheckpointFile& file) const;
  void check_sizes(const std::vector<std::uint64_t>& saved) const;
  void read_piece(const CheckpointFile& file, std::size_t index, const Digest& digest, std::span<std::byte> piece);

  Job& job_;
  SharedMemory& shared_memory_;
  Communicator& ranks_;
  const std::string path_;
  const std::string what_;  // "saving PATH"
  const std::vector<SharedMemory::Made> arrays_;
  const CheckpointLayout layout_;
};

std::vector<std::uint64_t> sizes_of(const std::vector<SharedMemory::Made>& arrays) {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(arrays.size());
  for (const SharedMemory::Made& each : arrays) sizes.push_back(each.bytes);
  return sizes;
}

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

Checkpoint::Checkpoint(Job& job, std::string_view doing, const std::string& path)
    : job_(job),
      shared_memory_(ShareRuntime::of(job.session()).sharing(job)),
      ranks_(shared_memory_.ranks()),
      path_(path),
      what_(fmt::format("{} {}", doing, path)),
      arrays_(shared_memory_.made()),
      layout_(sizes_of(arrays_)) {}

void Checkpoint::expect(Status status) const {
  if (status == Status::ok) return;
  throw SetupError(fmt::format("{}: {}", what_, status == Status::peer_gone ? who_is_gone() : explain(status)));
}

std::string Checkpoint::who_is_gone() const {
  constexpr const char* remedy = "all ranks must take part: start the job anew, and load what was saved last";
  for (int rank = 0; rank < job_.size(); ++rank) {
    if (!job_.alive(JobRank{rank}))
      return fmt::format("rank {}, on host {}, has died; {}", rank, job_.host(JobRank{rank}), remedy);
  }
  return fmt::format("a rank died or left the job; {}", remedy);
}

// Collective; the path must be the same in all ranks.
void Checkpoint::expect_path(std::string_view doing) const {
  if (path_.empty()) throw SetupError(fmt::format("{} shared arrays: the path is empty; name a file", doing));
}

template <class Step>
void Checkpoint::all(Step step) {
  std::string failure;
  try {
    step();
  } catch (const std::exception& error) {
    failure = fmt::format("rank {} on {}: {}", job_.rank().value(), job_.host_name(), error.what());
  }
  int first = failure.empty() ? ranks_.size() : ranks_.rank().value();
  expect(ranks_.all_reduce(first, [](int one, int other) { return std::min(one, other); }));
  if (first == ranks_.size()) return;
  auto bytes = static_cast<std::uint64_t>(failure.size());
  expect(ranks_.broadcast(bytes, Rank{first}));
  failure.resize(bytes);
  expect(ranks_.broadcast(failure, Rank{first}));
  throw SetupError(fmt::format("{}: {}", what_, failure));
}

void Checkpoint::meet() { expect(shared_memory_.barrier()); }

void Checkpoint::expect_same(std::uint64_t number, const char* otherwise) {
  std::array<std::uint64_t, 2> digest{number, ~number};
  expect(ranks_.all_reduce(digest, [](auto one, auto other) { return std::max(one, other); }));
  if (digest[0] != ~digest[1]) throw SetupError(fmt::format("{}: {}", what_, otherwise));
}

void Checkpoint::expect_same_call(std::uint64_t step) {
  const auto& sizes = layout_.sizes();
  const std::array<Digest, 2> digests{digest_of(std::as_bytes(std::span(what_))),
                                      digest_of(std::as_bytes(std::span(sizes)))};
  expect_same(
      digest_of(std::as_bytes(std::span(digests))).low ^ step,
      "the ranks call for different things: path and step, and the arrays that there are, must be the same in all");
}

std::span<std::byte> Checkpoint::memory_of(const Piece& piece) const {
  return arrays_[piece.array].memory->bytes().subspan(piece.offset, piece.bytes);
}

// Returns a piece's memory after it has asked the kernel to populate it, which finds pages that were lost with a dead
// rank: touching them would raise a signal. A kernel that does not handle faults in system calls populates nothing.
std::span<std::byte> Checkpoint::brought(const Piece& piece, int advice) const {
  const auto memory = memory_of(piece);
  if (::madvise(memory.data(), memory.size(), advice) == 0 || errno != EHWPOISON) return memory;
  throw SetupError(who_is_gone());
}

// Calls visit(index, piece) for each piece that begins at a page placed here: most of its contents are local.
template <class Visit>
void Checkpoint::for_own_pieces(Visit visit) const {
  const auto& pieces = layout_.pieces();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (arrays_[pieces[i].array].memory->home_of(pieces[i].offset) == job_.rank()) visit(i, pieces[i]);
  }
}

void Checkpoint::save(std::uint64_t step) {
  meet();
  expect_same_call(step);
  expect_path("saving");
  std::uint64_t identity = random_number();
  expect(ranks_.broadcast(identity, Rank{0}));

  std::optional<Temporary> temporary;  // only at rank 0
  std::optional<CheckpointFile> file;
  const std::string name = Temporary::name_of(path_, identity);
  all([&] {
    if (job_.rank() != 0) return;
    temporary.emplace(path_, identity);
    file.emplace(CheckpointFile::make(name));
  });

  std::vector<Digest> digests(layout_.pieces().size());
  all([&] {
    if (!file) file.emplace(CheckpointFile::join(name));
    write_pieces(*file, digests);
    file->sync();
  });
  expect(
      ranks_.all_reduce(digests, [](Digest one, Digest other) {  // zero in all ranks but the one that wrote the piece
        return Digest{one.low | other.low, one.high | other.high};
      }));

  all([&] {
    if (job_.rank() != 0) return;
    file->write(layout_.front(step, identity, digests), 0);
    file->sync();
    temporary->replace();
  });
}

// Copies shared memory before writing it: the kernel may be unable to touch absent pages in a system call.
void Checkpoint::write_pieces(const CheckpointFile& file, std::vector<Digest>& digests) {
  std::vector<std::byte> buffer(CheckpointLayout::piece_bytes);
  for_own_pieces([&](std::size_t index, const Piece& piece) {
    const auto bytes = std::span(buffer).first(piece.bytes);
    std::ranges::copy(brought(piece, MADV_POPULATE_READ), bytes.begin());
    digests[index] = digest_of(bytes);
    file.write(bytes, piece.place);
  });
}

std::optional<std::uint64_t> Checkpoint::load() {
  meet();
  expect_same_call(0);
  expect_path("loading");
  std::optional<CheckpointFile> file;
  all([&] { file.emplace(CheckpointFile::find(path_)); });
  int found = *file ? 1 : 0;
  expect(ranks_.all_reduce(found));
  if (found == 0) return std::nullopt;

  CheckpointFront front;
  all([&] {
    if (!*file)
      throw SetupError("there is no such file, and other ranks see one; share its file system with all hosts");
    front = read_front(*file);
    check_sizes(front.sizes);
  });
  expect_same(front.header.identity,
              "the ranks see different files under this name; share its file system with all hosts");

  std::vector<std::byte> buffer(CheckpointLayout::piece_bytes);
  const auto read = [&](std::size_t index, const Piece& piece) {
    const auto bytes = std::span(buffer).first(piece.bytes);
    read_piece(*file, index, front.digests[index], bytes);
    return bytes;
  };
  all([&] { for_own_pieces([&](std::size_t index, const Piece& piece) { read(index, piece); }); });
  all([&] {
    for_own_pieces([&](std::size_t index, const Piece& piece) {
      std::ranges::copy(read(index, piece), brought(piece, MADV_POPULATE_WRITE).begin());
      arrays_[piece.array].memory->wrote(piece.offset, piece.bytes);
    });
  });
  meet();
  return front.header.step;
}

CheckpointFront Checkpoint::read_front(const CheckpointFile& file) const {
  CheckpointHeader header;
  file.read(std::as_writable_bytes(std::span(&header, 1)), 0);
  check_header(header, file.bytes());
  std::vector<std::byte> front(header.front_bytes);
  file.read(front, 0);
  return decode_front(front);
}

void Checkpoint::check_sizes(const std::vector<std::uint64_t>& saved) const {
  constexpr const char* remedy = "make the same arrays in the same order before loading";
  const auto& here = layout_.sizes();
  if (saved.size() != here.size()) {
    throw SetupError(fmt::format("it has {} arrays, and this program {}; {}", saved.size(), here.size(), remedy));
  }
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (saved[i] == here[i]) continue;
    throw SetupError(fmt::format("array {} of {}, counted from 0, has {} bytes there, and {} in this program; {}", i,
                                 here.size(), saved[i], here[i], remedy));
  }
}

void Checkpoint::read_piece(const CheckpointFile& file, std::size_t index, const Digest& digest,
                            std::span<std::byte> bytes) {
  const Piece& piece = layout_.pieces()[index];
  file.read(bytes, piece.place);
  if (digest_of(bytes) == digest) return;
  throw SetupError(fmt::format(
      "it is torn between bytes {} and {}: array {} is not as it was saved; load an older one, or begin anew",
      piece.place, piece.place + piece.bytes, piece.array));
}

}  // namespace

void save(Job& job, const std::string& path, std::uint64_t step) {
  Checkpoint(job, "saving", path).save(step);
  if (job.rank() == 0) job.session().log().info("saved all shared arrays in {} (step {})", path, step);
}

std::optional<std::uint64_t> load(Job& job, const std::string& path) {
  const auto step = Checkpoint(job, "loading", path).load();
  if (step && job.rank() == 0) job.session().log().info("loaded all shared arrays from {} (step {})", path, *step);
  return step;
}

}  // namespace tonari::share
