#include "base/process/system_call_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/errno_status.h"

namespace kiln {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
// The first call number of x32.
constexpr uint32_t kFirstForeignCall = 0x40000000;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr uint32_t kFirstForeignCall = UINT32_MAX;
#else
// There is no filter for other architectures.
constexpr uint32_t kArchitecture = 0;
constexpr uint32_t kFirstForeignCall = UINT32_MAX;
#endif

constexpr uint32_t kFails = SECCOMP_RET_ERRNO | EPERM;

sock_filter Load(size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}
sock_filter Return(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

}  // namespace

bool SystemCallFilter::Works() {
  const uint32_t action = SECCOMP_RET_KILL_PROCESS;
  return kArchitecture != 0 && !kSanitized &&
         syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

SystemCallFilter::SystemCallFilter() {
  Add(Load(offsetof(seccomp_data, arch)));
  Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
  Add(Return(SECCOMP_RET_KILL_PROCESS));
  Add(Load(offsetof(seccomp_data, nr)));
  Add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstForeignCall, 0, 1));
  Add(Return(kFails));
}

void SystemCallFilter::LoadArgument(std::vector<sock_filter>& code, int index) const {
  code.push_back(
      Load(offsetof(seccomp_data, args) + sizeof(uint64_t) * static_cast<size_t>(index)));
}

void SystemCallFilter::AllowIf(uint32_t call, std::span<const sock_filter> test) {
  Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, static_cast<uint8_t>(test.size() + 1)));
  code_.insert(code_.end(), test.begin(), test.end());
  Add(Return(SECCOMP_RET_ALLOW));
}

void SystemCallFilter::Allow(uint32_t call) { AllowIf(call, {}); }

void SystemCallFilter::Refuse(uint32_t call) {
  Add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
  Add(Return(kFails));
}

void SystemCallFilter::AllowIfArgument(uint32_t call, int index, uint32_t mask, uint32_t value) {
  std::vector<sock_filter> test;
  LoadArgument(test, index);
  test.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
  test.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
  test.push_back(Return(kFails));
  AllowIf(call, test);
}

void SystemCallFilter::AllowIfArgumentAndNone(uint32_t call, int index, uint32_t value,
                                              int other_index,
                                              std::initializer_list<uint32_t> others) {
  std::vector<sock_filter> test;
  LoadArgument(test, index);
  test.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
  test.push_back(Return(kFails));
  LoadArgument(test, other_index);
  for (const uint32_t other : others) {
    test.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1));
    test.push_back(Return(kFails));
  }
  AllowIf(call, test);
}

Status SystemCallFilter::Install(OtherCalls others, Threads threads) {
  Add(Return(others == OtherCalls::kAllowed ? SECCOMP_RET_ALLOW : kFails));
  sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
  // Without the second flag some kernels slow down all code behind a filter, to protect it against
  // leaks that such a process could not suffer from.
  const unsigned flags =
      SECCOMP_FILTER_FLAG_SPEC_ALLOW | (threads == Threads::kAll ? SECCOMP_FILTER_FLAG_TSYNC : 0u);
  const long failed = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (failed == 0) return OkStatus();
  return ErrnoStatus(failed > 0 ? EBUSY : errno, "cannot restrict the system calls of a process");
}

}  // namespace kiln
