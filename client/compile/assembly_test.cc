#include "client/compile/assembly.h"

#include <array>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::client {
namespace {

// Kernels of the same code share it, unless the code keeps state while it runs: branches of the
// network may run at the same time.
TEST(Assembly, CodeThatKeepsSomethingIsThereOnceForEachKernel) {
  const graph::TensorType type{ir::kFloat32, {8, 8}};
  const auto argument = [&](const char* name, ir::Scope scope) {
    return codegen::Argument{.name = name, .type = type.type, .shape = type.shape, .scope = scope};
  };
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::BuildOp("relu", "8,8", {}));
  for (const bool is_stateful : {false, true}) {
    TaskProgram program{.dag = dag, .compiled = {}, .choice = {}, .remark = ""};
    program.compiled = {
        .binary = "code",
        .args = {argument("p0", ir::Scope::kInput), argument("y", ir::Scope::kOutput)},
        .launches = {{.symbol = "relu", .grid = {}, .block = {}, .args = {0, 1}}},
        .is_stateful = is_stateful};
    runtime::NetworkTarget target;
    target.kind = "null";
    Assembly assembly(target);
    std::array<Assembly::Place, 3> values = {assembly.AddInput("x", type),
                                             assembly.AddMade(type.bytes(), /*leaves=*/false),
                                             assembly.AddMade(type.bytes(), /*leaves=*/true)};
    for (size_t i = 0; i < 2; ++i) {
      assembly.AddKernel("kernel", graph::MakeTask(dag, "relu"), program, {{values[i]}},
                         {{values[i + 1]}});
    }
    assembly.AddOutput("y", type, values[2]);
    ASSERT_OK_AND_ASSIGN(const CompiledNetwork made, assembly.Finish(""));
    EXPECT_EQ(made.network.binaries.size(), is_stateful ? 2u : 1u);
    EXPECT_EQ(made.network.kernels[1].binary, is_stateful ? 1 : 0);
  }
}

}  // namespace
}  // namespace kiln::client
