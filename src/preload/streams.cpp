#include "preload/streams.hpp"

#include "preload/commands.hpp"
#include "preload/exported.hpp"
#include "preload/lock.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

// Wraps stdio where the kernel reports only the program's own faults. glibc's stdio makes system calls internally. They
// use the stream's buffer, which the program's own allocator may have put into the arena, and for large transfers the
// caller's memory. So streams get buffers from here, and data in unreached memory is copied through local memory.
namespace tonari::preload {

namespace {

// The streams' buffers. A stream that finds no free buffer keeps libc's.
class Buffers {
 public:
  static constexpr std::size_t count = 1024;
  static constexpr std::size_t buffer_bytes = page_bytes;

  // Returns the stream's buffer, also if the stream has been reopened at the same address; nullptr if there is none.
  std::byte* take(const FILE* stream) noexcept {
    const Guard guard(lock_);
    if (start_ == nullptr) reserve();
    if (start_ == nullptr) return nullptr;
    auto* place = std::ranges::find(users_, stream);
    if (place == users_.end()) place = std::ranges::find(users_, nullptr);
    if (place == users_.end()) return nullptr;
    *place = stream;
    return start_ + static_cast<std::size_t>(place - users_.begin()) * buffer_bytes;
  }
  // Returns the stream's place, or nullptr. Must be called before the stream is closed: later, another stream may have
  // the same address. Closing may still use the buffer.
  const FILE** find(const FILE* stream) noexcept {
    const Guard guard(lock_);
    auto* const place = std::ranges::find(users_, stream);
    return place != users_.end() ? place : nullptr;
  }
  void release(const FILE** place) noexcept {
    const Guard guard(lock_);
    *place = nullptr;
  }
  void rename(const FILE** place) noexcept {
    const Guard guard(lock_);
    *place = closing;
  }

 private:
  inline static const FILE* const closing = reinterpret_cast<const FILE*>(1);

