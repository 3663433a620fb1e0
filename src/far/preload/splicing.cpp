#include "far/preload/program.hpp"
#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>

#include <algorithm>

// Replaces vmsplice. The kernel would put the pages themselves into the pipe. It would fail at absent ones where it
// does not report its own faults; and when a page leaves, the pager uses its memory for another page, whose bytes the
// reader of the pipe would get. So the pipe gets pages with a copy, which nobody changes: it has the bytes of the time
// of the call. Without far memory it would also show what the program writes to them later.
TONARI_NEXT(vmsplice)

namespace tonari::far {

namespace {

bool is_far(const iovec& part) noexcept {
  return is_ready() && !first_far_part_of({address_of(part.iov_base), part.iov_len}).is_empty();
}

// A wrong count is left to the kernel to report, and so are parts that cannot be read.
bool are_far(const iovec* parts, std::size_t count) noexcept {
  if (count > IOV_MAX || !is_accessible(parts, count * sizeof *parts, Access::read)) return false;
  const Pieces all(parts, count);
  return is_unreached(all) || std::ranges::any_of(all, is_far);
}

[[gnu::cold, gnu::noinline]] ssize_t splice_copy(int pipe, Pieces parts, unsigned flags) {
  const int room = ::fcntl(pipe, F_GETPIPE_SZ);
  const std::size_t wanted = std::min<std::size_t>(bytes_of(parts), room > 0 ? static_cast<unsigned>(room) : 0);
  const std::size_t bytes = accessible(parts, 0, wanted, Access::read);
  if (bytes == 0) return next::vmsplice(pipe, parts.data(), parts.size(), flags);
  Local local(bytes, true);
  if (local.start() == nullptr) return failed(ENOMEM, ssize_t{-1});
  gather(parts, 0, local.start(), bytes);
  const iovec copy{local.start(), bytes};
  return local.during([&] { return next::vmsplice(pipe, &copy, 1, flags); });
}

ssize_t read_pipe(int pipe, Pieces parts, unsigned flags) {
  const auto call = [=](std::byte* start, std::size_t bytes, std::size_t /*done*/) {
    const iovec part{start, bytes};
    return next::vmsplice(pipe, &part, 1, flags);
  };
  return fill_locally(parts, call, [] { return false; });
}

}  // namespace

}  // namespace tonari::far

using namespace tonari::far;

TONARI_EXPORTED ssize_t vmsplice(int pipe, const iovec* parts, std::size_t count, unsigned flags) {
  const int mode = ::fcntl(pipe, F_GETFL);
  if (mode < 0 || !are_far(parts, count)) return next::vmsplice(pipe, parts, count, flags);
  const Pieces all(parts, count);
  return (mode & O_ACCMODE) == O_RDONLY ? read_pipe(pipe, all, flags) : splice_copy(pipe, all, flags);
}
