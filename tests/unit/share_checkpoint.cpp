#include "../support/shared.hpp"
#include "share/checkpoint/checkpoint_layout.hpp"

#include <sched.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <thread>

// Tests that saved arrays can be loaded, by another number of ranks too, and that damaged files are refused.
namespace tonari {
namespace {

using test::OnEveryWayToShare;

using File = std::vector<char>;

File read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const File& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class Checkpoint : public OnEveryWayToShare {
 protected:
  Checkpoint() {
    std::string name = testing::TempDir() + "tonari-checkpoint-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~Checkpoint() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const char* name = "state") const { return folder_ + "/" + name; }
  [[nodiscard]] std::size_t files() const {
    const std::filesystem::directory_iterator all(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  /// Returns the message with which a save or load was refused at this rank; an empty string if it succeeded.
  template <class Call>
  static std::string refusal(Call call) {
    try {
      (void)call();
    } catch (const SetupError& error) {
      return error.what();
    }
    return {};
  }

 private:
  std::string folder_;
};
INSTANTIATE_TEST_SUITE_P(Over, Checkpoint, testing::ValuesIn(test::ways_to_share()), test::name_of);

constexpr std::size_t page_words = 4096 / sizeof(std::uint64_t);

/// Arrays of several types and sizes: from less than a page to more than one piece of a checkpoint.
struct Arrays {
  explicit Arrays(Job& job)
      : blocks(job, 400 * page_words + 5),
        turns(job, 70'000, of(Placement::cyclic)),
        touched(job, 3, of(Placement::first_touch)),
        named(job, 9 * page_words, [] {
          ArrayOptions options;
          options.writes_are_named = true;
          return options;
        }()) {}
  static ArrayOptions of(Placement placement) {
    ArrayOptions options;
    options.placement = placement;
    return options;
  }

  void fill(Job& job, std::uint64_t seed) {
    const auto part = [&job](std::size_t count) { return share::part_of(count, job.rank(), job.size()); };
    const auto fill_part = [&](auto& array) {
      const auto [first, count] = part(array.size());
      for (std::size_t i = first; i < first + count; ++i) array[i] = static_cast<std::uint8_t>(seed + i * 7);
      array.wrote(first, count);
    };
    fill_part(blocks);
    fill_part(turns);
    fill_part(touched);
    fill_part(named);
    ASSERT_EQ(share::barrier(job), Status::ok);
  }

  void expect(std::uint64_t seed) {
    const auto expect_all = [seed](auto& array) {
      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], static_cast<std::uint8_t>(seed + i * 7));
    };
    expect_all(blocks);
    expect_all(turns);
    expect_all(touched);
    expect_all(named);
  }

  shared_array<std::uint64_t> blocks;
  shared_array<std::uint8_t> turns;
  shared_array<std::uint32_t> touched;
  shared_array<std::uint64_t> named;
};

TEST_P(Checkpoint, RestoresAllArraysInARunWithAnotherNumberOfRanks) {
  run(3, [this](Job& job) {
    Arrays arrays(job);
    const shared_array<int> gone(job, 10);
    arrays.fill(job, 1);
    {
      const shared_array<int> not_there_later(job, 5000);
      share::save(job, path(), 41);
    }
    share::save(job, path("other"), 0);
  });
  for (const int ranks : {1, 2, 5}) {
    run(ranks, [this](Job& job) {
      Arrays arrays(job);
      const shared_array<int> gone(job, 10);
      {
        const shared_array<int> was_there(job, 5000);
        EXPECT_EQ(share::load(job, path()), 41u);
        arrays.expect(1);
        ASSERT_EQ(share::barrier(job), Status::ok);
      }
      arrays.fill(job, 2);
      EXPECT_EQ(share::load(job, path("other")), 0u);
      arrays.expect(1);
      ASSERT_EQ(share::barrier(job), Status::ok);
    });
  }
  EXPECT_EQ(files(), 2u);
}

TEST_P(Checkpoint, ContainsTheWritesOfAllRanksAndReplacesThePreviousOne) {
  run(2, [this](Job& job) {
    const shared_array<std::uint64_t> array(job, 40 * page_words);
    for (std::uint64_t turn = 1; turn < 6; ++turn) {
      const auto other = static_cast<std::size_t>(1 - job.rank().value());
      for (std::size_t i = other; i < array.size(); i += 2) array[i] = turn * i;  // both ranks write the same pages
      share::save(job, path(), turn);
      for (std::size_t i = other; i < array.size(); i += 2) array[i] = 0;

      EXPECT_EQ(share::load(job, path()), turn);

      for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], turn * i);
      ASSERT_EQ(share::barrier(job), Status::ok);
    }
  });
  EXPECT_EQ(files(), 1u);
}

TEST_P(Checkpoint, CannotBeLoadedBeforeTheFirstSave) {
  run(2, [this](Job& job) {
    const shared_array<int> array(job, 10);
    EXPECT_EQ(share::load(job, path()), std::nullopt);
    EXPECT_EQ(share::load(job, path("no/such/directory")), std::nullopt);
  });
}

TEST_P(Checkpoint, MayHaveNoArrays) {
  run(2, [this](Job& job) {
    share::save(job, path(), 5);
    EXPECT_EQ(share::load(job, path()), 5u);
  });
}

// The file is cut at every length, and every byte of its front and some of the others are changed. Every rank refuses
// each such file and leaves its arrays unchanged. The previous checkpoint still loads.
TEST_P(Checkpoint, RefusesATornFileAndStillLoadsThePreviousOne) {
  run(2, [this](Job& job) {
    const shared_array<std::uint64_t> array(job, 3 * page_words);
    const shared_array<char> small(job, 1);
    const auto fill = [&](std::uint64_t value) {
      if (job.rank() == 0) std::iota(array.begin(), array.end(), value);
      ASSERT_EQ(share::barrier(job), Status::ok);
    };
    fill(1);
    share::save(job, path("previous"), 1);
    fill(2);
    share::save(job, path(), 2);
    const File whole = read_file(path());
    ASSERT_EQ(whole.size(), 5u * 4096);
    fill(3);

    test::Random random{test::seed()};
    const auto expect_refusal = [&](const File& torn, const std::string& how) {
      if (job.rank() == 0) write_file(path("torn"), torn);
      ASSERT_EQ(share::barrier(job), Status::ok);
      ASSERT_NE(refusal([&] { return share::load(job, path("torn")); }), "") << how;
      ASSERT_EQ(array[0], 3u) << how;
    };
    const auto flip = [&](std::size_t place) {
      File torn = whole;
      torn[place] = static_cast<char>(torn[place] ^ 1 << test::between(random, 0, 7));
      expect_refusal(torn, "byte " + std::to_string(place) + " changed");
    };
    if (job.rank() == 0) {
      File other_version = whole;
      other_version[8] = static_cast<char>(other_version[8] ^ 64);
      write_file(path("torn"), other_version);
    }
    ASSERT_EQ(share::barrier(job), Status::ok);
    EXPECT_NE(refusal([&] { return share::load(job, path("torn")); }).find("its header is torn, or of version"),
              std::string::npos);
    const auto cut = [&](std::size_t bytes) {
      File torn = whole;
      torn.resize(bytes);
      expect_refusal(torn, "of " + std::to_string(bytes) + " bytes");
    };
    const auto turns_now = static_cast<std::size_t>(turns(100));
    for (std::size_t place = 0; place < 80 + 2 * 8 + 2 * 16; ++place) flip(place);
    for (std::size_t turn = 0; turn < turns_now; ++turn) flip(test::between(random, 0, whole.size() - 1));
    for (std::size_t bytes = 0; bytes < 100; bytes += 7) cut(bytes);
    for (const std::size_t bytes : {79u, 80u, 81u, 4095u, 4096u, 4097u}) cut(bytes);
    for (std::size_t turn = 0; turn < turns_now; ++turn) cut(test::between(random, 0, whole.size() - 1));
    for (const std::size_t more : {1u, 4096u}) cut(whole.size() + more);

    EXPECT_EQ(share::load(job, path("previous")), 1u);
    EXPECT_EQ(array[0], 1u);
    ASSERT_EQ(share::barrier(job), Status::ok);
    EXPECT_EQ(share::load(job, path()), 2u);
    EXPECT_EQ(array[0], 2u);
    ASSERT_EQ(share::barrier(job), Status::ok);
  });
}

/// Limits the files of this process to `bytes` for its lifetime, as a full disk would. A write beyond the limit by code
/// that does not handle it ends the process by SIGXFSZ.
class FullDisk {
 public:
  explicit FullDisk(std::size_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  FullDisk(FullDisk&&) = delete;
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_P(Checkpoint, KeepsThePreviousFileWhenTheDiskIsFull) {
  run(2, [this](Job& job) {
    const shared_array<std::uint64_t> array(job, 600 * page_words);  // three pieces of a checkpoint
    if (job.rank() == 1) std::iota(array.begin(), array.end(), std::uint64_t{1});
    share::save(job, path(), 1);
    array[page_words * job.rank().index()] = 0;
    const auto whole = std::filesystem::file_size(path());

    test::Random random{test::seed()};
    for (int turn = 0; turn < turns(20); ++turn) {
      const std::size_t room = test::between(random, 0, whole - 1);
      std::optional<FullDisk> full;
      if (job.rank() == 0) full.emplace(room);
      const std::string why = refusal([&] {
        share::save(job, path(), 2);
        return 0;
      });
      full.reset();
      ASSERT_NE(why.find("File too large; raise the limit"), std::string::npos) << why << " with room for " << room;
      ASSERT_NE(why.find(path()), std::string::npos) << why;
      ASSERT_EQ(share::barrier(job), Status::ok);
      ASSERT_EQ(files(), 1u);
      ASSERT_EQ(share::barrier(job), Status::ok);
    }

    EXPECT_EQ(share::load(job, path()), 1u);
    for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], i + 1);
    ASSERT_EQ(share::barrier(job), Status::ok);
    share::save(job, path(), 3);
    EXPECT_EQ(share::load(job, path()), 3u);
  });
}

TEST_P(Checkpoint, ReportsWhyItCannotBeSavedOrLoaded) {
  std::filesystem::create_directory(path("closed"));
  std::filesystem::permissions(path("closed"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  std::filesystem::create_directory(path("directory"));
  run(2, [this](Job& job) {
    const shared_array<int> array(job, 10);
    const auto why = [&](const std::string& where) {
      return refusal([&] {
        share::save(job, where);
        return 0;
      });
    };
    EXPECT_NE(why(path("none/state")).find("No such file or directory; make the directory first"), std::string::npos);
    EXPECT_NE(why(path("directory")).find("is no ordinary file; choose"), std::string::npos);
    EXPECT_NE(why("").find("saving shared arrays: the path is empty; name a file"), std::string::npos);
    const auto why_not_loaded = [&](const std::string& from) {
      return refusal([&] { return share::load(job, from); });
    };
    EXPECT_NE(why_not_loaded("").find("loading shared arrays: the path is empty; name a file"), std::string::npos);
    EXPECT_NE(why_not_loaded(path("directory")).find("is no ordinary file; give the path of one"), std::string::npos);
    constexpr uid_t nobody = 65534;
    const auto before = ::setfsuid(nobody);  // changes this thread's user only, as root may write everywhere
    EXPECT_NE(why(path("closed/state")).find("Permission denied; choose a place"), std::string::npos);
    ::setfsuid(static_cast<uid_t>(before));
    EXPECT_EQ(files(), 2u);
  });
}

TEST_P(Checkpoint, ReplacesOnlyRegularFiles) {
  write_file(path("file"), {'x'});
  std::filesystem::create_symlink(path("file"), path());
  run(2, [this](Job& job) {
    const shared_array<int> array(job, 10);
    EXPECT_THROW(share::save(job, path(), 1), SetupError);
  });
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_EQ(read_file(path("file")), File{'x'});
}

TEST_P(Checkpoint, IsRefusedForOtherArrays) {
  run(2, [this](Job& job) {
    const shared_array<int> first(job, 10'000);
    const shared_array<int> second(job, 10);
    share::save(job, path());
  });
  run(2, [this](Job& job) {
    const auto why = [&] { return refusal([&] { return share::load(job, path()); }); };
    const shared_array<int> first(job, 10'000);
    EXPECT_NE(why().find("it has 2 arrays, and this program 1; make the same arrays"), std::string::npos);
    const shared_array<int> second(job, 11);
    EXPECT_NE(why().find("array 1 of 2, counted from 0, has 40 bytes there, and 44 in this program"),
              std::string::npos);
  });
}

TEST_P(Checkpoint, IsRefusedWhenRanksDisagree) {
  run(2, [this](Job& job) {
    const shared_array<int> array(job, 10);
    const auto why = [&](const std::string& where, std::uint64_t step) {
      return refusal([&] {
        share::save(job, where, step);
        return 0;
      });
    };
    EXPECT_NE(why(path(), static_cast<std::uint64_t>(job.rank().value())).find("must be the same in all"),
              std::string::npos);
    EXPECT_NE(why(path(job.rank() == 0 ? "a" : "b"), 0).find("must be the same in all"), std::string::npos);
    EXPECT_EQ(files(), 0u);
  });
}

// The ranks run in different directories, so one name means a different file at each rank, as on hosts that share no
// file system.
TEST_P(Checkpoint, NeedsAFileSystemThatAllRanksShare) {
  for (const char* const name : {"0", "1"}) std::filesystem::create_directory(path(name));
  run(2, [this](Job& job) {
    const shared_array<int> array(job, 10);
    share::save(job, path("0/first"), 1);
    share::save(job, path("0/both"), 1);
    share::save(job, path("1/both"), 1);
    const auto load = [&](const char* where) { return refusal([&] { return share::load(job, where); }); };
    std::jthread([&] {
      ASSERT_EQ(::unshare(CLONE_FS), 0);  // gives this thread its own working directory
      std::filesystem::current_path(path(job.rank() == 0 ? "0" : "1"));
      const std::string why = refusal([&] {
        share::save(job, "state");
        return 0;
      });
      EXPECT_NE(why.find("No such file or directory; checkpoints need a file system that all hosts of the job share"),
                std::string::npos)
          << why;
      EXPECT_FALSE(std::filesystem::exists("state"));
      EXPECT_NE(load("first").find("there is no such file, and other ranks see one"), std::string::npos);
      EXPECT_NE(load("both").find("the ranks see different files"), std::string::npos);
    }).join();
  });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("0")), {}), 2);
}

TEST_P(Checkpoint, ReportsTheDeadRankThatPreventsIt) {
  std::atomic<int> come{0};
  const auto body = [this, &come](Job& job) {
    job.on_death([](const Death&) {});
    const shared_array<int> array(job, 10);
    ASSERT_EQ(share::barrier(job), Status::ok);
    test::let_die(job, 2, come);
    EXPECT_EQ(share::barrier(job), Status::peer_gone);
    const std::string why = refusal([&] {
      share::save(job, path());
      return 0;
    });
    EXPECT_EQ(why, "saving " + path() + ": rank 2, on host " + std::to_string(job.host(JobRank{2})) +
                       ", has died; all ranks must take part: start the job anew, and load what was saved last");
  };
  EXPECT_THROW(run(3, body), test::Killed);
}

TEST_P(Checkpoint, RemovesFilesLeftByACrash) {
  write_file(path("state.tmp-0123456789abcdef"), File(5));
  write_file(path("state.tmp-of-mine"), File(5));
  write_file(path("state2.tmp-0123456789abcdef"), File(5));
  run(2, [this](Job& job) {
    const shared_array<int> array(job, 10);
    share::save(job, path());
  });
  EXPECT_EQ(files(), 3u);
  EXPECT_FALSE(std::filesystem::exists(path("state.tmp-0123456789abcdef")));
}

TEST(CheckpointLayout, MatchesItsDocumentedOffsets) {
  using share::CheckpointLayout;
  using share::Digest;
  const CheckpointLayout layout({5000, 1, 2 * 1024 * 1024 + 1});
  ASSERT_EQ(layout.pieces().size(), 5u);
  EXPECT_EQ(layout.front_bytes(), 4096u);
  EXPECT_EQ(layout.pieces()[1].place, 4096u + 8192);
  EXPECT_EQ(layout.pieces()[4].array, 2u);
  EXPECT_EQ(layout.pieces()[4].offset, 2u * 1024 * 1024);
  EXPECT_EQ(layout.pieces()[4].bytes, 4096u);
  EXPECT_EQ(layout.file_bytes(), 4096u + 8192 + 4096 + 2 * 1024 * 1024 + 4096);

  const CheckpointLayout small({5, 6});
  const auto front = small.front(0x1122, 0x3344, std::array{Digest{7, 8}, Digest{9, 10}});

  ASSERT_EQ(front.size(), 4096u);
  const auto words = [&](std::size_t first, std::size_t count) {
    std::vector<std::uint64_t> some(count);
    std::memcpy(some.data(), front.data() + first, count * sizeof some[0]);
    return some;
  };
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(front.data()), 8), std::string("tonari\0C", 8));
  EXPECT_EQ(words(8, 5), (std::vector<std::uint64_t>{2ULL << 32 | 1, 4096, 3 * 4096, 0x1122, 0x3344}));
  EXPECT_EQ(words(48, 4), (std::vector<std::uint64_t>{14921361379650833373U, 15608096128594511261U,  // the two digests
                                                      16411923655499819319U, 7283721278248580544U}));
  EXPECT_EQ(words(80, 7), (std::vector<std::uint64_t>{5, 6, 7, 8, 9, 10, 0}));
}

}  // namespace
}  // namespace tonari
