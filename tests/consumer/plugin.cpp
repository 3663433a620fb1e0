#include <tonari/tonari.hpp>

#include <vector>

// Loaded by a program that was built without tonari, as a Python extension is. Returns the number of ranks of the job,
// counted through a window; 0 on failure.
extern "C" int count_ranks() {
  try {
    tonari::Job job;
    tonari::Window window(job, sizeof(int));
    tonari::View<int> count(window);
    const bool added = count.fetch_add(tonari::JobRank{0}, 0, 1).status == tonari::Status::ok;
    if (!added || window.barrier() != tonari::Status::ok) return 0;
    int found = 0;
    if (count.pull(found, tonari::JobRank{0}, 0) != tonari::Status::ok || window.barrier() != tonari::Status::ok)
      return 0;
    return found;
  } catch (const tonari::SetupError&) {
    return 0;
  }
}
