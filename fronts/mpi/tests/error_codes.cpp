// ranks: 1
#include "check.hpp"

#include <set>
#include <string>

// Error classes and codes of the standard, and the ones that a program adds and removes.

namespace {

std::string text_of_code(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = -1;
  CHECK_EQUAL(MPI_Error_string(code, text, &length), MPI_SUCCESS);
  return text;
}

int class_of_code(int code) {
  int error_class = -1;
  CHECK_EQUAL(MPI_Error_class(code, &error_class), MPI_SUCCESS);
  return error_class;
}

int last_used() {
  int* value = nullptr;
  int flag = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, static_cast<void*>(&value), &flag);
  CHECK_EQUAL(flag, 1);
  return *value;
}

void every_class_has_a_sentence() {
  std::set<std::string> texts;
  for (int code = MPI_SUCCESS; code <= MPI_ERR_ABI; ++code) {
    CHECK_EQUAL(class_of_code(code), code);
    CHECK(texts.insert(text_of_code(code)).second);
  }
  for (int code = MPI_T_ERR_CANNOT_INIT; code <= MPI_T_ERR_PVAR_NO_ATOMIC; ++code) {
    CHECK_EQUAL(class_of_code(code), code);
    CHECK(texts.insert(text_of_code(code)).second);
  }
  CHECK_EQUAL(class_of_code(777), static_cast<int>(MPI_ERR_UNKNOWN));
  CHECK(!text_of_code(777).empty());
}

void programs_add_and_remove() {
  CHECK_EQUAL(last_used(), static_cast<int>(MPI_ERR_LASTCODE));
  int mine = 0;
  CHECK_EQUAL(MPI_Add_error_class(&mine), MPI_SUCCESS);
  CHECK(mine > MPI_ERR_LASTCODE);
  CHECK_EQUAL(last_used(), mine);
  CHECK_EQUAL(text_of_code(mine), std::string());
  int code = 0;
  CHECK_EQUAL(MPI_Add_error_code(mine, &code), MPI_SUCCESS);
  CHECK_EQUAL(last_used(), code);
  CHECK_EQUAL(class_of_code(code), mine);
  CHECK_EQUAL(MPI_Add_error_string(code, "the pump is dry"), MPI_SUCCESS);
  CHECK_EQUAL(text_of_code(code), std::string("the pump is dry"));
  int other = 0;
  CHECK_EQUAL(MPI_Add_error_code(MPI_ERR_IO, &other), MPI_SUCCESS);
  CHECK_EQUAL(class_of_code(other), static_cast<int>(MPI_ERR_IO));

  CHECK_EQUAL(MPI_Add_error_code(777, &other), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Add_error_code(code, &other), static_cast<int>(MPI_ERR_ARG));  // a code is no class
  CHECK_EQUAL(MPI_Add_error_string(MPI_ERR_IO, "mine"), static_cast<int>(MPI_ERR_ARG));
  const std::string long_text(MPI_MAX_ERROR_STRING, 'x');
  CHECK_EQUAL(MPI_Add_error_string(code, long_text.c_str()), static_cast<int>(MPI_ERR_ARG));

  // A class goes after its codes, and a code after its string.
  CHECK_EQUAL(MPI_Remove_error_class(mine), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Remove_error_code(code), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Remove_error_string(code), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Remove_error_string(code), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Remove_error_class(code), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Remove_error_code(code), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Remove_error_code(code), static_cast<int>(MPI_ERR_ARG));
  CHECK_EQUAL(MPI_Remove_error_class(mine), MPI_SUCCESS);
  CHECK_EQUAL(MPI_Remove_error_code(other), MPI_SUCCESS);
  CHECK_EQUAL(last_used(), static_cast<int>(MPI_ERR_LASTCODE));
  CHECK_EQUAL(MPI_Remove_error_class(MPI_ERR_IO), static_cast<int>(MPI_ERR_ARG));
}

int seen_code = 0;
void note(MPI_Comm*, int* code, ...) { seen_code = *code; }

void handlers_get_codes_of_the_program() {
  int code = 0;
  MPI_Add_error_code(MPI_ERR_OTHER, &code);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Errhandler_free(&handler);
  CHECK_EQUAL(MPI_Comm_call_errhandler(MPI_COMM_WORLD, code), MPI_SUCCESS);
  CHECK_EQUAL(seen_code, code);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Remove_error_code(code);
}

}  // namespace

int main(int argc, char** argv) {
  // A library may add its codes before MPI_Init.
  int early = 0;
  MPI_Add_error_class(&early);
  MPI_Remove_error_class(early);

  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  every_class_has_a_sentence();
  programs_add_and_remove();
  handlers_get_codes_of_the_program();
  MPI_Finalize();
}
