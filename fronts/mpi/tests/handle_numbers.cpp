// ranks: 1
#include "check.hpp"

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

// The ABI, and handles as integers.

namespace {

template <class Handle>
int number(Handle handle) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle));
}

void predefined_handles_are_their_numbers() {
  CHECK_EQUAL(MPI_Comm_toint(MPI_COMM_WORLD), number(MPI_COMM_WORLD));
  CHECK_EQUAL(MPI_Comm_toint(MPI_COMM_NULL), number(MPI_COMM_NULL));
  CHECK_EQUAL(MPI_Type_toint(MPI_DOUBLE), number(MPI_DOUBLE));
  CHECK_EQUAL(MPI_Op_toint(MPI_SUM), number(MPI_SUM));
  CHECK_EQUAL(MPI_Errhandler_toint(MPI_ERRORS_RETURN), number(MPI_ERRORS_RETURN));
  CHECK_EQUAL(MPI_Group_toint(MPI_GROUP_EMPTY), number(MPI_GROUP_EMPTY));
  CHECK_EQUAL(MPI_Info_toint(MPI_INFO_ENV), number(MPI_INFO_ENV));
  CHECK_EQUAL(MPI_Message_toint(MPI_MESSAGE_NO_PROC), number(MPI_MESSAGE_NO_PROC));
  CHECK_EQUAL(MPI_Request_toint(MPI_REQUEST_NULL), number(MPI_REQUEST_NULL));
  CHECK_EQUAL(MPI_Session_toint(MPI_SESSION_NULL), number(MPI_SESSION_NULL));
  CHECK_EQUAL(MPI_Win_toint(MPI_WIN_NULL), number(MPI_WIN_NULL));
  CHECK_EQUAL(MPI_File_toint(MPI_FILE_NULL), number(MPI_FILE_NULL));
  CHECK(MPI_Type_fromint(number(MPI_DOUBLE)) == MPI_DOUBLE);
  CHECK(MPI_Comm_fromint(number(MPI_COMM_SELF)) == MPI_COMM_SELF);
  CHECK(MPI_Message_fromint(number(MPI_MESSAGE_NULL)) == MPI_MESSAGE_NULL);
  CHECK(MPI_Comm_fromint(0) == MPI_COMM_NULL);
  CHECK(MPI_Comm_fromint(-1) == MPI_COMM_NULL);
  CHECK(MPI_Request_fromint(0x7fffffff) == MPI_REQUEST_NULL);
}

void handle_error(MPI_Comm*, int*, ...) {}

