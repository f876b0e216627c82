// A list of system calls that a thread, and all that it starts, may still make: a seccomp filter,
// which libseccomp generates. Linux.
//
// A filter sees the number of a call and the values of its arguments, but not the memory that
// pointers point to. Calls with another architecture's numbers (32-bit ones, x32) end the process.
// Filters add up: each further filter can only take rights away.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/status.h"

namespace kiln {

class SystemCallFilter {
 public:
  // Returns whether this kernel and this build can use filters. Builds with sanitizers cannot,
  // because sanitizers' runtimes make calls that programs have no use for.
  static bool Works();

  enum class OtherCalls { kFail, kAllowed };
  // A call that fails gives EPERM. `others` are the calls that the filter does not name.
  explicit SystemCallFilter(OtherCalls others);
  ~SystemCallFilter();
  SystemCallFilter(const SystemCallFilter&) = delete;
  SystemCallFilter& operator=(const SystemCallFilter&) = delete;

  // These calls name system calls of this architecture (SYS_...). Install reports their errors.

  void Allow(uint32_t call);
  // Allows a call if the lower half of an argument, masked, is `value`.
  void AllowIfArgument(uint32_t call, unsigned index, uint32_t mask, uint32_t value);
  // Allows a call if the lower half of one argument is `value`, and that of another is one of
  // `others`.
  void AllowIfArguments(uint32_t call, unsigned index, uint32_t value, unsigned other_index,
                        std::initializer_list<uint32_t> others);
  void Refuse(uint32_t call);
  // Refuses a call if the lower half of an argument, masked, is `value`.
  void RefuseIfArgument(uint32_t call, unsigned index, uint32_t mask, uint32_t value);
  // Refuses a call if the lower half of an argument has any of these bits, or is not this value.
  void RefuseIfAnyBit(uint32_t call, unsigned index, uint32_t bits);
  void RefuseUnlessArgument(uint32_t call, unsigned index, uint32_t value);
  // Refuses a call with ENOSYS, so that callers take another one.
  void RefuseAsUnknown(uint32_t call);

  enum class Threads { kThis, kAll };
  // Installs the filter for good, and gives up new privileges (PR_SET_NO_NEW_PRIVS). Costs some
  // 200 us for a hundred calls.
  Status Install(Threads threads);

 private:
  // A scmp_filter_ctx.
  void* context_ = nullptr;
  // Set at the first rule that failed: an errno, positive.
  int error_ = 0;
};

}  // namespace kiln
