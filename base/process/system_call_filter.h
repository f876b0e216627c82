// A list of system calls that a thread, and all that it starts, may still make. It is a seccomp
// filter of classic BPF, made by hand since it is a list of comparisons. Linux on x86-64 and
// AArch64.
//
// A filter sees the number of a call and the values of its arguments, but not the memory that
// pointers point to. Calls with another architecture's numbers (32-bit ones, x32) end the process
// or fail. Filters add up: each further filter can only take rights away.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/status.h"

namespace kiln {

class SystemCallFilter {
 public:
  // Returns whether this kernel and this build can use filters. Builds with sanitizers cannot,
  // because sanitizers' runtimes make calls that programs have no use for.
  static bool Works();

  SystemCallFilter();

  void Allow(uint32_t call);
  // Allows a call if the lower half of an argument, masked, is `value`. Otherwise the call fails.
  void AllowIfArgument(uint32_t call, int index, uint32_t mask, uint32_t value);
  // Allows a call if the lower half of one argument is `value`, and that of another is none of
  // `others`.
  void AllowIfArgumentAndNone(uint32_t call, int index, uint32_t value, int other_index,
                              std::initializer_list<uint32_t> others);
  void Refuse(uint32_t call);

  enum class OtherCalls { kFail, kAllowed };
  enum class Threads { kThis, kAll };
  // Installs the filter for good. Calls that it refuses fail with EPERM. The process must have
  // given up new privileges (PR_SET_NO_NEW_PRIVS).
  Status Install(OtherCalls others, Threads threads);

 private:
  void Add(sock_filter instruction) { code_.push_back(instruction); }
  void LoadArgument(std::vector<sock_filter>& code, int index) const;
  // `test` either returns or falls through to the permission.
  void AllowIf(uint32_t call, std::span<const sock_filter> test);

  std::vector<sock_filter> code_;
};

}  // namespace kiln
