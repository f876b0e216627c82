// The C compiler of this machine, a program that is looked up on demand: the file that KILN_CC
// names, else cc, gcc or clang of PATH.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::codegen {

// Returns the level of an x86-64 processor, as "x86-64-v3" if programs may use the features of that
// level (System V ABI, AMD64 supplement). `features` are those of X86LevelFeatures() that programs
// may use.
std::span<const std::string_view> X86LevelFeatures();
std::string X86Level(const std::vector<std::string>& features);

class CCompiler {
 public:
  // Unimplemented: there is no compiler. The error says what to install or set.
  static StatusOr<CCompiler> Find();

  const std::string& path() const { return path_; }

  // Compiles the source of a shared object and returns its bytes. `march` is a result of X86Level,
  // or "" for the compiler's default. The compiler runs confined (compiler_confinement.h).
  // InvalidArgument: the compiler's messages, the first error in front. Internal: the compiler
  // cannot be run.
  StatusOr<std::string> CompileSharedObject(std::string_view source, std::string_view march,
                                            std::span<const std::string> options) const;

 private:
  explicit CCompiler(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace kiln::codegen
