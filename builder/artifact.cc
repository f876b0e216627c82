#include "builder/artifact.h"

#include <utility>

#include "base/digest.h"
#include "base/status.h"

namespace kiln::builder {
namespace {

v1::Artifact::Kind KindOf(codegen::BinaryKind kind) {
  switch (kind) {
    case codegen::BinaryKind::kSharedObject:
      return v1::Artifact::SHARED_OBJECT;
    case codegen::BinaryKind::kCubin:
      return v1::Artifact::CUBIN;
    case codegen::BinaryKind::kNull:
      return v1::Artifact::NULL_PROGRAM;
  }
  KILN_CHECK(false, "binary kind {}", static_cast<int>(kind));
  return v1::Artifact::NULL_PROGRAM;
}

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
}

void AddLaunch(const codegen::Launch& launch, v1::LaunchPlan& plan) {
  v1::KernelLaunch& kernel = *plan.add_launches();
  kernel.set_symbol(launch.symbol);
  kernel.mutable_grid()->Add(launch.grid.begin(), launch.grid.end());
  kernel.mutable_block()->Add(launch.block.begin(), launch.block.end());
  if (launch.cluster > 1) kernel.set_cluster(launch.cluster);
  kernel.set_dynamic_shared_bytes(launch.dynamic_shared_bytes);
  kernel.mutable_args()->Add(launch.args.begin(), launch.args.end());
  kernel.set_registers(launch.registers);
  kernel.set_spilled_bytes(launch.spilled_bytes);
  kernel.set_stack_bytes(launch.stack_bytes);
  kernel.set_shared_bytes(launch.shared_bytes);
}

// Unambiguous: no two sequences of calls feed the same bytes.
class CanonicalDigest {
 public:
  void Add(std::string_view bytes) { sha_.Update(fmt::format("{}:", bytes.size())).Update(bytes); }
  void Add(int64_t number) { sha_.Update(fmt::format("{};", number)); }
  template <typename T>
  void AddList(const T& numbers) {
    Add(int64_t{numbers.size()});
    for (const auto number : numbers) Add(int64_t{number});
  }
  std::string FinishHex() { return sha_.FinishHex(); }

 private:
  Sha256 sha_;
};

}  // namespace

std::string DigestOf(const v1::Artifact& artifact) {
  CanonicalDigest digest;
  digest.Add(int64_t{artifact.kind()});
  digest.Add(artifact.binary());
  digest.Add(int64_t{artifact.plan().args_size()});
  for (const v1::ArgSpec& spec : artifact.plan().args()) {
    digest.Add(spec.name());
    digest.Add(spec.dtype());
    digest.AddList(spec.shape());
    digest.Add(int64_t{spec.role()});
    digest.Add(int64_t{spec.alignment_bytes()});
    digest.Add(spec.index_limit());
  }
  digest.Add(int64_t{artifact.plan().launches_size()});
  for (const v1::KernelLaunch& kernel : artifact.plan().launches()) {
    digest.Add(kernel.symbol());
    digest.AddList(kernel.grid());
    digest.AddList(kernel.block());
    digest.Add(int64_t{kernel.dynamic_shared_bytes()});
    digest.AddList(kernel.args());
    if (kernel.cluster() > 1) digest.Add(int64_t{kernel.cluster()});
  }
  return digest.FinishHex();
}

v1::Artifact MakeArtifact(codegen::Compiled compiled) {
  v1::Artifact artifact;
  artifact.set_kind(KindOf(compiled.kind));
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
