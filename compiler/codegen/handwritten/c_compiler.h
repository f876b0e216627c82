// The C compiler of this machine, a program that is looked for when it is needed: the file that
// KILN_CC names, else cc, gcc or clang of PATH.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::codegen {

// Of processors of x86-64: "x86-64-v3" for one whose programs may use what that level has (System V
// ABI, AMD64 supplement). `features`: those of kX86LevelFeatures that they may use.
std::span<const std::string_view> X86LevelFeatures();
std::string X86Level(const std::vector<std::string>& features);

class CCompiler {
 public:
  // Unimplemented: there is none; what to install or set.
  static StatusOr<CCompiler> Find();

  const std::string& path() const { return path_; }

  // The source of a shared object -> its bytes. `march` as X86Level; "" for what the compiler takes
  // by itself. The compiler runs confined (compiler_confinement.h). InvalidArgument: what it says,
  // its first error first; Internal: it cannot be run.
  StatusOr<std::string> CompileSharedObject(std::string_view source, std::string_view march,
                                            std::span<const std::string> options) const;

 private:
  explicit CCompiler(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace kiln::codegen
