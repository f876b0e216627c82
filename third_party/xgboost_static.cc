// XGBoost's C functions for --config=static. Debian has XGBoost as a shared library only, so the
// binary carries that library and those it needs (xgboost_libraries.o), and loads them from memory
// when one of the functions is first called. If that fails, all functions return -1, and
// XGBGetLastError says why.
//
// The compiler's run-time libraries are taken from the system if it has them: a process has only
// one libstdc++.so.6, and libraries that are loaded later may need the system's newer one.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xgboost/c_api.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
#define CARRIED(name) extern const char _binary_##name##_start[], _binary_##name##_end[]
CARRIED(libgcc_s_so_1);
CARRIED(libstdc___so_6);
CARRIED(libgomp_so_1);
CARRIED(libdmlc_so_0);
CARRIED(libxgboost_so_0);
#undef CARRIED
}

namespace {

struct Carried {
  const char* name;
  bool prefer_system;
  const char *begin, *end;
};

#define CARRIED(symbol, name, prefer_system) \
  {name, prefer_system, _binary_##symbol##_start, _binary_##symbol##_end}
// Each library comes after those that it needs, because the loader takes a library of the same name
// that is loaded already.
const Carried kLibraries[] = {
    CARRIED(libgcc_s_so_1, "libgcc_s.so.1", true),
    CARRIED(libstdc___so_6, "libstdc++.so.6", true),
    CARRIED(libgomp_so_1, "libgomp.so.1", true),
    CARRIED(libdmlc_so_0, "libdmlc.so.0", false),
    CARRIED(libxgboost_so_0, "libxgboost.so.0", false),
};
#undef CARRIED

bool WriteAll(int fd, const char* begin, const char* end) {
  while (begin < end) {
    const ssize_t written = write(fd, begin, static_cast<size_t>(end - begin));
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) begin += written;
  }
  return true;
}

struct Library {
  void* handle = nullptr;
  std::string error;

  Library() {
    // The files stay open until all are loaded, because the loader takes two equal paths for one
    // library. The path has the process id, so no other process uses it.
    std::vector<int> fds;
    for (const Carried& carried : kLibraries) {
      handle = carried.prefer_system ? dlopen(carried.name, RTLD_NOW | RTLD_LOCAL) : nullptr;
      if (handle != nullptr) continue;
      const int fd = memfd_create(carried.name, MFD_CLOEXEC);
      if (fd >= 0) fds.push_back(fd);
      if (fd < 0 || !WriteAll(fd, carried.begin, carried.end)) {
        error = std::string("cannot unpack ") + carried.name + ": " + std::strerror(errno);
        break;
      }
      const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
      handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle == nullptr) {
        const char* cause = dlerror();
        error = std::string("cannot load ") + carried.name + ": " + (cause ? cause : "no cause");
        break;
      }
    }
    for (int fd : fds) close(fd);
  }
};

const Library& Loaded() {
  // The library is never unloaded, because its threads and thread-local buffers live on.
  static const Library& library = *new Library();
  return library;
}

template <typename... Args>
int Call(const char* name, Args... args) {
  const Library& library = Loaded();
  if (library.handle == nullptr) return -1;
  using Function = int (*)(Args...);
  const auto function = reinterpret_cast<Function>(dlsym(library.handle, name));
  return function == nullptr ? -1 : function(args...);
}

}  // namespace

// Sets zeros if the library cannot be loaded.
XGB_DLL void XGBoostVersion(int* major, int* minor, int* patch) {
  const Library& library = Loaded();
  if (library.handle == nullptr) return;
  using Function = void (*)(int*, int*, int*);
  const auto function = reinterpret_cast<Function>(dlsym(library.handle, "XGBoostVersion"));
  if (function != nullptr) function(major, minor, patch);
}

XGB_DLL const char* XGBGetLastError() {
  const Library& library = Loaded();
  if (library.handle == nullptr) return library.error.c_str();
  return reinterpret_cast<const char* (*)()>(dlsym(library.handle, "XGBGetLastError"))();
}

XGB_DLL int XGBRegisterLogCallback(void (*callback)(const char*)) {
  return Call("XGBRegisterLogCallback", callback);
}
XGB_DLL int XGBSetGlobalConfig(const char* config) { return Call("XGBSetGlobalConfig", config); }

XGB_DLL int XGDMatrixCreateFromMat_omp(const float* data, bst_ulong rows, bst_ulong columns,
                                       float missing, DMatrixHandle* out, int threads) {
  return Call("XGDMatrixCreateFromMat_omp", data, rows, columns, missing, out, threads);
}
XGB_DLL int XGDMatrixFree(DMatrixHandle matrix) { return Call("XGDMatrixFree", matrix); }

XGB_DLL int XGBoosterCreate(const DMatrixHandle matrices[], bst_ulong count, BoosterHandle* out) {
  return Call("XGBoosterCreate", matrices, count, out);
}
XGB_DLL int XGBoosterFree(BoosterHandle booster) { return Call("XGBoosterFree", booster); }
XGB_DLL int XGBoosterSetParam(BoosterHandle booster, const char* name, const char* value) {
  return Call("XGBoosterSetParam", booster, name, value);
}
XGB_DLL int XGBoosterGetNumFeature(BoosterHandle booster, bst_ulong* out) {
  return Call("XGBoosterGetNumFeature", booster, out);
}
XGB_DLL int XGBoosterBoostedRounds(BoosterHandle booster, int* out) {
  return Call("XGBoosterBoostedRounds", booster, out);
}
XGB_DLL int XGBoosterBoostOneIter(BoosterHandle booster, DMatrixHandle matrix, float* gradient,
                                  float* hessian, bst_ulong length) {
  return Call("XGBoosterBoostOneIter", booster, matrix, gradient, hessian, length);
}
XGB_DLL int XGBoosterPredictFromDMatrix(BoosterHandle booster, DMatrixHandle matrix,
                                        const char* config, const bst_ulong** shape,
                                        bst_ulong* dimensions, const float** result) {
  return Call("XGBoosterPredictFromDMatrix", booster, matrix, config, shape, dimensions, result);
}
XGB_DLL int XGBoosterPredictFromDense(BoosterHandle booster, const char* values, const char* config,
                                      DMatrixHandle proxy, const bst_ulong** shape,
                                      bst_ulong* dimensions, const float** result) {
  return Call("XGBoosterPredictFromDense", booster, values, config, proxy, shape, dimensions,
              result);
}
XGB_DLL int XGBoosterSaveModelToBuffer(BoosterHandle booster, const char* config, bst_ulong* length,
                                       const char** bytes) {
  return Call("XGBoosterSaveModelToBuffer", booster, config, length, bytes);
}
XGB_DLL int XGBoosterLoadModelFromBuffer(BoosterHandle booster, const void* bytes,
                                         bst_ulong length) {
  return Call("XGBoosterLoadModelFromBuffer", booster, bytes, length);
}
