#include "compiler/codegen/cuda/nvrtc.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace kiln::codegen {
namespace {
namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> ToolkitFolders() {
  std::vector<std::string> folders;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (std::string value = Environment(name); !value.empty()) folders.push_back(std::move(value));
  }
  std::error_code error;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", error); !error)
    folders.push_back((self.parent_path().parent_path()).string());
  folders.emplace_back("");  // the loader's own path
  folders.emplace_back("/usr/local/cuda");
  return folders;
}

std::vector<std::string> Candidates() {
  // KILN_NVRTC is an order, not a hint: nothing else is tried.
  if (std::string path = Environment("KILN_NVRTC"); !path.empty()) return {path};
  std::vector<std::string> paths;
  for (const std::string& folder : ToolkitFolders()) {
    for (const char* file :
         {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"}) {
      if (folder.empty()) {
        paths.emplace_back(file);
        continue;
      }
      for (const char* lib : {"lib64", "lib"}) {
        std::error_code error;
        const fs::path path = fs::path(folder) / lib / file;
        if (fs::exists(path, error)) paths.push_back(path.string());
      }
    }
  }
  return paths;
}

// NVRTC opens its second library at its first compilation, by name alone. The loader may know the
// name by a path that a sandbox does not show, so the library beside NVRTC is opened here.
void LoadBuiltins(const NvrtcInfo& info) {
  std::error_code error;
  const std::string name = fmt::format("libnvrtc-builtins.so.{}.{}", info.major, info.minor);
  for (const fs::path& file : {fs::path(info.path), fs::weakly_canonical(info.path, error)}) {
    if (dlopen((file.parent_path() / name).c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) return;
  }
}

}  // namespace

StatusOr<const Nvrtc*> Nvrtc::Get() {
  static const StatusOr<Nvrtc>& loaded = *new StatusOr<Nvrtc>(Load());
  if (!loaded.ok()) return loaded.status();
  return &*loaded;
}

StatusOr<Nvrtc> Nvrtc::Load() {
  std::string problems;
  for (const std::string& path : Candidates()) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      problems += fmt::format("; {}", dlerror());
      continue;
    }
    Nvrtc nvrtc;
    const Status status = nvrtc.Bind(library);
    if (!status.ok()) {
      problems += fmt::format("; {}: {}", path, Message(status));
      dlclose(library);
      continue;
    }
    Dl_info where;
    nvrtc.info_.path =
        dladdr(reinterpret_cast<void*>(nvrtc.call_.Version), &where) != 0 ? where.dli_fname : path;
    LoadBuiltins(nvrtc.info_);
    return nvrtc;
  }
  return FailedPrecondition(
      "no NVRTC here, which compiles for GPUs: install the CUDA toolkit's libnvrtc (11.2 or newer) "
      "and set CUDA_HOME, or KILN_NVRTC to the file{}",
      problems);
}

Status Nvrtc::Bind(void* library) {
  std::string missing;
  const auto bind = [&](auto& function, const char* name) {
    void* symbol = dlsym(library, name);
    if (symbol == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  bind(call_.CreateProgram, "nvrtcCreateProgram");
  bind(call_.DestroyProgram, "nvrtcDestroyProgram");
  bind(call_.CompileProgram, "nvrtcCompileProgram");
  bind(call_.GetProgramLogSize, "nvrtcGetProgramLogSize");
  bind(call_.GetProgramLog, "nvrtcGetProgramLog");
  bind(call_.GetCUBINSize, "nvrtcGetCUBINSize");
  bind(call_.GetCUBIN, "nvrtcGetCUBIN");
  bind(call_.GetPTXSize, "nvrtcGetPTXSize");
  bind(call_.GetPTX, "nvrtcGetPTX");
  bind(call_.Version, "nvrtcVersion");
  bind(call_.GetNumSupportedArchs, "nvrtcGetNumSupportedArchs");
  bind(call_.GetSupportedArchs, "nvrtcGetSupportedArchs");
  bind(call_.GetErrorString, "nvrtcGetErrorString");
  if (!missing.empty()) return FailedPrecondition("it has no {}, it is too old", missing);
  int count = 0;
  if (call_.Version(&info_.major, &info_.minor) != 0 || call_.GetNumSupportedArchs(&count) != 0)
    return Internal("it does not tell its version");
  info_.archs.resize(static_cast<size_t>(count));
  if (call_.GetSupportedArchs(info_.archs.data()) != 0)
    return Internal("it does not tell its architectures");
  return OkStatus();
}

StatusOr<std::string> Nvrtc::Compile(const std::string& source,
                                     std::span<const std::string> options, Output output,
                                     std::string* log) const {
  std::vector<const char*> flags;
  for (const std::string& option : options) flags.push_back(option.c_str());
  Program program = nullptr;
  int error = call_.CreateProgram(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr);
  if (error != 0) return Internal("NVRTC: {}", call_.GetErrorString(error));
  error = call_.CompileProgram(program, static_cast<int>(flags.size()), flags.data());
  const auto read = [&](auto size_of, auto get) {
    size_t size = 0;
    std::string text;
    if (size_of(program, &size) != 0) return text;
    text.resize(size);
    if (get(program, text.data()) != 0) text.clear();
    return text;
  };
  *log = read(call_.GetProgramLogSize, call_.GetProgramLog);
  while (!log->empty() && log->back() == '\0') log->pop_back();
  std::string binary;
  if (error == 0) {
    binary = output == Output::kCubin ? read(call_.GetCUBINSize, call_.GetCUBIN)
                                      : read(call_.GetPTXSize, call_.GetPTX);
  }
  call_.DestroyProgram(&program);
  if (error != 0) return InvalidArgument("NVRTC: {}: {}", call_.GetErrorString(error), *log);
  if (binary.empty()) return Internal("NVRTC made no code");
  return binary;
}

std::string Nvrtc::FindInclude(std::string_view header) const {
  std::error_code error;
  std::vector<fs::path> folders = {
      fs::path(info_.path).parent_path().parent_path() / "include",
      // lib64 of a toolkit may be a link to targets/x86_64-linux/lib.
      fs::weakly_canonical(info_.path, error).parent_path().parent_path() / "include"};
  for (const std::string& toolkit : ToolkitFolders()) {
    if (!toolkit.empty()) folders.push_back(fs::path(toolkit) / "include");
  }
  folders.emplace_back("/usr/include");
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / header, error)) return folder.string();
  }
  return "";
}

}  // namespace kiln::codegen
