// ranks: 1 2
#include "check.hpp"

#include <cstdint>
#include <cstring>
#include <string>

// Memory, addresses, names and what the hardware is.

namespace {

void memory() {
  void* base = nullptr;
  CHECK_EQUAL(MPI_Alloc_mem(1000, MPI_INFO_NULL, static_cast<void*>(&base)), MPI_SUCCESS);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(base) % 64, std::uintptr_t{0});
  std::memset(base, 1, 1000);
  CHECK_EQUAL(MPI_Free_mem(base), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Alloc_mem(0, MPI_INFO_NULL, static_cast<void*>(&base)), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Free_mem(base), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Free_mem(nullptr), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Alloc_mem(-1, MPI_INFO_NULL, static_cast<void*>(&base)), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Alloc_mem(PTRDIFF_MAX, MPI_INFO_NULL, static_cast<void*>(&base)), static_cast<int>(MPI_ERR_NO_MEM));
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096");
  CHECK_EQUAL(MPI_Alloc_mem(10, info, static_cast<void*>(&base)), MPI_SUCCESS);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(base) % 4096, std::uintptr_t{0});
  MPI_Free_mem(base);
  MPI_Info_set(info, "mpi_minimum_memory_alignment", "100");
  CHECK_EQUAL(MPI_Alloc_mem(10, info, static_cast<void*>(&base)), static_cast<int>(MPI_ERR_INFO_VALUE));
  MPI_Info_free(&info);
}

void addresses() {
  double array[10];
  MPI_Aint first = 0;
  MPI_Aint last = 0;
  MPI_Get_address(&array[0], &first);
  MPI_Get_address(&array[9], &last);
  CHECK_EQUAL(MPI_Aint_diff(last, first), static_cast<MPI_Aint>(9 * sizeof(double)));
  CHECK_EQUAL(MPI_Aint_add(first, 9 * sizeof(double)), last);
  CHECK_EQUAL(MPI_Aint_add(last, MPI_Aint_diff(first, last)), first);
  MPI_Get_address(MPI_BOTTOM, &first);
  CHECK_EQUAL(first, MPI_Aint{0});
}

std::string name_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = -1;
  CHECK_EQUAL(MPI_Comm_get_name(comm, name, &length), MPI_SUCCESS);
  CHECK_EQUAL(std::strlen(name), static_cast<std::size_t>(length));
  return name;
}
std::string name_of(MPI_Datatype type) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = -1;
  CHECK_EQUAL(MPI_Type_get_name(type, name, &length), MPI_SUCCESS);
  CHECK_EQUAL(std::strlen(name), static_cast<std::size_t>(length));
  return name;
}

void names() {
  CHECK_EQUAL(name_of(MPI_COMM_WORLD), std::string("MPI_COMM_WORLD"));
  CHECK_EQUAL(name_of(MPI_COMM_SELF), std::string("MPI_COMM_SELF"));
  CHECK_EQUAL(name_of(MPI_COMM_NULL), std::string("MPI_COMM_NULL"));
  CHECK_EQUAL(name_of(MPI_INT), std::string("MPI_INT"));
  CHECK_EQUAL(name_of(MPI_DATATYPE_NULL), std::string("MPI_DATATYPE_NULL"));
  CHECK_EQUAL(MPI_Comm_set_name(MPI_COMM_SELF, "alone"), MPI_SUCCESS);
  CHECK_EQUAL(name_of(MPI_COMM_SELF), std::string("alone"));
  const std::string too_long(MPI_MAX_OBJECT_NAME + 10, 'n');
  CHECK_EQUAL(MPI_Type_set_name(MPI_INT, too_long.c_str()), MPI_SUCCESS);
  CHECK_EQUAL(name_of(MPI_INT), too_long.substr(0, MPI_MAX_OBJECT_NAME - 1));
  MPI_Type_set_name(MPI_INT, "MPI_INT");
}

void hardware() {
  MPI_Info info = MPI_INFO_NULL;
  CHECK_EQUAL(MPI_Get_hw_resource_info(&info), MPI_SUCCESS);
  int keys = 0;
  MPI_Info_get_nkeys(info, &keys);
  bool has_machine = false;
  for (int n = 0; n < keys; ++n) {
    char key[MPI_MAX_INFO_KEY];
    char value[8];
    int length = sizeof value;
    int flag = 0;
    MPI_Info_get_nthkey(info, n, key);
    MPI_Info_get_string(info, key, &length, value, &flag);
    CHECK(std::string(value) == "true" || std::string(value) == "false");
    has_machine = has_machine || (std::string(key) == "hwloc://Machine" && std::string(value) == "true");
  }
  CHECK(has_machine);
  MPI_Info_free(&info);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  memory();
  addresses();
  names();
  hardware();
  MPI_Finalize();
}
