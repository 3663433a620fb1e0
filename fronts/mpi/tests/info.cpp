// ranks: 1 2
#include "check.hpp"

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

// Info objects, before MPI_Init, after MPI_Finalize and from several threads.

namespace {

std::string get(MPI_Info info, const std::string& key) {
  int length = 0;
  int flag = -1;
  CHECK_EQUAL(MPI_Info_get_string(info, key.c_str(), &length, nullptr, &flag), MPI_SUCCESS);
  if (flag == 0) return "absent";
  std::vector<char> value(static_cast<std::size_t>(length));
  CHECK_EQUAL(MPI_Info_get_string(info, key.c_str(), &length, value.data(), &flag), MPI_SUCCESS);
  CHECK_EQUAL(flag, 1);
  CHECK_EQUAL(static_cast<std::size_t>(length), value.size());
  return value.data();
}

int keys(MPI_Info info) {
  int count = -1;
  CHECK_EQUAL(MPI_Info_get_nkeys(info, &count), MPI_SUCCESS);
  return count;
}

void basic() {
  MPI_Info info = MPI_INFO_NULL;
  CHECK_EQUAL(MPI_Info_create(&info), MPI_SUCCESS);
  CHECK_EQUAL(keys(info), 0);
  MPI_Info_set(info, "colour", "red");
  MPI_Info_set(info, "shape", "");
  MPI_Info_set(info, "colour", "blue");
  CHECK_EQUAL(keys(info), 2);
  CHECK_EQUAL(get(info, "colour"), std::string("blue"));
  CHECK_EQUAL(get(info, "shape"), std::string());
  CHECK_EQUAL(get(info, "size"), std::string("absent"));

  char key[MPI_MAX_INFO_KEY];
  CHECK_EQUAL(MPI_Info_get_nthkey(info, 0, key), MPI_SUCCESS);
  CHECK_EQUAL(std::string(key), std::string("colour"));
  int length = -1;
  int flag = -1;
  MPI_Info_get_valuelen(info, "colour", &length, &flag);
  CHECK_EQUAL(length, 4);
  CHECK_EQUAL(flag, 1);
  MPI_Info_get_valuelen(info, "size", &length, &flag);
  CHECK_EQUAL(flag, 0);

  MPI_Info copy = MPI_INFO_NULL;
  MPI_Info_dup(info, &copy);
  CHECK_EQUAL(MPI_Info_delete(info, "colour"), MPI_SUCCESS);
  CHECK_EQUAL(keys(info), 1);
  CHECK_EQUAL(get(copy, "colour"), std::string("blue"));
  MPI_Info_free(&info);
  CHECK(info == MPI_INFO_NULL);
  MPI_Info_free(&copy);
}

// A short array gets the beginning of a value, and nothing is written behind it.
void short_arrays() {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  char value[8];
  std::memset(value, '#', sizeof value);
  int flag = 0;
  int length = 3;
  MPI_Info_get_string(info, "key", &length, value, &flag);
  CHECK_EQUAL(std::string(value), std::string("va"));
  CHECK_EQUAL(value[3], '#');
  CHECK_EQUAL(length, 6);
  std::memset(value, '#', sizeof value);
  MPI_Info_get(info, "key", 3, value, &flag);
  CHECK_EQUAL(std::string(value), std::string("val"));
  CHECK_EQUAL(value[4], '#');
  MPI_Info_free(&info);
}

// Errors return codes between MPI_Init and MPI_Finalize only.
void wrong_arguments() {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  const std::string longest(MPI_MAX_INFO_KEY - 1, 'k');
  const std::string too_long(MPI_MAX_INFO_KEY, 'k');
  const std::string longest_value(MPI_MAX_INFO_VAL - 1, 'v');
  const std::string too_long_value(MPI_MAX_INFO_VAL, 'v');
  CHECK_EQUAL(MPI_Info_set(info, longest.c_str(), longest_value.c_str()), MPI_SUCCESS);
  CHECK_EQUAL(get(info, longest), longest_value);
  char key[MPI_MAX_INFO_KEY];
  MPI_Info_get_nthkey(info, 0, key);
  CHECK_EQUAL(std::string(key), longest);
  CHECK_EQUAL(MPI_Info_set(info, too_long.c_str(), "v"), static_cast<int>(MPI_ERR_INFO_KEY));
  CHECK_EQUAL(MPI_Info_set(info, "", "v"), static_cast<int>(MPI_ERR_INFO_KEY));
  CHECK_EQUAL(MPI_Info_set(info, "k", too_long_value.c_str()), static_cast<int>(MPI_ERR_INFO_VALUE));
  CHECK_EQUAL(MPI_Info_set(info, nullptr, "v"), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Info_delete(info, "k"), static_cast<int>(MPI_ERR_INFO_NOKEY));
  CHECK_EQUAL(MPI_Info_get_nthkey(info, 1, key), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Info_get_nthkey(info, -1, key), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(keys(info), 1);
  MPI_Info_free(&info);
  CHECK_EQUAL(MPI_Info_free(&info), static_cast<int>(MPI_ERR_INFO));
  CHECK_EQUAL(MPI_Info_set(MPI_INFO_NULL, "k", "v"), static_cast<int>(MPI_ERR_INFO));
  MPI_Info environment = MPI_INFO_ENV;
  CHECK_EQUAL(MPI_Info_set(environment, "k", "v"), static_cast<int>(MPI_ERR_INFO));
  CHECK_EQUAL(MPI_Info_free(&environment), static_cast<int>(MPI_ERR_INFO));
}

void environment(const char* program) {
  CHECK_EQUAL(get(MPI_INFO_ENV, "command"), std::string(program));
  CHECK(get(MPI_INFO_ENV, "wdir") != "absent");
  MPI_Info mine = MPI_INFO_NULL;
  char one[] = "./program";
  char two[] = "--fast";
  char three[] = "7";
  char* arguments[] = {one, two, three, nullptr};
  CHECK_EQUAL(MPI_Info_create_env(3, arguments, &mine), MPI_SUCCESS);
  CHECK_EQUAL(get(mine, "command"), std::string("./program"));
  CHECK_EQUAL(get(mine, "argv"), std::string("--fast 7"));
  MPI_Info_free(&mine);
  CHECK_EQUAL(MPI_Info_create_env(0, nullptr, &mine), MPI_SUCCESS);
  CHECK_EQUAL(get(mine, "command"), std::string(program));
  MPI_Info_free(&mine);
}

// Random changes against a map.
void random_changes(unsigned seed) {
  std::mt19937 random(seed);
  std::map<std::string, std::string> model;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  for (int step = 0; step < 3000; ++step) {
    const std::string key = "key" + std::to_string(random() % 20);
    if (random() % 3 == 0 && model.count(key) > 0) {
      CHECK_EQUAL(MPI_Info_delete(info, key.c_str()), MPI_SUCCESS);
      model.erase(key);
    } else {
      const std::string value(random() % 50, static_cast<char>('a' + random() % 26));
      CHECK_EQUAL(MPI_Info_set(info, key.c_str(), value.c_str()), MPI_SUCCESS);
      model[key] = value;
    }
    CHECK_EQUAL(static_cast<std::size_t>(keys(info)), model.size());
    const auto found = model.find(key);
    CHECK_EQUAL(get(info, key), found != model.end() ? found->second : "absent");
  }
  MPI_Info_free(&info);
}

void several_threads() {
  MPI_Info shared = MPI_INFO_NULL;
  MPI_Info_create(&shared);
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([shared, id] {
      const std::string key = "thread" + std::to_string(id);
      for (int i = 0; i < 2000; ++i) {
        MPI_Info_set(shared, key.c_str(), std::to_string(i).c_str());
        CHECK_EQUAL(get(shared, key), std::to_string(i));
        MPI_Info copy = MPI_INFO_NULL;
        MPI_Info_dup(shared, &copy);
        MPI_Info_free(&copy);
      }
      MPI_Info_delete(shared, key.c_str());
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK_EQUAL(keys(shared), 0);
  MPI_Info_free(&shared);
}

void of_communicators() {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  CHECK_EQUAL(MPI_Comm_set_info(MPI_COMM_WORLD, info), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Comm_set_info(MPI_COMM_WORLD, MPI_INFO_NULL), MPI_SUCCESS);
  MPI_Info_free(&info);
  CHECK_EQUAL(MPI_Comm_get_info(MPI_COMM_WORLD, &info), MPI_SUCCESS);
  CHECK_EQUAL(get(info, "mpi_assert_no_any_tag"), std::string("true"));
  CHECK(get(info, "mpi_memory_alloc_kinds").find("system") != std::string::npos);
  MPI_Info_free(&info);
}

}  // namespace

int main(int argc, char** argv) {
  basic();
  environment(argv[0]);
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  basic();
  short_arrays();
  wrong_arguments();
  environment(argv[0]);
  CHECK_EQUAL(get(MPI_INFO_ENV, "maxprocs"), std::to_string(test::ranks()));
  CHECK_EQUAL(get(MPI_INFO_ENV, "thread_level"), std::string("MPI_THREAD_SINGLE"));
  random_changes(test::own_seed());
  several_threads();
  of_communicators();
  MPI_Finalize();
  basic();
}
