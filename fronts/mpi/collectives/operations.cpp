#include "functions.hpp"
#include "mpi/collectives/combining.hpp"
#include "mpi/environment/handle_names.hpp"

#include <fmt/format.h>

// Operations of programs, and reductions of one process.
namespace tonari::mpi {

void op_create(UserFunction user_fn, int commute, MPI_Op* op) {
  if (user_fn.is_null()) throw Failure(MPI_ERR_ARG, "user_fn is a null pointer");
  auto* const made = new Op;
  made->function = user_fn;
  made->commutes = commute != 0;
  *op = made;
}

void op_free(MPI_Op* op) {
  Op* const freed = find(*op);
  if (freed == nullptr) fail_handle(MPI_ERR_OP, "op", "operation", *op);
  if (freed->is_predefined()) throw Failure(MPI_ERR_OP, fmt::format("op is {}, which cannot be freed", freed->name));
  (void)Ref<Op>::adopt(freed);
  *op = MPI_OP_NULL;
}

void op_commutative(Op& op, int* commute) { *commute = op.commutes ? 1 : 0; }

void reduce_local(const void* inbuf, void* inoutbuf, MPI_Count count, Datatype& datatype, Op& op) {
  if (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE) {
    throw Failure(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed: both buffers have operands");
  }
  if (op.is_predefined()) {
    const detail::Reduction reduction = Combining(op, datatype, count).reduction();
    return reduction.fold(inoutbuf, inbuf, static_cast<std::size_t>(count), nullptr);
  }
  const UserCall call{op.function, Ref<Datatype>(&datatype), handle_of(datatype), 0, 1};
  if (count != 0) UserCall::fold(inoutbuf, inbuf, static_cast<std::size_t>(count), &call);
}

}  // namespace tonari::mpi
