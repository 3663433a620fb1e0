#include "mpi/messages/ending.hpp"

#include "mpi/messages/attached_buffer.hpp"
#include "mpi/requests/freed.hpp"

namespace tonari::mpi {

void end_messages() {
  drop_process_buffer();
  end_freed();
}

}  // namespace tonari::mpi
