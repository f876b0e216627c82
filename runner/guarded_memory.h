// Host memory for one buffer, between canaries and unmapped pages.
//
//   | unmapped | canary bytes ... payload, aligned, as far back as it goes | canary | unmapped |
//
// A stray access far away faults. A near one changes canary bytes, which CheckGuards sees. All
// objects that exist are listed in a table that a signal handler may read, so that a fault is
// reported with the argument's name.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::runner {

class GuardedMemory {
 public:
  // Whether forks of this process get a copy of the memory, or see what this process writes and the
  // reverse.
  enum class Sharing { kCopied, kShared };

  // bytes >= 1; alignment is a power of two, at most a page. ResourceExhausted if the kernel has no
  // memory.
  static StatusOr<std::unique_ptr<GuardedMemory>> Allocate(std::string name, size_t bytes,
                                                           size_t alignment,
                                                           Sharing sharing = Sharing::kCopied);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::span<std::byte> bytes() const { return payload_; }

  // Returns "write outside of argument 'conv': 12 bytes after its end", or OK. Restores the
  // canaries.
  Status CheckGuards();

  // Sets whether forks of this process inherit the memory; at first they do.
  void InheritByFork(bool inherited);
  // Called in a fork: removes from the table the memory that the fork has not inherited.
  static void ForgetAllBut(const std::vector<const GuardedMemory*>& inherited);

 private:
  GuardedMemory() = default;

  std::string name_;
  // Start of the mapping, unmapped pages included.
  std::byte* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  // Canaries before and after the payload.
  std::span<std::byte> before_;
  std::span<std::byte> payload_;
  std::span<std::byte> after_;
  // Index in the table of buffers for signal handlers; none: the table was full.
  std::optional<int> slot_;
};

// For signal handlers: writes into `text` (NUL-terminated) what lies at `address`, as "64 bytes
// after the end of argument 'conv'". False if no buffer is near.
bool DescribeAddress(const void* address, char* text, size_t text_bytes);

}  // namespace kiln::runner
