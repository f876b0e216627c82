#include "builder/artifact.h"

#include <utility>

#include "base/status.h"
#include "rpc/artifact_digest.h"

namespace kiln::builder {
namespace {

v1::ArgSpec::Role RoleOf(const codegen::Argument& argument) {
  switch (argument.scope) {
    case ir::Scope::kInput:
      return v1::ArgSpec::INPUT;
    case ir::Scope::kOutput:
      return v1::ArgSpec::OUTPUT;
    case ir::Scope::kWorkspace:
      return v1::ArgSpec::WORKSPACE;
    default:
      break;
  }
  KILN_CHECK(false, "buffer '{}' in scope {} is no argument", argument.name,
             ir::ScopeName(argument.scope));
  return v1::ArgSpec::WORKSPACE;
}

void AddArgument(const codegen::Argument& argument, v1::LaunchPlan& plan) {
  v1::ArgSpec& spec = *plan.add_args();
  spec.set_name(argument.name);
  spec.set_dtype(std::string(ir::TypeName(argument.type)));
  spec.mutable_shape()->Add(argument.shape.begin(), argument.shape.end());
  spec.set_role(RoleOf(argument));
  spec.set_alignment_bytes(argument.alignment_bytes);
  spec.set_index_limit(argument.index_limit);
  if (!argument.packing) return;
  spec.set_is_packed(true);
  for (const PackedDim& from : argument.packing->dims) {
    v1::PackedDim& dim = *spec.add_packing();
    dim.set_axis(static_cast<uint32_t>(from.axis));
    dim.set_extent(from.extent);
    dim.set_step(from.step);
  }
}

void AddLaunch(const codegen::Launch& launch, v1::LaunchPlan& plan) {
  v1::KernelLaunch& kernel = *plan.add_launches();
  kernel.set_symbol(launch.symbol);
  kernel.mutable_grid()->Add(launch.grid.begin(), launch.grid.end());
  kernel.mutable_block()->Add(launch.block.begin(), launch.block.end());
  if (launch.cluster > 1) kernel.set_cluster(launch.cluster);
  kernel.set_dynamic_shared_bytes(launch.dynamic_shared_bytes);
  kernel.mutable_args()->Add(launch.args.begin(), launch.args.end());
  for (const codegen::ScalarArgument& from : launch.scalars) {
    v1::ScalarArgument& scalar = *kernel.add_scalars();
    scalar.set_position(from.position);
    scalar.set_value(from.value);
  }
  for (const TensorMap& from : launch.tensor_maps) {
    v1::TensorMap& map = *kernel.add_tensor_maps();
    map.set_arg(from.arg);
    map.set_element_bytes(from.element_bytes);
    map.mutable_extents()->Add(from.extents.begin(), from.extents.end());
    map.mutable_strides()->Add(from.strides.begin(), from.strides.end());
    map.mutable_box()->Add(from.box.begin(), from.box.end());
    map.set_swizzle_bytes(from.swizzle_bytes);
  }
  kernel.set_registers(launch.registers);
  kernel.set_spilled_bytes(launch.spilled_bytes);
  kernel.set_stack_bytes(launch.stack_bytes);
  kernel.set_shared_bytes(launch.shared_bytes);
}

}  // namespace

v1::Artifact MakeArtifact(codegen::Compiled compiled, std::string_view device) {
  v1::Artifact artifact;
  artifact.set_device(std::string(device));
  artifact.set_binary(std::move(compiled.binary));
  for (const codegen::Argument& argument : compiled.args) {
    AddArgument(argument, *artifact.mutable_plan());
  }
  for (const codegen::Launch& launch : compiled.launches) {
    AddLaunch(launch, *artifact.mutable_plan());
  }
  artifact.set_digest(DigestOf(artifact));
  return artifact;
}

}  // namespace kiln::builder
