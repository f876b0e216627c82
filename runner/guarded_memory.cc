#include "runner/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/errno_status.h"

namespace kiln::runner {
namespace {

constexpr unsigned char kCanary = 0xc3;
// Unmapped bytes on each side. They cost address space only, and catch a walk by whole rows.
constexpr size_t kUnmappedBytes = 1 << 20;

size_t RoundUp(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// An entry of the table that signal handlers read, so it has plain atomics and copies of names.
// Buffers beyond the table have no name.
struct Entry {
  std::atomic<uintptr_t> mapping_begin{0};
  std::atomic<uintptr_t> mapping_end{0};
  std::atomic<uintptr_t> payload_begin{0};
  std::atomic<uintptr_t> payload_end{0};
  char name[64] = {};
};
constexpr int kEntries = 4096;
Entry table[kEntries];

uintptr_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// Returns the slot of the new entry; none: the table is full.
std::optional<int> Register(std::string_view name, uintptr_t mapping, size_t mapping_bytes,
                            std::span<std::byte> payload) {
  for (int i = 0; i < kEntries; ++i) {
    uintptr_t expected = 0;
    Entry& entry = table[i];
    if (!entry.mapping_begin.compare_exchange_strong(expected, mapping)) continue;
    const size_t length = std::min(name.size(), sizeof(entry.name) - 1);
    std::memcpy(entry.name, name.data(), length);
    entry.name[length] = 0;
    entry.payload_begin = Address(payload.data());
    entry.payload_end = Address(payload.data() + payload.size());
    entry.mapping_end = mapping + mapping_bytes;
    return i;
  }
  return std::nullopt;
}

// Text with async-signal-safe appends.
struct Text {
  char* at;
  char* end;
  void Add(const char* text) {
    while (*text != 0 && at + 1 < end) *at++ = *text++;
    *at = 0;
  }
  void Add(uint64_t number) {
    char digits[24];
    char* first = digits + sizeof(digits) - 1;
    *first = 0;
    do {
      *--first = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    Add(first);
  }
};

void FillCanary(std::span<std::byte> bytes) { std::memset(bytes.data(), kCanary, bytes.size()); }

// Returns the offset of the first changed byte.
std::optional<size_t> FindChanged(std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != std::byte{kCanary}) return i;
  }
  return std::nullopt;
}

// Makes reserved pages usable.
bool Open(std::byte* pages, size_t bytes, GuardedMemory::Sharing sharing) {
  if (sharing == GuardedMemory::Sharing::kCopied) {
    return mprotect(pages, bytes, PROT_READ | PROT_WRITE) == 0;
  }
  return mmap(pages, bytes, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

}  // namespace

StatusOr<std::unique_ptr<GuardedMemory>> GuardedMemory::Allocate(std::string name, size_t bytes,
                                                                 size_t alignment,
                                                                 Sharing sharing) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  KILN_CHECK(bytes >= 1 && alignment >= 1 && alignment <= page, "{} bytes, alignment {}", bytes,
             alignment);
  // At least one alignment unit of canary bytes comes in front.
  const size_t usable = RoundUp(RoundUp(bytes, alignment) + alignment, page);
  const size_t total = usable + 2 * kUnmappedBytes;
  void* mapping =
      mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return ResourceExhausted("no {} bytes of memory for argument '{}': {}", bytes, name,
                             ErrnoText(errno));
  }
  auto memory = std::unique_ptr<GuardedMemory>(new GuardedMemory);
  memory->name_ = std::move(name);
  memory->mapping_ = static_cast<std::byte*>(mapping);
  memory->mapping_bytes_ = total;
  std::byte* usable_begin = memory->mapping_ + kUnmappedBytes;
  if (!Open(usable_begin, usable, sharing)) {
    return ResourceExhausted("no {} bytes of memory for argument '{}': {}", bytes, memory->name_,
                             ErrnoText(errno));
  }
  std::byte* payload = usable_begin + usable - RoundUp(bytes, alignment);
  memory->before_ = {usable_begin, payload};
  memory->payload_ = {payload, bytes};
  memory->after_ = {payload + bytes, usable_begin + usable};
  FillCanary(memory->before_);
  FillCanary(memory->after_);
  memory->slot_ = Register(memory->name_, Address(mapping), total, memory->payload_);
  return memory;
}

GuardedMemory::~GuardedMemory() {
  if (slot_.has_value()) {
    table[*slot_].mapping_end = 0;
    table[*slot_].mapping_begin = 0;
  }
  munmap(mapping_, mapping_bytes_);
}

Status GuardedMemory::CheckGuards() {
  // The search goes from the payload outwards, because the nearest change is the one to report.
  const std::optional<size_t> after = FindChanged(after_);
  ptrdiff_t before = static_cast<ptrdiff_t>(before_.size());
  while (before > 0 && before_[static_cast<size_t>(before - 1)] == std::byte{kCanary}) --before;
  const bool changed_before = before > 0;
  if (!after.has_value() && !changed_before) return OkStatus();
  FillCanary(before_);
  FillCanary(after_);
  if (after.has_value()) {
    return Internal("write outside of argument '{}': {} bytes after its end", name_, *after);
  }
  return Internal("write outside of argument '{}': {} bytes before its start", name_,
                  static_cast<ptrdiff_t>(before_.size()) - before + 1);
}

void GuardedMemory::InheritByFork(bool inherited) {
  const int failed = madvise(mapping_, mapping_bytes_, inherited ? MADV_DOFORK : MADV_DONTFORK);
  KILN_CHECK(failed == 0, "madvise of argument '{}': {}", name_, ErrnoText(errno));
}

void GuardedMemory::ForgetAllBut(const std::vector<const GuardedMemory*>& inherited) {
  for (int i = 0; i < kEntries; ++i) {
    const bool known = std::any_of(inherited.begin(), inherited.end(),
                                   [&](const GuardedMemory* memory) { return memory->slot_ == i; });
    if (known) continue;
    table[i].mapping_end = 0;
    table[i].mapping_begin = 0;
  }
}

bool DescribeAddress(const void* pointer, char* text, size_t text_bytes) {
  const uintptr_t address = Address(pointer);
  for (const Entry& entry : table) {
    if (address < entry.mapping_begin || address >= entry.mapping_end) continue;
    Text out{text, text + text_bytes};
    const uintptr_t begin = entry.payload_begin;
    const uintptr_t end = entry.payload_end;
    if (address >= end) {
      out.Add(address - end);
      out.Add(" bytes after the end of argument '");
    } else if (address < begin) {
      out.Add(begin - address);
      out.Add(" bytes before the start of argument '");
    } else {
      out.Add(address - begin);
      out.Add(" bytes into argument '");
    }
    out.Add(entry.name);
    out.Add("'");
    return true;
  }
  return false;
}

}  // namespace kiln::runner