  void reserve() noexcept {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    const long at = system_call(SYS_mmap, nullptr, count * buffer_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (!is_error(at)) start_ = static_cast<std::byte*>(pointer_to(static_cast<Address>(at)));
  }

  Lock lock_;
  std::byte* start_ = nullptr;
  std::array<const FILE*, count> users_{};
};
constinit Buffers buffers{};

// Set before main() by buffer_standard_streams(), or never.
constinit bool is_wrapped = false;

template <class Close>
int close(FILE* stream, Close close_it) {
  const pid_t command = forget_command(stream);
  const FILE** const place = is_wrapped ? buffers.find(stream) : nullptr;
  if (place != nullptr) buffers.rename(place);  // another stream may get this address before the buffer is released
  const int answer = close_it(stream);
  if (place != nullptr) buffers.release(place);
  return command != 0 ? wait_for_command(command) : answer;
}

/// Holds a stream's lock over several calls.
class Held {
 public:
  explicit Held(FILE* stream) noexcept : stream_(stream) { ::flockfile(stream); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { ::funlockfile(stream_); }

 private:
  FILE* stream_;
};

constexpr std::size_t piece_bytes_max = 1 << 20;

// Returns false if libc's own function can do the call.
bool is_local_needed(const void* start, std::size_t size, std::size_t count, std::size_t& all) noexcept {
  if (__builtin_mul_overflow(size, count, &all) || all == 0) return false;
  return is_unreached(start, all);
}

}  // namespace

// The mode is the one that libc would choose: line by line for a terminal.
FILE* buffered(FILE* stream) noexcept {
  if (stream == nullptr || !is_wrapped) return stream;
  const int before = errno;
  if (std::byte* const buffer = buffers.take(stream)) {
    const int file = ::fileno(stream);
    const int mode = file >= 0 && ::isatty(file) == 1 ? _IOLBF : _IOFBF;
    (void)std::setvbuf(stream, reinterpret_cast<char*>(buffer), mode, Buffers::buffer_bytes);
  }
  errno = before;
  return stream;
}

void buffer_standard_streams() noexcept {
  if (is_wrapped) return;
  is_wrapped = true;
  (void)buffered(stdin);
  (void)buffered(stdout);
}

}  // namespace tonari::preload

using namespace tonari::preload;

TONARI_NEXT(fread)
TONARI_NEXT(fread_unlocked)
TONARI_NEXT(fwrite)
TONARI_NEXT(fwrite_unlocked)
TONARI_NEXT(fputs)
TONARI_NEXT(fputs_unlocked)
TONARI_NEXT(puts)
TONARI_NEXT(fopen)
TONARI_NEXT(fopen64)
TONARI_NEXT(freopen)
TONARI_NEXT(freopen64)
TONARI_NEXT(fdopen)
TONARI_NEXT(tmpfile)
TONARI_NEXT(tmpfile64)
TONARI_NEXT(fclose)
TONARI_NEXT(pclose)
TONARI_NEXT(setvbuf)

namespace {

std::size_t read_pieces(void* to, std::size_t all, FILE* stream) {
  Local local(std::min(all, piece_bytes_max));
  if (local.start() == nullptr) return next::fread_unlocked(to, 1, all, stream);
  std::size_t done = 0;
  for (std::size_t got = local.bytes(); done < all && got == local.bytes(); done += got) {
    const std::size_t wanted = std::min(all - done, local.bytes());
    got = local.during([&] { return next::fread_unlocked(local.start(), 1, wanted, stream); });
    std::memcpy(static_cast<std::byte*>(to) + done, local.start(), got);
  }
  return done;
}

std::size_t write_pieces(const void* from, std::size_t all, FILE* stream) {
  Local local(std::min(all, piece_bytes_max));
  if (local.start() == nullptr) return next::fwrite_unlocked(from, 1, all, stream);
  std::size_t done = 0;
  for (std::size_t put = local.bytes(); done < all && put == local.bytes(); done += put) {
    const std::size_t wanted = std::min(all - done, local.bytes());
    std::memcpy(local.start(), static_cast<const std::byte*>(from) + done, wanted);
    put = local.during([&] { return next::fwrite_unlocked(local.start(), 1, wanted, stream); });
  }
  return done;
}

}  // namespace

TONARI_EXPORTED std::size_t fread(void* to, std::size_t size, std::size_t count, FILE* stream) {
  std::size_t all = 0;
  if (!is_local_needed(to, size, count, all)) [[likely]]
    return next::fread(to, size, count, stream);
  const Held held(stream);
  return read_pieces(to, all, stream) / size;
}
TONARI_EXPORTED std::size_t fread_unlocked(void* to, std::size_t size, std::size_t count, FILE* stream) {
  std::size_t all = 0;
  if (!is_local_needed(to, size, count, all)) [[likely]]
    return next::fread_unlocked(to, size, count, stream);
  return read_pieces(to, all, stream) / size;
}
TONARI_EXPORTED std::size_t fwrite(const void* from, std::size_t size, std::size_t count, FILE* stream) {
  std::size_t all = 0;
  if (!is_local_needed(from, size, count, all)) [[likely]]
    return next::fwrite(from, size, count, stream);
  const Held held(stream);
  return write_pieces(from, all, stream) / size;
}
TONARI_EXPORTED std::size_t fwrite_unlocked(const void* from, std::size_t size, std::size_t count, FILE* stream) {
  std::size_t all = 0;
  if (!is_local_needed(from, size, count, all)) [[likely]]
    return next::fwrite_unlocked(from, size, count, stream);
  return write_pieces(from, all, stream) / size;
}
TONARI_EXPORTED int fputs(const char* text, FILE* stream) {
  if (!is_unreached(text, 1)) [[likely]]
    return next::fputs(text, stream);
  const std::size_t bytes = std::strlen(text);
  return fwrite(text, 1, bytes, stream) == bytes ? 1 : EOF;
}
TONARI_EXPORTED int fputs_unlocked(const char* text, FILE* stream) {
  if (!is_unreached(text, 1)) [[likely]]
    return next::fputs_unlocked(text, stream);
  const std::size_t bytes = std::strlen(text);
  return fwrite_unlocked(text, 1, bytes, stream) == bytes ? 1 : EOF;
}
TONARI_EXPORTED int puts(const char* text) {
  if (!is_unreached(text, 1)) [[likely]]
    return next::puts(text);
  const Held held(stdout);
  return fputs_unlocked(text, stdout) == EOF ? EOF : ::putchar_unlocked('\n') == EOF ? EOF : 1;
}

extern "C" [[noreturn]] void __chk_fail() noexcept;
TONARI_EXPORTED std::size_t __fread_chk(void* to, std::size_t room, std::size_t size, std::size_t count, FILE* stream) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(size, count, &all) || all > room) __chk_fail();
  return fread(to, size, count, stream);
}
TONARI_EXPORTED std::size_t __fread_unlocked_chk(void* to, std::size_t room, std::size_t size, std::size_t count,
                                                 FILE* stream) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(size, count, &all) || all > room) __chk_fail();
  return fread_unlocked(to, size, count, stream);
}

