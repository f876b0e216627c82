#include "compiler/codegen/loaded_program_testing.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace kiln::codegen {
namespace {
struct Slices {
  int count;
};

void RunSlices(KilnCpuContext* context, KilnTask task, void* closure, int64_t extent) {
  const int count = static_cast<const Slices*>(context->loader)->count;
  for (int i = count; i-- > 0;) task(closure, extent * i / count, extent * (i + 1) / count);
}
}  // namespace

StatusOr<LoadedProgram> LoadedProgram::Load(const std::string& binary) {
  const int fd = memfd_create("kiln_test", MFD_CLOEXEC);
  if (fd < 0) return Internal("memfd_create: {}", std::strerror(errno));
  const ssize_t written = write(fd, binary.data(), binary.size());
  // The process id makes the name differ from that of an earlier object with the same descriptor:
  // dlopen knows files by name.
  void* library = nullptr;
  if (written == static_cast<ssize_t>(binary.size())) {
    library = dlopen(fmt::format("/proc/{}/fd/{}", getpid(), fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  close(fd);
  if (library == nullptr) return Internal("{}", written < 0 ? std::strerror(errno) : dlerror());
  auto entry = reinterpret_cast<KilnEntry>(dlsym(library, KILN_CPU_ENTRY));
  if (entry == nullptr) return Internal("{}", dlerror());
  return LoadedProgram(library, entry);
}

LoadedProgram::LoadedProgram(LoadedProgram&& other) noexcept
    : library_(std::exchange(other.library_, nullptr)), entry_(other.entry_) {}

LoadedProgram::~LoadedProgram() {
  if (library_ != nullptr) dlclose(library_);
}

void LoadedProgram::Run(const std::vector<void*>& args, int slices) const {
  Slices state{slices};
  KilnCpuContext context{RunSlices, &state};
  KILN_CHECK(entry_(&context, args.data()) == 0);
}

GuardedBytes::GuardedBytes(size_t size)
    : size_(size),
      storage_(
          static_cast<unsigned char*>(std::aligned_alloc(64, (size + 2 * kGuard + 63) / 64 * 64))) {
  std::memset(storage_.get(), 0xa5, kGuard);
  std::memset(storage_.get() + kGuard, 0, size);
  std::memset(storage_.get() + kGuard + size, 0xa5, kGuard);
}

bool GuardedBytes::GuardsIntact() const {
  const auto intact = [](unsigned char c) { return c == 0xa5; };
  const unsigned char* end = storage_.get() + kGuard + size_;
  return std::all_of(storage_.get(), storage_.get() + kGuard, intact) &&
         std::all_of(end, end + kGuard, intact);
}

void GuardedBytes::Free::operator()(unsigned char* p) const { std::free(p); }

}  // namespace kiln::codegen
