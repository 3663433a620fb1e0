// ranks: 1 2
#include "messages.hpp"

#include <numeric>
#include <vector>

// Messages of derived datatypes, in every kind of send and receive.
namespace {

using test::left;
using test::right;

constexpr int columns = 3;

// One column of a matrix, whose elements are `columns` apart.
struct Column {
  explicit Column(int count) : rows(count), matrix(static_cast<std::size_t>(columns * count)) {
    MPI_Type_vector(rows, 1, columns, MPI_INT, &type);
    MPI_Type_commit(&type);
  }
  Column(Column&&) = delete;
  ~Column() { MPI_Type_free(&type); }
  // Fills the column 1 of the matrix.
  void fill(int first) {
    matrix.assign(matrix.size(), -1);
    for (int i = 0; i < rows; ++i) at(i) = first + i;
  }
  void clear() { matrix.assign(matrix.size(), -1); }
  int& at(int row) { return matrix[static_cast<std::size_t>(row * columns + 1)]; }
  int* address() { return matrix.data() + 1; }
  void check(int first) {
    for (int i = 0; i < rows; ++i) {
      CHECK_EQUAL(at(i), first + i);
      CHECK_EQUAL((&at(i))[-1], -1);
      CHECK_EQUAL((&at(i))[1], -1);
    }
  }

  int rows;
  std::vector<int> matrix;
  MPI_Datatype type;
};

std::vector<int> sequence(int count, int first) {
  std::vector<int> made(static_cast<std::size_t>(count));
  std::iota(made.begin(), made.end(), first);
  return made;
}

// A column is received as a plain array, and the reverse.
void mix_types(Column& column) {
  std::vector<int> plain(static_cast<std::size_t>(column.rows));
  MPI_Status status;
  MPI_Request request;
  column.fill(5);
  MPI_Irecv(plain.data(), column.rows, MPI_INT, left(), 1, MPI_COMM_WORLD, &request);
  MPI_Send(column.address(), 1, column.type, right(), 1, MPI_COMM_WORLD);
  MPI_Wait(&request, &status);
  test::check_status(status, left(), 1, 4 * column.rows);
  CHECK(plain == sequence(column.rows, 5));
  column.clear();
  MPI_Isend(plain.data(), column.rows, MPI_INT, right(), 2, MPI_COMM_WORLD, &request);
  MPI_Recv(column.address(), 1, column.type, left(), 2, MPI_COMM_WORLD, &status);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  column.check(5);
  int count = 0;
  MPI_Get_count(&status, column.type, &count);
  CHECK_EQUAL(count, 1);
}

void use_every_function(Column& column) {
  Column other(column.rows);
  MPI_Status status;
  MPI_Request requests[2];
  column.fill(10);
  other.clear();
  MPI_Sendrecv(column.address(), 1, column.type, right(), 1, other.address(), 1, other.type, left(), 1, MPI_COMM_WORLD,
               &status);
  other.check(10);
  MPI_Sendrecv_replace(column.address(), 1, column.type, right(), 2, left(), 2, MPI_COMM_WORLD, &status);
  column.check(10);
  MPI_Isendrecv_replace(column.address(), 1, column.type, right(), 2, left(), 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Wait(&requests[0], &status);
  column.check(10);

  other.clear();
  MPI_Issend(column.address(), 1, column.type, right(), 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Message message;
  MPI_Mprobe(left(), 3, MPI_COMM_WORLD, &message, &status);
  test::check_status(status, left(), 3, 4 * column.rows);
  MPI_Mrecv(other.address(), 1, other.type, &message, &status);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  other.check(10);

  MPI_Send_init(column.address(), 1, column.type, right(), 4, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(other.address(), 1, other.type, left(), 4, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 2; ++round) {
    other.clear();
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    other.check(10);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

void use_a_buffer(Column& column) {
  Column other(column.rows);
  MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
  column.fill(20);
  MPI_Bsend(column.address(), 1, column.type, right(), 5, MPI_COMM_WORLD);
  column.clear();
  other.clear();
  MPI_Recv(other.address(), 1, other.type, left(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  other.check(20);
  void* address = nullptr;
  int size = 0;
  MPI_Buffer_detach(&address, &size);
}

// The type is freed while the messages are under way.
void free_the_type(int rows) {
  std::vector<int> plain(static_cast<std::size_t>(rows));
  MPI_Request requests[2];
  {
    Column column(rows);
    column.fill(30);
    Column other(rows);
    other.clear();
    MPI_Datatype type;
    MPI_Type_dup(column.type, &type);
    MPI_Irecv(other.address(), 1, type, left(), 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(column.address(), 1, type, right(), 6, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&type);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    other.check(30);
  }
}

void send_partitions(Column& column) {
  Column other(column.rows);
  MPI_Datatype element;
  MPI_Type_create_resized(MPI_INT, 0, columns * 4, &element);
  MPI_Type_commit(&element);
  MPI_Request requests[2];
  MPI_Psend_init(column.address(), 2, column.rows / 2, element, right(), 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &requests[0]);
  MPI_Precv_init(other.address(), 4, column.rows / 4, element, left(), 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  column.fill(40);
  other.clear();
  MPI_Startall(2, requests);
  MPI_Pready(1, requests[0]);
  MPI_Pready(0, requests[0]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  other.check(40);
  for (MPI_Request& request : requests) MPI_Request_free(&request);
  MPI_Type_free(&element);
}

void use_absolute_addresses() {
  static int value = 50;
  static int received = 0;
  MPI_Aint address = 0;
  const int one = 1;
  MPI_Datatype types[2];
  MPI_Get_address(&value, &address);
  MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &types[0]);
  MPI_Get_address(&received, &address);
  MPI_Type_create_hindexed(1, &one, &address, MPI_INT, &types[1]);
  for (MPI_Datatype& type : types) MPI_Type_commit(&type);
  MPI_Sendrecv(MPI_BOTTOM, 1, types[0], right(), 8, MPI_BOTTOM, 1, types[1], left(), 8, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  CHECK_EQUAL(received, 50);
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (const int rows : {4, 1000, 100'000}) {
    Column column(rows);
    mix_types(column);
    use_every_function(column);
    use_a_buffer(column);
    send_partitions(column);
    free_the_type(rows);
  }
  use_absolute_addresses();
  MPI_Finalize();
}
