#include "base/process/process_identity.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <sstream>
#include <utility>

#include "base/errno_status.h"
#include "base/file/fd.h"
#include "base/file/file.h"

namespace kiln {
namespace {

constexpr size_t kStatBytes = 4096;
// The state is the third field, the start the 22nd.
constexpr int kFieldsBetween = 18;

StatusOr<std::string> BootId() {
  KILN_ASSIGN_OR_RETURN(std::string text, ReadFile("/proc/sys/kernel/random/boot_id", 64));
  return text.substr(0, text.find('\n'));
}

}  // namespace

StatusOr<int64_t> ParseStartTicks(std::string_view proc_pid_stat) {
  const size_t name_end = proc_pid_stat.rfind(')');
  if (name_end == std::string_view::npos) return InvalidArgument("no name of a program");
  std::istringstream fields{std::string(proc_pid_stat.substr(name_end + 1))};
  std::string field;
  fields >> field;
  if (field == "Z" || field == "X") return NotFound("the process has ended");
  for (int i = 0; i < kFieldsBetween; ++i) fields >> field;
  int64_t ticks = 0;
  if (!(fields >> ticks)) return InvalidArgument("no start of the process");
  return ticks;
}

StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid) {
  const auto stat = ReadFile(fmt::format("/proc/{}/stat", pid), kStatBytes);
  if (!stat.ok()) return NotFound("there is no process {}", pid);
  ProcessIdentity process;
  process.pid = pid;
  KILN_ASSIGN_OR_RETURN(process.start_ticks, ParseStartTicks(*stat));
  KILN_ASSIGN_OR_RETURN(process.boot_id, BootId());
  return process;
}

bool IsRunning(const ProcessIdentity& process) {
  if (process.pid <= 0) return false;
  const auto there = IdentifyProcess(process.pid);
  return there.ok() && *there == process;
}

Status SignalProcess(const ProcessIdentity& process, int signal) {
  if (process.pid <= 0) return NotFound("no process is named");
  const UniqueFd held(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!held.valid() && errno != ESRCH) {
    return ErrnoStatus(errno, "cannot hold process {}", process.pid);
  }
  if (!held.valid() || !IsRunning(process)) {
    return NotFound("process {} has ended", process.pid);
  }
  if (syscall(SYS_pidfd_send_signal, held.get(), signal, nullptr, 0) == 0) return OkStatus();
  if (errno == ESRCH) return NotFound("process {} has ended", process.pid);
  return ErrnoStatus(errno, "cannot signal process {}", process.pid);
}

}  // namespace kiln
