#include "runtime/shared_object.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include "base/errno_status.h"
#include "base/fd.h"

namespace kiln::runtime {
namespace {

// The loader takes two equal paths for one object, so a path must not come again while an object
// that could not be unloaded holds it: descriptor numbers are dealt out in turn.
constexpr int kFirstFd = 64;
constexpr int kMaxFds = 4096;

int NextFd() {
  static std::atomic<int> counter{0};
  rlimit limit{};
  // 1024 on most machines; a number beyond the limit is refused.
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
  const int end = known ? static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kMaxFds)) : 1024;
  return kFirstFd + counter++ % std::max(1, end - 2 * kFirstFd);
}

Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "cannot write {} bytes of program", bytes.size());
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

// dlerror's text without the path, which says nothing here.
std::string LoaderError(const std::string& path) {
  const char* error = dlerror();
  std::string text = error == nullptr ? "unknown error" : error;
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  return text;
}

}  // namespace

StatusOr<UniqueFd> MakeProgramFile(std::string_view elf) {
  if (elf.empty()) return InvalidArgument("the shared object is empty");
  UniqueFd memory(memfd_create("kiln-program", MFD_CLOEXEC));
  if (!memory.valid()) return ErrnoStatus(errno, "cannot make a memory file");
  KILN_RETURN_IF_ERROR(WriteAll(memory.get(), elf));
  UniqueFd fd(fcntl(memory.get(), F_DUPFD_CLOEXEC, NextFd()));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot number the memory file of a program");
  return fd;
}

StatusOr<std::unique_ptr<SharedObject>> SharedObject::Load(std::string_view elf) {
  KILN_ASSIGN_OR_RETURN(const UniqueFd file, MakeProgramFile(elf));
  return Open(file);
}

StatusOr<std::unique_ptr<SharedObject>> SharedObject::Open(const UniqueFd& file) {
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  if (void* stale = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD); stale != nullptr) {
    dlclose(stale);
    return Internal("an earlier program that does not unload is still at {}", path);
  }
  dlerror();  // the expected "not loaded"
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return InvalidArgument("{}", LoaderError(path));
  return std::unique_ptr<SharedObject>(new SharedObject(handle));
}

SharedObject::~SharedObject() { dlclose(handle_); }

StatusOr<void*> SharedObject::Find(const char* name) const {
  dlerror();
  void* symbol = dlsym(handle_, name);
  if (symbol == nullptr) return NotFound("the shared object does not export {}", name);
  return symbol;
}

}  // namespace kiln::runtime
