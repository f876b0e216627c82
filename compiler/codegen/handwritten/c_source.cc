#include <array>

#include "compiler/codegen/handwritten/compile.h"
#include "proto/cpu_abi.h"

namespace kiln::codegen {
namespace {

using handwritten::BoundArgument;
using handwritten::Specialization;

// Returns a number of this type as C writes it, with all its digits.
std::string NumberText(const BoundArgument& argument) {
  if (const auto* const real = std::get_if<double>(&argument.number)) {
    const bool single = argument.type == ir::kFloat32;
    return fmt::format("({}){:a}", single ? "float" : "double", *real);
  }
  const int64_t number = std::get<int64_t>(argument.number);
  // C has no literal for the lowest number.
  return number == INT64_MIN ? "(-9223372036854775807LL - 1)" : fmt::format("{}LL", number);
}

std::string ArgumentText(const BoundArgument& argument) {
  if (argument.tensor >= 0) return fmt::format("kiln_args[{}]", argument.tensor);
  if (argument.block != '\0') return fmt::format("kiln_{}", argument.block);
  return NumberText(argument);
}

}  // namespace

std::string CSourceOf(const Specialization& kernel, const Compiled& interface) {
  std::string text = kernel.source;
  text += "#line 1 \"the entry that Kiln adds\"\n#include <stdint.h>\n";
  text += "/*";
  for (size_t i = 0; i < interface.args.size(); ++i)
    text += fmt::format(" {}: {}", i, ir::TypeName(interface.args[i].type));
  text += " */\n";
  std::string call;
  for (const BoundArgument& argument : kernel.arguments)
    call += (call.empty() ? "" : ", ") + ArgumentText(argument);
  const auto [x, y, z] = kernel.grid;
  text += fmt::format(R"(typedef struct KilnCpuContext {{
  void (*parallel_for)(struct KilnCpuContext*, void (*)(void*, int64_t, int64_t), void*, int64_t);
  void* loader;
}} KilnCpuContext;
static void kiln_blocks(void* kiln_closure, int64_t kiln_begin, int64_t kiln_end) {{
  void* const* kiln_args = (void* const*)kiln_closure;
  (void)kiln_args;
  for (int64_t kiln_block = kiln_begin; kiln_block < kiln_end; ++kiln_block) {{
    int64_t kiln_x = kiln_block % {0}LL, kiln_y = kiln_block / {0}LL % {1}LL,
            kiln_z = kiln_block / ({0}LL * {1}LL);
    (void)kiln_x, (void)kiln_y, (void)kiln_z;
    {3}({4});
  }}
}}
__attribute__((visibility("default")))
int32_t {5}(KilnCpuContext* kiln_context, void* const* kiln_args) {{
  kiln_context->parallel_for(kiln_context, kiln_blocks, (void*)kiln_args, {0}LL * {1}LL * {2}LL);
  return 0;
}}
)",
                      x, y, z, kernel.function, call, KILN_CPU_ENTRY);
  return text;
}

}  // namespace kiln::codegen
