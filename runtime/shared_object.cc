#include "runtime/shared_object.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>

#include "base/errno_status.h"
#include "base/file/fd.h"

namespace kiln::runtime {
namespace {

// Returns a new spelling of the path for each file. The loader takes two equal paths for one
// object, and an object that is loaded, or that could not be unloaded, outlives the descriptor that
// it came from.
std::string NewPathOf(const UniqueFd& file) {
  static std::atomic<uint64_t> counter{0};
  std::string path = "/proc/self/fd";
  for (uint64_t rest = ++counter; rest > 0; rest /= 2) path += rest % 2 == 0 ? "/" : "/.";
  return fmt::format("{}/{}", path, file.get());
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

// Returns dlerror's text without the path, which has no meaning here.
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
  return memory;
}

StatusOr<std::unique_ptr<SharedObject>> SharedObject::Load(std::string_view elf) {
  KILN_ASSIGN_OR_RETURN(const UniqueFd file, MakeProgramFile(elf));
  return Open(file);
}

StatusOr<std::unique_ptr<SharedObject>> SharedObject::Open(const UniqueFd& file) {
  const std::string path = NewPathOf(file);
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
