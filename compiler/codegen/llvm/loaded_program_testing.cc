#include "compiler/codegen/llvm/loaded_program_testing.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct TimedSlices {
  int cores;
  // Seconds of slices that a longer one hides.
  double hidden_s = 0;
};

void RunTimedSlices(KilnCpuContext* context, KilnTask task, void* closure, int64_t extent) {
  auto& slices = *static_cast<TimedSlices*>(context->loader);
  double longest_s = 0;
  for (int i = 0; i < slices.cores; ++i) {
    const int64_t begin = extent * i / slices.cores, end = extent * (i + 1) / slices.cores;
    if (begin == end) continue;
    const double start = Now();
    task(closure, begin, end);
    const double took_s = Now() - start;
    slices.hidden_s += std::min(took_s, longest_s);
    longest_s = std::max(took_s, longest_s);
  }
}
}  // namespace

namespace {
// dlopen knows files by name: for the name of a program that is still loaded, it returns that
// program again.
bool IsTaken(const std::string& path) {
  void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (loaded != nullptr) dlclose(loaded);
  return loaded != nullptr;
}

StatusOr<void*> Open(int file) {
  std::string path;
  int fd = -1;
  do {
    const int next = fcntl(file, F_DUPFD_CLOEXEC, fd + 1);
    if (fd >= 0) close(fd);
    if (next < 0) return Internal("no name is left for a program: {}", std::strerror(errno));
    fd = next;
    path = fmt::format("/proc/{}/fd/{}", getpid(), fd);
  } while (IsTaken(path));
  // Clears the expected "not loaded".
  dlerror();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  close(fd);
  if (library == nullptr) return Internal("{}", dlerror());
  return library;
}
}  // namespace

StatusOr<LoadedProgram> LoadedProgram::Load(const std::string& binary) {
  const int fd = memfd_create("kiln_test", MFD_CLOEXEC);
  if (fd < 0) return Internal("memfd_create: {}", std::strerror(errno));
  if (write(fd, binary.data(), binary.size()) != static_cast<ssize_t>(binary.size())) {
    close(fd);
    return Internal("write: {}", std::strerror(errno));
  }
  const StatusOr<void*> library = Open(fd);
  close(fd);
  KILN_RETURN_IF_ERROR(library.status());
  auto entry = reinterpret_cast<KilnEntry>(dlsym(*library, KILN_CPU_ENTRY));
  if (entry == nullptr) return Internal("{}", dlerror());
  return LoadedProgram(*library, entry);
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

double LoadedProgram::SecondsOn(const std::vector<void*>& args, int cores) const {
  TimedSlices slices{cores};
  KilnCpuContext context{RunTimedSlices, &slices};
  const double start = Now();
  KILN_CHECK(entry_(&context, args.data()) == 0);
  return Now() - start - slices.hidden_s;
}

namespace {
constexpr size_t kPage = 4096;
constexpr unsigned char kPattern = 0xa5;
}  // namespace

GuardedBytes::GuardedBytes(size_t size, Place place)
    : size_(size), inner_size_((size + kPage - 1) / kPage * kPage) {
  void* all = mmap(nullptr, inner_size_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  KILN_CHECK(all != MAP_FAILED);
  inner_ = static_cast<unsigned char*>(all) + kPage;
  KILN_CHECK(inner_size_ == 0 || mprotect(inner_, inner_size_, PROT_READ | PROT_WRITE) == 0);
  data_ = inner_;
  if (place == Place::kBack) data_ += (inner_size_ - size_) / 64 * 64;
  std::fill(inner_, inner_ + inner_size_, kPattern);
  std::fill(data_, data_ + size_, 0);
}

GuardedBytes::GuardedBytes(GuardedBytes&& other) noexcept
    : size_(other.size_),
      inner_size_(other.inner_size_),
      inner_(std::exchange(other.inner_, nullptr)),
      data_(other.data_) {}

GuardedBytes::~GuardedBytes() {
  if (inner_ != nullptr) munmap(inner_ - kPage, inner_size_ + 2 * kPage);
}

bool GuardedBytes::PatternIntact() const {
  const auto intact = [](unsigned char c) { return c == kPattern; };
  return std::all_of(inner_, data_, intact) &&
         std::all_of(data_ + size_, inner_ + inner_size_, intact);
}

}  // namespace kiln::codegen
