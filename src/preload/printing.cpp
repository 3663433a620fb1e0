#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cwchar>

// Wraps printf and its relatives where the kernel reports only the program's own faults (see unreached.hpp). glibc
// passes long strings to the kernel directly. So the text is formatted first, and then written by our own fwrite and
// write.
extern "C" int __vsnprintf_chk(char* to, std::size_t bytes, int flag, std::size_t room, const char* format,
                               std::va_list arguments);
extern "C" int __vfprintf_chk(FILE* stream, int flag, const char* format, std::va_list arguments);
extern "C" int __vdprintf_chk(int file, int flag, const char* format, std::va_list arguments);

using namespace tonari::preload;

TONARI_NEXT(vfprintf)
TONARI_NEXT(vdprintf)
TONARI_NEXT(__vfprintf_chk)
TONARI_NEXT(__vdprintf_chk)

namespace {

constexpr int unchecked = 0;  // the functions with checks have a larger flag

/// The formatted text, in this object or in allocated memory.
class Printed {
 public:
  Printed(int flag, const char* format, std::va_list arguments) {
    std::va_list again;
    va_copy(again, arguments);
    bytes_ = __vsnprintf_chk(here_.data(), here_.size(), flag, here_.size(), format, arguments);
    if (bytes_ >= static_cast<int>(here_.size())) {
      const std::size_t needed = static_cast<std::size_t>(bytes_) + 1;
      own_ = static_cast<char*>(std::malloc(needed));
      bytes_ = own_ != nullptr ? __vsnprintf_chk(own_, needed, flag, needed, format, again) : -1;
    }
    va_end(again);
  }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  ~Printed() { std::free(own_); }

  /// Returns a negative number on failure, and errno is set.
  [[nodiscard]] int bytes() const noexcept { return bytes_; }
  [[nodiscard]] const char* text() const noexcept { return own_ != nullptr ? own_ : here_.data(); }

 private:
  std::array<char, 2048> here_;
  char* own_ = nullptr;
  int bytes_;
};

int print(FILE* stream, int flag, const char* format, std::va_list arguments) {
  const Printed printed(flag, format, arguments);
  if (printed.bytes() < 0) return -1;
  const auto bytes = static_cast<std::size_t>(printed.bytes());
  return fwrite(printed.text(), 1, bytes, stream) == bytes ? printed.bytes() : -1;
}

int print(int file, int flag, const char* format, std::va_list arguments) {
  const Printed printed(flag, format, arguments);
  for (int done = 0; done < printed.bytes();) {
    const ssize_t put = write(file, printed.text() + done, static_cast<std::size_t>(printed.bytes() - done));
    if (put < 0) return -1;
    done += static_cast<int>(put);
  }
  return printed.bytes();
}

}  // namespace

TONARI_EXPORTED int vfprintf(FILE* stream, const char* format, std::va_list arguments) {
  // A stream of wide characters fails as libc's call does.
  if (!may_be_unreached() || std::fwide(stream, 0) > 0) return next::vfprintf(stream, format, arguments);
  return print(stream, unchecked, format, arguments);
}
TONARI_EXPORTED int __vfprintf_chk(FILE* stream, int flag, const char* format, std::va_list arguments) {
  if (!may_be_unreached() || std::fwide(stream, 0) > 0) return next::__vfprintf_chk(stream, flag, format, arguments);
  return print(stream, flag, format, arguments);
}
TONARI_EXPORTED int vdprintf(int file, const char* format, std::va_list arguments) {
  return may_be_unreached() ? print(file, unchecked, format, arguments) : next::vdprintf(file, format, arguments);
}
TONARI_EXPORTED int __vdprintf_chk(int file, int flag, const char* format, std::va_list arguments) {
  return may_be_unreached() ? print(file, flag, format, arguments)
                            : next::__vdprintf_chk(file, flag, format, arguments);
}
TONARI_EXPORTED int vprintf(const char* format, std::va_list arguments) { return vfprintf(stdout, format, arguments); }
TONARI_EXPORTED int __vprintf_chk(int flag, const char* format, std::va_list arguments) {
  return __vfprintf_chk(stdout, flag, format, arguments);
}

TONARI_EXPORTED int printf(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int answer = vfprintf(stdout, format, arguments);
  va_end(arguments);
  return answer;
}
TONARI_EXPORTED int __printf_chk(int flag, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int answer = __vfprintf_chk(stdout, flag, format, arguments);
  va_end(arguments);
  return answer;
}
TONARI_EXPORTED int fprintf(FILE* stream, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int answer = vfprintf(stream, format, arguments);
  va_end(arguments);
  return answer;
}
TONARI_EXPORTED int __fprintf_chk(FILE* stream, int flag, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int answer = __vfprintf_chk(stream, flag, format, arguments);
  va_end(arguments);
  return answer;
}
TONARI_EXPORTED int dprintf(int file, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int answer = vdprintf(file, format, arguments);
  va_end(arguments);
  return answer;
}
TONARI_EXPORTED int __dprintf_chk(int file, int flag, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  const int answer = __vdprintf_chk(file, flag, format, arguments);
  va_end(arguments);
  return answer;
}
