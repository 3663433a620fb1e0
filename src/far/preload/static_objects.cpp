#include "far/preload/static_objects.hpp"

#include "far/channel.hpp"
#include "far/preload/elf_files.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tonari::far {

namespace {

bool is_variable(const ElfW(Sym) & symbol) noexcept {
  return symbol.st_shndx != SHN_UNDEF && (symbol.st_info & 0xf) == STT_OBJECT;
}

// Small variables must not be far memory if the file imports one of these functions (names begin so). Children of
// clone() do not inherit far memory.
constexpr std::array<std::string_view, 2> harm_always{"clone", "__clone"};

class Search {
 public:
  Search(StaticSearch wanted, std::span<StaticRange> into) noexcept : wanted_(wanted), into_(into) {}

  void look_at(const dl_phdr_info& object) noexcept {
    const File file(path_of(object));
    if (!is_file_of(object, file)) return;
    const Symbols symbols = symbols_of(file);
    if (may_take_unnamed(symbols)) return take_unnamed(object, symbols);
    for (const ElfW(Sym) & symbol : symbols.all) {
      if (is_variable(symbol) && symbol.st_size >= wanted_.bytes_min) take(range_of(object, symbol), object);
    }
  }

  [[nodiscard]] std::size_t finish() noexcept {
    std::ranges::sort(into_.first(count_), {}, &StaticRange::start);
    return count_;
  }

 private:
  // Without any symbols, nothing tells what the file imports.
  [[nodiscard]] bool may_take_unnamed(const Symbols& symbols) const noexcept {
    return !symbols.is_complete && !symbols.all.empty() && !imports_one_of(harm_always, symbols) &&
           (wanted_.reaches_everything || !imports_one_of(harm_unreached, symbols));
  }

  // Takes .data and .bss, each as one variable, and cuts the small variables out that have symbols.
  void take_unnamed(const dl_phdr_info& object, const Symbols& symbols) noexcept {
    const std::size_t bytes_min = unnamed_factor * wanted_.bytes_min;
    const std::size_t before = count_;
    for (const ElfW(Phdr) & part : headers_of(object)) {
      if (!is_writable(part)) continue;
      const Range whole = range_of(object, part);
      const Address data = end_of_read_only(object, whole);
      const Address bss = std::max(data, to_whole_pages(whole.start + part.p_filesz));
      if (bss - data >= bytes_min) take({data, bss - data}, object);
      if (whole.end() > bss && whole.end() - bss >= bytes_min) take({bss, whole.end() - bss}, object);
    }
    if (count_ == before) return;
    for (const ElfW(Sym) & symbol : symbols.all) {
      if (symbol.st_shndx == SHN_UNDEF || (is_variable(symbol) && symbol.st_size >= wanted_.bytes_min)) continue;
      const Range small = range_of(object, symbol);
      const Address first = small.start / page_bytes * page_bytes;
      cut_out({first, to_whole_pages(small.end() + 1) - first});
    }
  }

  void cut_out(Range pages) noexcept {
    for (std::size_t i = 0; i < count_;) {
      const StaticRange range = into_[i];
      if (pages.cut_to(range).is_empty()) {
        ++i;
        continue;
      }
      into_[i] = into_[--count_];
      const Address low = std::max(range.start, pages.start);
      const Address high = std::min(range.end(), pages.end());
      for (const Range rest : {Range{range.start, low - range.start}, Range{high, range.end() - high}}) {
        if (rest.bytes >= wanted_.bytes_min) add({rest, range.is_in_file});
      }
    }
  }

  void take(Range variable, const dl_phdr_info& object) noexcept {
    const Address start = to_whole_pages(variable.start);
    const Address end = variable.end() / page_bytes * page_bytes;
    if (variable.end() < variable.start || end <= start) return;
    const Range pages{start, end - start};
    for (const ElfW(Phdr) & part : headers_of(object)) {
      const bool becomes_read_only = part.p_type == PT_GNU_RELRO;
      if (becomes_read_only && !pages.cut_to(range_of(object, part)).is_empty()) return;
    }
    for (const ElfW(Phdr) & part : headers_of(object)) {
      if (!is_writable(part) || pages.cut_to(range_of(object, part)) != pages) continue;
      const bool is_in_file = start < to_whole_pages(object.dlpi_addr + part.p_vaddr + part.p_filesz);
      insert({pages, is_in_file});
    }
  }

  // Joins ranges that overlap (two names of one variable) or meet.
  void insert(StaticRange range) noexcept {
    for (std::size_t i = 0; i < count_;) {
      const StaticRange& other = into_[i];
      if (other.is_in_file != range.is_in_file || other.end() < range.start || range.end() < other.start) {
        ++i;
        continue;
      }
      const Address start = std::min(range.start, other.start);
      range = {{start, std::max(range.end(), other.end()) - start}, range.is_in_file};
      into_[i] = into_[--count_];
      i = 0;
    }
    add(range);
  }

  void add(StaticRange range) noexcept {
    if (count_ < into_.size()) {
      into_[count_++] = range;
      return;
    }
    StaticRange& smallest = *std::ranges::min_element(into_, {}, &StaticRange::bytes);
    if (smallest.bytes < range.bytes) smallest = range;
  }

  StaticSearch wanted_;
  std::span<StaticRange> into_;
  std::size_t count_ = 0;
};

struct LargeFiles {
  std::size_t bytes_min;
  std::span<Address> into;
  std::size_t count = 0;
};

int note_large(dl_phdr_info* object, std::size_t /*bytes*/, void* found) noexcept {
  LargeFiles& files = *static_cast<LargeFiles*>(found);
  if (files.count == files.into.size()) return 1;
  if (is_large(*object, files.bytes_min) && !is_spared(*object))
    files.into[files.count++] = address_of(object->dlpi_phdr);
  return 0;
}

struct OneFile {
  Address headers;
  LoadedFile& file;
  Search search;
};

// The file cannot be unloaded meanwhile.
int look_at(dl_phdr_info* object, std::size_t /*bytes*/, void* one) noexcept {
  auto& [headers, file, search] = *static_cast<OneFile*>(one);
  if (address_of(object->dlpi_phdr) != headers) return 0;
  const std::string_view path = object->dlpi_name != nullptr ? object->dlpi_name : "";
  if (path.size() >= file.path.size()) return 1;
  file = {.headers = headers, .moved_by = object->dlpi_addr, .path = {}};
  std::ranges::copy(path, file.path.begin());
  search.look_at(*object);
  return 1;
}

}  // namespace

std::size_t find_large_files(std::size_t bytes_min, std::span<Address> into) noexcept {
  LargeFiles files{.bytes_min = bytes_min, .into = into};
  (void)::dl_iterate_phdr(note_large, &files);
  return files.count;
}

std::size_t find_static_objects(const dl_phdr_info& object, StaticSearch wanted, std::span<StaticRange> into) noexcept {
  Search search(wanted, into);
  search.look_at(object);
  return search.finish();
}

std::size_t find_static_objects(Address headers, StaticSearch wanted, LoadedFile& file,
                                std::span<StaticRange> into) noexcept {
  OneFile one{.headers = headers, .file = file, .search = Search(wanted, into)};
  (void)::dl_iterate_phdr(look_at, &one);
  return one.search.finish();
}

}  // namespace tonari::far
