#include "base/process/system_call_filter.h"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_status.h"

namespace kiln {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr uint32_t kFails = SCMP_ACT_ERRNO(EPERM);
constexpr uint64_t kLowerHalf = 0xffffffff;
// libseccomp's second level finds a call by a binary search.
constexpr uint32_t kBinarySearch = 2;

scmp_arg_cmp Equals(unsigned index, uint64_t mask, uint64_t value) {
  return {index, SCMP_CMP_MASKED_EQ, mask, value};
}

// Adds a rule, and keeps the first error.
void Add(void* context, int& error, uint32_t action, uint32_t call,
         std::initializer_list<scmp_arg_cmp> tests) {
  const int result = seccomp_rule_add_array(context, action, static_cast<int>(call),
                                            static_cast<unsigned>(tests.size()), tests.begin());
  if (result < 0 && error == 0) error = -result;
}

}  // namespace

bool SystemCallFilter::Works() {
  const uint32_t action = SECCOMP_RET_KILL_PROCESS;
  return !kSanitized && syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

SystemCallFilter::SystemCallFilter(OtherCalls others)
    : context_(seccomp_init(others == OtherCalls::kAllowed ? SCMP_ACT_ALLOW : kFails)) {
  if (context_ == nullptr) error_ = ENOMEM;
}

SystemCallFilter::~SystemCallFilter() {
  if (context_ != nullptr) seccomp_release(context_);
}

void SystemCallFilter::Allow(uint32_t call) { Add(context_, error_, SCMP_ACT_ALLOW, call, {}); }

void SystemCallFilter::AllowIfArgument(uint32_t call, unsigned index, uint32_t mask,
                                       uint32_t value) {
  Add(context_, error_, SCMP_ACT_ALLOW, call, {Equals(index, mask, value)});
}

void SystemCallFilter::AllowIfArguments(uint32_t call, unsigned index, uint32_t value,
                                        unsigned other_index,
                                        std::initializer_list<uint32_t> others) {
  for (const uint32_t other : others) {
    Add(context_, error_, SCMP_ACT_ALLOW, call,
        {Equals(index, kLowerHalf, value), Equals(other_index, kLowerHalf, other)});
  }
}

void SystemCallFilter::Refuse(uint32_t call) { Add(context_, error_, kFails, call, {}); }

void SystemCallFilter::RefuseIfArgument(uint32_t call, unsigned index, uint32_t mask,
                                        uint32_t value) {
  Add(context_, error_, kFails, call, {Equals(index, mask, value)});
}

void SystemCallFilter::RefuseIfAnyBit(uint32_t call, unsigned index, uint32_t bits) {
  for (uint32_t rest = bits; rest != 0; rest &= rest - 1) {
    const uint32_t bit = rest & -rest;
    Add(context_, error_, kFails, call, {Equals(index, bit, bit)});
  }
}

void SystemCallFilter::RefuseUnlessArgument(uint32_t call, unsigned index, uint32_t value) {
  Add(context_, error_, kFails, call, {{index, SCMP_CMP_NE, value, 0}});
}

void SystemCallFilter::RefuseAsUnknown(uint32_t call) {
  Add(context_, error_, SCMP_ACT_ERRNO(ENOSYS), call, {});
}

Status SystemCallFilter::Install(Threads threads) {
  const auto set = [&](scmp_filter_attr attribute, uint32_t value) {
    if (error_ == 0) error_ = -seccomp_attr_set(context_, attribute, value);
  };
  set(SCMP_FLTATR_CTL_OPTIMIZE, kBinarySearch);
  // Otherwise such a call ends its thread alone, and the process goes on without it.
  set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  set(SCMP_FLTATR_CTL_TSYNC, threads == Threads::kAll);
  // Without this some kernels slow down all code behind a filter, to protect it against leaks that
  // such a process could not suffer from.
  set(SCMP_FLTATR_CTL_SSB, 1);
  if (error_ == 0) error_ = -seccomp_load(context_);
  if (error_ == 0) return OkStatus();
  return ErrnoStatus(error_, "cannot restrict the system calls of a process");
}

}  // namespace kiln