TONARI_EXPORTED FILE* fopen(const char* path, const char* mode) {
  return buffered(repeated([&] { return next::fopen(path, mode); }, Text{path}));
}
TONARI_EXPORTED FILE* fopen64(const char* path, const char* mode) {
  return buffered(repeated([&] { return next::fopen64(path, mode); }, Text{path}));
}
// freopen closes the stream even if it fails, so the path must be present at the first call.
TONARI_EXPORTED FILE* freopen(const char* path, const char* mode, FILE* stream) {
  (void)touch(Text{path});
  return buffered(next::freopen(path, mode, stream));
}
TONARI_EXPORTED FILE* freopen64(const char* path, const char* mode, FILE* stream) {
  (void)touch(Text{path});
  return buffered(next::freopen64(path, mode, stream));
}
TONARI_EXPORTED FILE* fdopen(int file, const char* mode) noexcept { return buffered(next::fdopen(file, mode)); }
TONARI_EXPORTED FILE* tmpfile() { return buffered(next::tmpfile()); }
TONARI_EXPORTED FILE* tmpfile64() { return buffered(next::tmpfile64()); }
TONARI_EXPORTED int fclose(FILE* stream) {
  return tonari::preload::close(stream, [](FILE* each) { return next::fclose(each); });
}
// It closes also streams that libc's popen has not made (commands.cpp).
TONARI_EXPORTED int pclose(FILE* stream) {
  return tonari::preload::close(stream, [](FILE* each) { return next::pclose(each); });
}

// If the kernel may not reach the program's buffer, that buffer stays unused.
TONARI_EXPORTED int setvbuf(FILE* stream, char* buffer, int mode, std::size_t bytes) noexcept {
  if (buffer == nullptr || mode == _IONBF || !is_unreached(buffer, bytes)) {
    return next::setvbuf(stream, buffer, mode, bytes);
  }
  std::byte* const ours = buffers.take(stream);
  return next::setvbuf(stream, reinterpret_cast<char*>(ours), mode, ours != nullptr ? Buffers::buffer_bytes : 0);
}
TONARI_EXPORTED void setbuffer(FILE* stream, char* buffer, std::size_t bytes) noexcept {
  (void)setvbuf(stream, buffer, buffer != nullptr ? _IOFBF : _IONBF, bytes);
}
TONARI_EXPORTED void setbuf(FILE* stream, char* buffer) noexcept { setbuffer(stream, buffer, BUFSIZ); }
TONARI_EXPORTED void setlinebuf(FILE* stream) noexcept { (void)setvbuf(stream, nullptr, _IOLBF, 0); }
