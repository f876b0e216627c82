#include "client/check/reference_programs.h"

#include <fmt/format.h>

#include "client/compile/assembly.h"
#include "client/compile/kernel_program.h"
#include "client/compile/network_arrays.h"
#include "client/compile/network_target.h"
#include "compiler/dag/wide_sums.h"
#include "compiler/dag/workload_id.h"

namespace kiln::client {
namespace {

constexpr std::string_view kThisCpu = "llvm -mcpu=native";
// Unscheduled programs take all inputs unpacked.
constexpr std::string_view kUnscheduled = "[]";

}  // namespace

StatusOr<ReferencePrograms> ReferencePrograms::Make() {
  KILN_ASSIGN_OR_RETURN(TempDir folder, TempDir::Make("kiln-reference"));
  return ReferencePrograms(std::move(folder));
}

StatusOr<std::unique_ptr<runtime::Executor>> ReferencePrograms::Compile(const dag::DagPtr& dag) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(kThisCpu));
  KILN_ASSIGN_OR_RETURN(const dag::DagText wide, dag::WithWideSums({dag, {}}));
  TaskProgram program{.dag = wide.dag, .compiled = {}, .choice = {}, .remark = {}};
  KILN_ASSIGN_OR_RETURN(program.compiled,
                        CompileKernel(wide.dag, std::string(kUnscheduled), target, {}));
  KILN_ASSIGN_OR_RETURN(const runtime::NetworkTarget made_for, NetworkTargetOf(target, ""));
  KILN_ASSIGN_OR_RETURN(
      const CompiledNetwork network,
      AssembleOne("reference", graph::MakeTask(wide.dag, "reference"), program, made_for));
  const std::string path = folder_.Join(fmt::format("{}.kiln", programs_.size()));
  KILN_RETURN_IF_ERROR(WriteCompiled(path, network).status());
  return runtime::Executor::Load(path, {.threads = 1, .pin = false});
}

StatusOr<std::vector<ir::NDArray>> ReferencePrograms::Evaluate(
    const dag::DagPtr& dag, std::span<const ir::NDArray> inputs) {
  std::unique_ptr<runtime::Executor>& program = programs_[dag::WorkloadId(*dag)];
  if (program == nullptr) {
    KILN_ASSIGN_OR_RETURN(program, Compile(dag));
  }
  return RunArrays(*program, inputs);
}

}  // namespace kiln::client
