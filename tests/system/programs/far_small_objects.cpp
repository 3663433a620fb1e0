// A program that knows nothing of tonari: many small objects, changed at random by some threads and compared with a
// model. Also directories, streams, text output and children, whose buffers libc allocates. Prints "ok".
//   far_small_objects THREADS OBJECTS ROUNDS [SEED]

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "far_small_objects: %s\n", what);
  std::_Exit(1);
}

std::string value_of(std::uint64_t key, std::uint64_t version) {
  return std::string(static_cast<std::size_t>(key % 90), static_cast<char>('a' + version % 26)) + std::to_string(key);
}

// Changes a map at random. The vector says which version of each object it must hold; 0 means none.
void change(std::uint64_t seed, std::uint64_t objects, std::uint64_t rounds) {
  std::mt19937_64 random(seed);
  std::map<std::uint64_t, std::string> all;
  std::vector<std::uint32_t> versions(objects);
  for (std::uint64_t key = 0; key < objects; ++key) all.emplace(key, value_of(key, versions[key] = 1));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t key = random() % objects;
    const auto found = all.find(key);
    check((found != all.end()) == (versions[key] != 0), "an object is missing, or was not removed");
    if (found != all.end()) check(found->second == value_of(key, versions[key]), "an object has other contents");
    if (random() % 4 == 0) {
      if (found != all.end()) all.erase(found);
      versions[key] = 0;
    } else {
      versions[key] = 1 + static_cast<std::uint32_t>(round);
      all[key] = value_of(key, versions[key]);
    }
  }
}

void use_libc() {
  int names = 0;
  DIR* const folder = ::opendir("/usr/bin");
  check(folder != nullptr, "opendir");
  while (::readdir(folder) != nullptr) ++names;
  ::closedir(folder);
  check(names > 100, "readdir");
  std::FILE* const list = ::popen("ls -a /usr/bin | wc -l", "r");
  int listed = 0;
  check(list != nullptr && std::fscanf(list, "%d", &listed) == 1 && ::pclose(list) == 0, "popen");
  check(listed == names, "the number of names that a child has found");
  std::ostringstream text;
  for (int i = 0; i < 1000; ++i) text << i << ' ';
  check(text.str().size() == 3890, "a stream of text");
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  const auto number = [&](int i) { return std::strtoull(words[i], nullptr, 0); };
  const std::uint64_t seed = count > 4 ? number(4) : std::random_device{}();
  std::cerr << "seed " << seed << std::endl;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < number(1); ++i) threads.emplace_back(change, seed + i, number(2), number(3));
  use_libc();
  for (std::thread& each : threads) each.join();
  use_libc();
  std::puts("ok");
}
