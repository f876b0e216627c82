// Host memory for one buffer, between canaries and unmapped pages.
//
//   | unmapped | canary bytes ... payload, aligned, as far back as it goes | canary | unmapped |
//
// A stray access far off faults; a near one changes canary bytes, seen by CheckGuards. Live ones
// are listed in a table that a signal handler may read, so that a fault is reported with the
// argument's name.
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
  // bytes >= 1; alignment a power of two, at most a page. ResourceExhausted when the kernel has no
  // memory.
  static StatusOr<std::unique_ptr<GuardedMemory>> Allocate(std::string name, size_t bytes,
                                                           size_t alignment);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::span<std::byte> bytes() const { return payload_; }

  // "write outside of argument 'conv': 12 bytes after its end", or OK. Restores the canaries.
  Status CheckGuards();

  // Whether forks of this process have it, too; at first they do.
  void InheritByFork(bool inherited);
  // In a fork: takes out of the table what it has not inherited.
  static void ForgetAllBut(const std::vector<const GuardedMemory*>& inherited);

 private:
  GuardedMemory() = default;

  std::string name_;
  std::byte* mapping_ = nullptr;  // unmapped pages included
  size_t mapping_bytes_ = 0;
  std::span<std::byte> before_;  // canaries
  std::span<std::byte> payload_;
  std::span<std::byte> after_;
  std::optional<int> slot_;  // in the table, where there was room
};

// For signal handlers: writes into `text` (NUL-terminated) what lies at `address`: "64 bytes after
// the end of argument 'conv'". False when no buffer is near.
bool DescribeAddress(const void* address, char* text, size_t text_bytes);

}  // namespace kiln::runner
