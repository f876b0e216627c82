#include "compiler/codegen/handwritten/compiler_confinement.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/process/system_call_filter.h"

namespace kiln::codegen {
namespace {

namespace fs = std::filesystem;

// True for the folders of an installation, in /usr or elsewhere, that compilers read. A folder like
// "x86_64-linux-gnu" holds the headers and libraries of another system.
bool IsOfToolchain(const std::string& name) {
  return name == "bin" || name == "include" || name == "libexec" || name.starts_with("lib") ||
         name.find("-linux-") != std::string::npos;
}

void AddInstallation(const fs::path& folder, std::vector<std::string>& folders) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (IsOfToolchain(entries->path().filename().string())) folders.push_back(entries->path());
  }
}

void AddListed(const char* variable, std::vector<std::string>& folders) {
  const char* const value = std::getenv(variable);
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

Status DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) == 0) return OkStatus();
  return ErrnoStatus(errno, "cannot give up the capabilities of a compiler");
}

constexpr int64_t kFileBytes = int64_t{256} << 20;
constexpr int64_t kDataBytes = int64_t{8} << 30;
constexpr int64_t kMoreProcesses = 512;

// Returns the value, or the limit of this process if that is lower.
int64_t AtMost(__rlimit_resource resource, int64_t value) {
  rlimit limit{};
  getrlimit(resource, &limit);
  return static_cast<int64_t>(std::min(static_cast<rlim_t>(value), limit.rlim_cur));
}

// Returns 0 if the machine does not tell.
int64_t ProcessesOfMachine() {
  // The text is like "0.1 0.2 0.3 1/234 5678", where 234 is the number of processes.
  const auto loads = ReadFile("/proc/loadavg", 256);
  const size_t slash = loads.ok() ? loads->find('/') : std::string::npos;
  return slash == std::string::npos ? 0 : std::strtoll(loads->c_str() + slash + 1, nullptr, 10);
}

// System calls that compilers have no use for. All other calls stay allowed: the calls that
// compilers make differ by version, and compilers do not run a stranger's code.
constexpr uint32_t kRefused[] = {
    // Network.
    SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
    SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_io_uring_setup,
    // Other processes.
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_open, SYS_pidfd_getfd,
    SYS_pidfd_send_signal, SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
    // Calls that leave the process group, which is ended together with its build.
    SYS_setsid, SYS_setpgid,
    // The machine.
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_bpf,
    SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key,
    SYS_open_by_handle_at};

Status RefuseSystemCalls() {
  SystemCallFilter filter(SystemCallFilter::OtherCalls::kAllowed);
  for (const uint32_t call : kRefused) filter.Refuse(call);
  return filter.Install(SystemCallFilter::Threads::kThis);
}

}  // namespace

FileAccess CCompilerAccess(const std::string& path, const std::string& scratch) {
  FileAccess access;
  access.read = SystemLibraryFolders();
  for (const char* const folder :
       {"/bin", "/usr/bin", "/usr/include", "/usr/libexec", "/usr/local/bin", "/usr/local/include",
        "/etc/ld.so.preload", "/nix/store", "/gnu/store"}) {
    access.read.emplace_back(folder);
  }
  std::error_code error;
  const fs::path program = fs::canonical(path, error);
  // Includes the path as it is called and its target, because one may be a link into the other's
  // installation.
  for (const fs::path& file : {fs::path(path), program}) {
    access.read.push_back(file);
    if (file.parent_path().filename() == "bin") {
      AddInstallation(file.parent_path().parent_path(), access.read);
    }
  }
  AddListed("LD_LIBRARY_PATH", access.read);
  AddListed("KILN_CC_FOLDERS", access.read);
  access.write = {scratch, "/dev/null"};
  return access;
}

FileAccess NvrtcAccess(std::vector<std::string> folders) {
  FileAccess access{.read = std::move(folders)};
  for (const std::string& folder : SystemLibraryFolders()) access.read.push_back(folder);
  for (const char* const path : {"/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"}) {
    access.read.emplace_back(path);
  }
  return access;
}

Status ConfineCCompiler(const FileAccess& access) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return ErrnoStatus(errno, "cannot give up new privileges");
  }
  if (CanRestrictFiles()) KILN_RETURN_IF_ERROR(RestrictFiles(access));
  KILN_RETURN_IF_ERROR(DropCapabilities());
  return SystemCallFilter::Works() ? RefuseSystemCalls() : OkStatus();
}

ResourceLimits CCompilerLimits() {
  ResourceLimits limits;
  // Limit for a compiler that nobody ends. Builders end theirs sooner.
  limits.cpu_s = 600;
  limits.file_bytes = AtMost(RLIMIT_FSIZE, kFileBytes);
  limits.data_bytes = AtMost(RLIMIT_DATA, kDataBytes);
  if (const int64_t processes = ProcessesOfMachine(); processes > 0) {
    limits.processes = AtMost(RLIMIT_NPROC, processes + kMoreProcesses);
  }
  return limits;
}

std::string_view WhyRefused(std::string_view messages) {
  // Messages of GCC and Clang, their assemblers, and NVRTC.
  constexpr std::string_view kRefusals[] = {"Permission denied", "file not found", "can't open",
                                            "Could not find incbin", "open source file"};
  const auto says = [&](std::string_view words) { return messages.find(words) != messages.npos; };
  if (!std::ranges::any_of(kRefusals, says)) return "";
  return "\nA kernel is compiled with the compiler's own headers and libraries alone; no other "
         "file "
         "can be read. If a toolchain for C has folders elsewhere, let KILN_CC_FOLDERS name them "
         "where kernels are built.\n";
}

}  // namespace kiln::codegen
