#include "compiler/codegen/null.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace kiln::codegen {
namespace {
using ir::Stmt;

void DescribeStmt(Stmt stmt, int depth, std::string& out) {
  out += fmt::format("{:{}}{} {} var={} slot={} stage={} extent={}", "", 2 * depth,
                     static_cast<int>(stmt->kind), ir::LoopKindName(stmt->loop_kind), stmt->var,
                     stmt->slot, stmt->stage, stmt->extent);
  for (ir::Expr e : stmt->exprs()) out += fmt::format(" {:016x}", e->hash);
  out += '\n';
  for (Stmt child : stmt->children()) DescribeStmt(child, depth + 1, out);
}

class Null final : public Backend {
 public:
  const target::TargetKind& kind() const override { return target::kNull; }
  StatusOr<std::string> Compiler() const override { return std::string("nothing"); }
  StatusOr<Compiled> Compile(const ir::Program& program, const target::Target&,
                             const CompileOptions&, CompileTimes&) const override {
    return CompileNull(program);
  }
  StatusOr<GeneratedSource> Generate(const ir::Program& program, const target::Target&,
                                     const CompileOptions&, CompileTimes&) const override {
    GeneratedSource source;
    source.interface = CompileNull(program);
    source.text = std::exchange(source.interface.binary, "");
    return source;
  }
};

}  // namespace

Compiled CompileNull(const ir::Program& program) {
  Compiled compiled;
  std::string& text = compiled.binary;
  text = "kiln null program\n";
  for (const ir::Buffer& buffer : program.buffers) {
    text += fmt::format("buffer {} {} {} [{}]\n", buffer.name, ir::TypeName(buffer.type),
                        ir::ScopeName(buffer.scope), fmt::join(buffer.shape, ", "));
  }
  for (const ir::LoopVar& var : program.vars)
    text += fmt::format("var {} {}\n", var.name, var.extent);
  for (const ir::Kernel& kernel : program.kernels) {
    text += fmt::format("kernel {} grid [{}] block [{}]\n", kernel.name,
                        fmt::join(kernel.grid, ", "), fmt::join(kernel.block, ", "));
    DescribeStmt(kernel.body, 1, text);
    Launch launch;
    launch.symbol = kernel.name;
    for (int i = 0; i < program.num_args(); ++i) launch.args.push_back(static_cast<uint32_t>(i));
    compiled.launches.push_back(std::move(launch));
  }
  for (int slot = 0; slot < program.num_args(); ++slot) {
    const ir::Buffer& buffer = program.buffers[static_cast<size_t>(slot)];
    compiled.args.push_back(ArgumentOf(buffer));
  }
  return compiled;
}

const Backend& NullBackend() {
  static const Null backend;
  return backend;
}

}  // namespace kiln::codegen
