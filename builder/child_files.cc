#include "builder/child_files.h"

#include <cstdlib>

#include "base/process/file_access.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/handwritten/c_compiler.h"
#include "compiler/codegen/handwritten/compiler_confinement.h"

namespace kiln::builder {

FileView FilesOfBuilds() {
  FileView view;
  const auto add = [&](const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      // The child has a /proc of its own.
      if (path.starts_with('/') && !path.starts_with("/proc/")) view.read.push_back(path);
    }
  };
  add(SystemLibraryFolders());
  add({"/etc/alternatives", "/sys/devices/system/cpu", "/sys/fs/cgroup"});
  if (const auto compiler = codegen::CCompiler::Find(); compiler.ok()) {
    add(codegen::CCompilerAccess(compiler->path(), "").read);
  }
  if (const auto nvrtc = codegen::FindNvrtc(); nvrtc.ok()) {
    setenv("KILN_NVRTC", nvrtc->path.c_str(), 1);
    add(codegen::NvrtcAccess(codegen::FoldersOf(*nvrtc)).read);
    add({nvrtc->path});
  }
  view.devices = {"/dev/null", "/dev/zero", "/dev/urandom"};
  return view;
}

}  // namespace kiln::builder