void handles_of_the_program_round_trip() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(handle_error, &handler);
  CHECK(MPI_Errhandler_toint(handler) >= 0x1000);
  CHECK(MPI_Errhandler_fromint(MPI_Errhandler_toint(handler)) == handler);
  MPI_Errhandler_free(&handler);

  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([] {
      std::vector<MPI_Info> infos(500);
      std::set<int> numbers;
      for (MPI_Info& each : infos) {
        MPI_Info_create(&each);
        CHECK(numbers.insert(MPI_Info_toint(each)).second);
      }
      for (MPI_Info& each : infos) {
        const int its_number = MPI_Info_toint(each);
        CHECK(numbers.count(its_number) == 1);
        CHECK(MPI_Info_fromint(its_number) == each);
        MPI_Info_free(&each);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

void abi() {
  int major = -1;
  int minor = -1;
  CHECK_EQUAL(MPI_Abi_get_version(&major, &minor), MPI_SUCCESS);
  CHECK_EQUAL(major, 1);
  CHECK_EQUAL(minor, 0);
  MPI_Info info = MPI_INFO_NULL;
  CHECK_EQUAL(MPI_Abi_get_info(&info), MPI_SUCCESS);
  char size[8];
  int length = sizeof size;
  int flag = 0;
  MPI_Info_get_string(info, "mpi_aint_size", &length, size, &flag);
  CHECK_EQUAL(std::string(size), std::to_string(sizeof(MPI_Aint)));
  MPI_Info_free(&info);
}

std::string get(MPI_Info info, const char* key) {
  char value[MPI_MAX_INFO_VAL];
  int length = sizeof value;
  int flag = 0;
  MPI_Info_get_string(info, key, &length, value, &flag);
  return flag != 0 ? value : "absent";
}

// The older names, which the standard ABI lacks. They are macros that may not use their argument twice.
void names_for_fortran() {
  MPI_Comm comms[] = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
  CHECK_EQUAL(MPI_Comm_dup(MPI_COMM_SELF, &comms[1]), MPI_SUCCESS);
  int place = 1;
  const MPI_Fint its_number = MPI_Comm_c2f(comms[place++]);
  CHECK_EQUAL(place, 2);
  CHECK_EQUAL(its_number, MPI_Comm_toint(comms[1]));
  CHECK(MPI_Comm_f2c(its_number) == comms[1]);
  CHECK(PMPI_Comm_f2c(PMPI_Comm_c2f(comms[1])) == comms[1]);
  MPI_Comm_free(&comms[1]);
  CHECK(MPI_Errhandler_f2c(MPI_Errhandler_c2f(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
  CHECK(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL);
  CHECK(MPI_Group_f2c(MPI_Group_c2f(MPI_GROUP_EMPTY)) == MPI_GROUP_EMPTY);
  CHECK(MPI_Info_f2c(MPI_Info_c2f(MPI_INFO_ENV)) == MPI_INFO_ENV);
  CHECK(MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NO_PROC)) == MPI_MESSAGE_NO_PROC);
  CHECK(MPI_Op_f2c(MPI_Op_c2f(MPI_SUM)) == MPI_SUM);
  CHECK(MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
  CHECK(MPI_Session_f2c(MPI_Session_c2f(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
  CHECK(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE);
  CHECK(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);

  const char data[] = "seven";
  char received[5];
  MPI_Status status;
  CHECK_EQUAL(MPI_Sendrecv(data, 5, MPI_CHAR, 0, 3, received, 5, MPI_CHAR, 0, 3, MPI_COMM_SELF, &status), MPI_SUCCESS);
  MPI_Fint in_fortran[MPI_F_STATUS_SIZE];
  CHECK_EQUAL(MPI_Status_c2f(&status, in_fortran), MPI_SUCCESS);
  CHECK_EQUAL(in_fortran[MPI_F_SOURCE], 0);
  CHECK_EQUAL(in_fortran[MPI_F_TAG], 3);
  MPI_Status back;
  CHECK_EQUAL(MPI_Status_f2c(in_fortran, &back), MPI_SUCCESS);
  int count = 0;
  CHECK_EQUAL(MPI_Get_count(&back, MPI_CHAR, &count), MPI_SUCCESS);
  CHECK_EQUAL(count, 5);
}

// Nothing is known until a library with Fortran bindings has set it, which it can do once.
void fortran() {
  MPI_Info info = MPI_INFO_ENV;
  CHECK_EQUAL(MPI_Abi_get_fortran_info(&info), MPI_SUCCESS);
  CHECK(info == MPI_INFO_NULL);
  CHECK_EQUAL(MPI_Abi_set_fortran_info(MPI_INFO_NULL), static_cast<int>(MPI_ERR_INFO));
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_integer_size", "8");
  CHECK_EQUAL(MPI_Abi_set_fortran_info(info), static_cast<int>(MPI_ERR_ABI));  // our MPI_INTEGER has 4 bytes
  MPI_Info_set(info, "mpi_integer_size", "4");
  MPI_Info_set(info, "mpi_real16_supported", "true");
  CHECK_EQUAL(MPI_Abi_set_fortran_info(info), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Abi_set_fortran_info(info), static_cast<int>(MPI_ERR_ABI));
  MPI_Info_free(&info);
  CHECK_EQUAL(MPI_Abi_get_fortran_info(&info), MPI_SUCCESS);
  CHECK(info != MPI_INFO_NULL);
  CHECK_EQUAL(get(info, "mpi_integer_size"), std::string("4"));
  CHECK_EQUAL(get(info, "mpi_real16_supported"), std::string("true"));
  MPI_Info_free(&info);

  int yes = 0;
  int no = 0;
  int is_set = -1;
  CHECK_EQUAL(MPI_Abi_get_fortran_booleans(sizeof yes, &yes, &no, &is_set), MPI_SUCCESS);
  CHECK_EQUAL(is_set, 0);
  yes = -1;
  no = 0x20;
  CHECK_EQUAL(MPI_Abi_set_fortran_booleans(3, &yes, &no), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no), static_cast<int>(MPI_ERR_ABI));
  int got_yes = 7;
  int got_no = 7;
  CHECK_EQUAL(MPI_Abi_get_fortran_booleans(sizeof yes, &got_yes, &got_no, &is_set), MPI_SUCCESS);
  CHECK_EQUAL(is_set, 1);
  CHECK_EQUAL(got_yes, yes);
  CHECK_EQUAL(got_no, no);
  char other[8];
  CHECK_EQUAL(MPI_Abi_get_fortran_booleans(8, other, other, &is_set), MPI_SUCCESS);
  CHECK_EQUAL(is_set, 0);
}

}  // namespace

int main(int argc, char** argv) {
  predefined_handles_are_their_numbers();
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  predefined_handles_are_their_numbers();
  handles_of_the_program_round_trip();
  names_for_fortran();
  abi();
  fortran();
  MPI_Finalize();
}
