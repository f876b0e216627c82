#include "runner/cuda_program.h"

#include "runner/arguments.h"

namespace kiln::runner {

// For the names of the CUDA driver.
using namespace runtime;

namespace {

Status ReadExtents(std::string_view what, const google::protobuf::RepeatedField<uint32_t>& from,
                   unsigned (&into)[3]) {
  if (from.empty() || from.size() > 3) {
    return InvalidArgument("{} of {} extents, expected x, y, z", what, from.size());
  }
  for (int axis = 0; axis < from.size(); ++axis) into[axis] = from[axis];
  return OkStatus();
}

StatusOr<CudaLaunchShape> ReadShape(const v1::KernelLaunch& from, int plan_args) {
  CudaLaunchShape shape{.dynamic_shared_bytes = from.dynamic_shared_bytes(),
                        .cluster = from.cluster()};
  KILN_RETURN_IF_ERROR(ReadExtents("grid", from.grid(), shape.grid));
  KILN_RETURN_IF_ERROR(ReadExtents("block", from.block(), shape.block));
  for (uint32_t index : from.args()) {
    if (index < static_cast<uint32_t>(plan_args)) continue;
    return InvalidArgument("takes argument {} of a plan with {}", index, plan_args);
  }
  return shape;
}

StatusOr<TensorMap> ReadTensorMap(const v1::TensorMap& from, const v1::LaunchPlan& plan) {
  const TensorMap map{.arg = from.arg(),
                      .element_bytes = from.element_bytes(),
                      .extents = {from.extents().begin(), from.extents().end()},
                      .strides = {from.strides().begin(), from.strides().end()},
                      .box = {from.box().begin(), from.box().end()},
                      .swizzle_bytes = from.swizzle_bytes()};
  KILN_RETURN_IF_ERROR(CheckTensorMap(map));
  if (map.arg >= static_cast<uint32_t>(plan.args_size()))
    return InvalidArgument("maps argument {} of a plan with {}", map.arg, plan.args_size());
  KILN_ASSIGN_OR_RETURN(const std::vector<Argument> arguments, ParseArguments(plan));
  const Argument& argument = arguments[map.arg];
  if (ReachedBytes(map) <= argument.bytes) return map;
  return InvalidArgument("maps {} bytes of argument '{}', which has {}", ReachedBytes(map),
                         argument.name, argument.bytes);
}

}  // namespace

StatusOr<std::unique_ptr<CudaProgram>> CudaProgram::Load(const CudaDriver& driver,
                                                         const CudaGpu& gpu,
                                                         const v1::Artifact& artifact) {
  if (artifact.device() != "cuda") {
    return InvalidArgument("the artifact is for device '{}', expected one for cuda",
                           artifact.device());
  }
  KILN_RETURN_IF_ERROR(CheckCubin(artifact.binary()));
  if (artifact.plan().launches().empty()) return InvalidArgument("the plan launches nothing");
  std::unique_ptr<CudaProgram> program(new CudaProgram(driver));
  KILN_ASSIGN_OR_RETURN(program->module_, CudaModule::Load(driver, gpu, artifact.binary()));
  for (const v1::KernelLaunch& from : artifact.plan().launches()) {
    KILN_ASSIGN_OR_RETURN(PlannedLaunch launch, program->Prepare(from, artifact.plan()));
    program->launches_.push_back(std::move(launch));
  }
  return program;
}

StatusOr<CudaProgram::PlannedLaunch> CudaProgram::Prepare(const v1::KernelLaunch& from,
                                                          const v1::LaunchPlan& plan) const {
  const auto shape = ReadShape(from, plan.args_size());
  if (!shape.ok()) return Annotate(shape.status(), fmt::format("kernel '{}'", from.symbol()));
  PlannedLaunch planned;
  for (const uint32_t arg : from.args()) planned.parameters.push_back({.arg = arg});
  for (const v1::ScalarArgument& scalar : from.scalars()) {
    const size_t bytes = scalar.value().size();
    const bool has_size = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (scalar.position() > planned.parameters.size() || !has_size) {
      return InvalidArgument(
          "kernel '{}': a number of {} bytes at place {} among its parameters, expected 1, 2, 4 or "
          "8 "
          "bytes at 0 to {}",
          from.symbol(), bytes, scalar.position(), planned.parameters.size());
    }
    planned.parameters.insert(planned.parameters.begin() + scalar.position(),
                              {.value = scalar.value()});
  }
  std::vector<size_t> bytes;
  for (const PlannedLaunch::Parameter& parameter : planned.parameters)
    bytes.push_back(parameter.value.empty() ? sizeof(CuPointer) : parameter.value.size());
  for (const v1::TensorMap& map : from.tensor_maps()) {
    const auto read = ReadTensorMap(map, plan);
    if (!read.ok()) return Annotate(read.status(), fmt::format("kernel '{}'", from.symbol()));
    planned.tensor_maps.push_back(*read);
    bytes.push_back(sizeof(CuTensorMap));
  }
  KILN_ASSIGN_OR_RETURN(planned.launch, module_->Prepare(from.symbol(), *shape, bytes));
  return planned;
}

Status CudaProgram::Launch(CuStream stream, std::span<CuPointer> args) const {
  std::vector<void*> parameters;
  std::vector<CuTensorMap> maps;
  for (const PlannedLaunch& planned : launches_) {
    parameters.clear();
    maps.clear();
    for (const TensorMap& map : planned.tensor_maps) {
      KILN_ASSIGN_OR_RETURN(const CuTensorMap encoded,
                            EncodeTensorMap(driver_, map, args[map.arg]));
      maps.push_back(encoded);
    }
    for (const PlannedLaunch::Parameter& parameter : planned.parameters) {
      // The driver reads the value and writes nothing.
      void* const value = const_cast<char*>(parameter.value.data());
      parameters.push_back(parameter.value.empty() ? &args[parameter.arg] : value);
    }
    for (CuTensorMap& map : maps) parameters.push_back(&map);
    KILN_RETURN_IF_ERROR(runtime::Launch(driver_, planned.launch, stream, parameters.data()));
  }
  return OkStatus();
}

}  // namespace kiln::runner
