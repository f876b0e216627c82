#include "client/jobs/workload_source.h"

#include <algorithm>

#include "base/file/file.h"
#include "client/jobs/at_place.h"
#include "client/jobs/operator_name.h"
#include "client/network.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"

namespace kiln::client {
namespace {

constexpr size_t kMaxTextBytes = 16 << 20;

StatusOr<dag::OpOptions> OptionsOf(const WorkloadArguments& arguments) {
  dag::OpOptions options;
  KILN_ASSIGN_OR_RETURN(options.dtype, ir::ParseType(arguments.dtype));
  if (!arguments.out_dtype.empty()) {
    KILN_ASSIGN_OR_RETURN(options.out_dtype, ir::ParseType(arguments.out_dtype));
  }
  options.epilogue = dag::SplitEpilogue(arguments.epilogue);
  return options;
}

// Returns the types, "float16 -> float32" if the result's type is not the operator's own choice.
std::string TypesText(const WorkloadArguments& arguments, const dag::OpOptions& options) {
  const bool is_plain = !options.out_dtype || *options.out_dtype == dag::ResultType(options.dtype);
  if (is_plain) return arguments.dtype == "float32" ? "" : " " + arguments.dtype;
  return fmt::format(" {} -> {}", arguments.dtype, ir::TypeName(*options.out_dtype));
}

// Says how arguments are given. All operators need some.
Status WithoutArguments(const std::string& op, const Status& status) {
  return InvalidArgument(
      "{}; say them with --args, for instance `matmul --args 512,512,512`; `kiln ops {}` says what "
      "each of them is",
      Message(status), op);
}

StatusOr<Workload> LoadOperator(const WorkloadArguments& arguments) {
  KILN_ASSIGN_OR_RETURN(const std::string op, OperatorOf(arguments.op, arguments.layout));
  KILN_ASSIGN_OR_RETURN(const dag::OpOptions options, OptionsOf(arguments));
  Workload workload;
  auto dag = dag::BuildOp(op, arguments.args, options);
  if (!dag.ok() && arguments.args.empty()) return WithoutArguments(op, dag.status());
  KILN_ASSIGN_OR_RETURN(workload.dag, std::move(dag));
  workload.description = op + " " + arguments.args + TypesText(arguments, options);
  for (const std::string& name : options.epilogue) workload.description += " + " + name;
  return workload;
}

}  // namespace

bool IsForeignNetwork(std::string_view op) {
  constexpr std::string_view kSuffixes[] = {".pb",   ".pbtxt", ".tflite", ".pt",         ".pth",
                                            ".mlir", ".h5",    ".keras",  ".safetensors"};
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                     [&](std::string_view suffix) { return op.ends_with(suffix); });
}

bool IsTextFile(std::string_view op) {
  return op.ends_with(".te") || op.find('/') != std::string_view::npos;
}

StatusOr<dag::DagText> LoadTextFile(const std::string& path,
                                    std::span<const dag::ParamValue> params) {
  KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTextBytes));
  auto parsed = dag::ParseDagText(text, params);
  if (!parsed.ok()) return AtPlace(path, parsed.status());
  return parsed;
}

Status GiveRanges(std::span<const std::string> ranges, std::span<Workload* const> workloads) {
  for (const std::string& text : ranges) {
    KILN_ASSIGN_OR_RETURN(const dag::InputRange range, dag::ParseInputRange(text));
    Status missing;
    bool given = false;
    for (Workload* workload : workloads) {
      const Status fits = dag::CheckInputRanges(*workload->dag, {&range, 1});
      if (fits.code() == StatusCode::kNotFound) {
        missing = Annotate(fits, workload->description);
        continue;
      }
      KILN_RETURN_IF_ERROR(Annotate(fits, workload->description));
      std::erase_if(workload->ranges,
                    [&](const dag::InputRange& own) { return own.input == range.input; });
      workload->ranges.push_back(range);
      given = true;
    }
    if (!given) return Annotate(missing, fmt::format("--input-range {}", text));
  }
  return OkStatus();
}

StatusOr<Workload> LoadWorkload(const WorkloadArguments& arguments) {
  if (arguments.op.empty()) {
    return InvalidArgument(
        "no operator: name one, for instance `matmul --args 512,512,512`, or a "
        "text file; `kiln ops` lists the operators");
  }
  if (IsNetwork(arguments.op)) {
    return InvalidArgument(
        "{} is a network, expected an operator or a text file: kiln tune, kiln tasks and kiln "
        "compile take networks",
        arguments.op);
  }
  if (IsForeignNetwork(arguments.op)) {
    return InvalidArgument(
        "{} is a network of a kind that is not read, expected ONNX: export it as {}.onnx",
        arguments.op, arguments.op.substr(0, arguments.op.rfind('.')));
  }
  if (!IsTextFile(arguments.op)) {
    if (arguments.lets.empty()) return LoadOperator(arguments);
    return InvalidArgument("--let {}: {} is an operator, expected a text file with a param",
                           arguments.lets[0], arguments.op);
  }
  if (!arguments.args.empty() || !arguments.epilogue.empty() || arguments.dtype != "float32" ||
      !arguments.layout.empty()) {
    return InvalidArgument(
        "{} is a text file, which says its own shapes, types and epilogue: leave out --args, "
        "--dtype, --layout and --epilogue",
        arguments.op);
  }
  Workload workload;
  std::vector<dag::ParamValue> params;
  for (const std::string& let : arguments.lets) {
    KILN_ASSIGN_OR_RETURN(dag::ParamValue param, dag::ParseParamValue(let));
    if (std::ranges::find(params, param.name, &dag::ParamValue::name) != params.end())
      return InvalidArgument("--let {}: {} has a value already", let, param.name);
    params.push_back(std::move(param));
  }
  KILN_ASSIGN_OR_RETURN(dag::DagText text, LoadTextFile(arguments.op, params));
  workload.dag = std::move(text.dag);
  workload.ranges = std::move(text.ranges);
  workload.description = arguments.op.substr(arguments.op.rfind('/') + 1);
  for (const std::string& let : arguments.lets) workload.description += " " + let;
  return workload;
}

StatusOr<std::vector<WorkloadVariant>> LoadVariants(const WorkloadArguments& arguments,
                                                    std::string_view which, bool gpu) {
  std::vector<WorkloadVariant> variants(1);
  KILN_ASSIGN_OR_RETURN(variants[0].workload, LoadWorkload(arguments));
  if (which != kDirectVariants && !IsTextFile(arguments.op)) {
    KILN_ASSIGN_OR_RETURN(const dag::OpOptions options, OptionsOf(arguments));
    KILN_ASSIGN_OR_RETURN(const std::string op, OperatorOf(arguments.op, arguments.layout));
    KILN_ASSIGN_OR_RETURN(const auto others,
                          dag::AlgorithmVariants(op, arguments.args, options, gpu));
    for (const dag::AlgorithmVariant& other : others) {
      if (which != kAllVariants && !other.name.starts_with(which)) continue;
      WorkloadVariant& variant = variants.emplace_back();
      variant.name = other.name;
      variant.preparation =
          fmt::format("p{} = {} {}", other.prepared, other.prepare_op, other.prepare_args);
      if (arguments.dtype != "float32") variant.preparation += " " + arguments.dtype;
      KILN_ASSIGN_OR_RETURN(variant.workload.dag, dag::BuildOp(other.op, other.args, options));
      variant.workload.description = variants[0].workload.description + ", " + other.name;
    }
  }
  if (which == kWinogradVariants) variants.erase(variants.begin());
  if (variants.empty()) {
    return InvalidArgument(
        "{} has no {} variant: conv2d_nhwc has one for 3x3 kernels, stride 1, dilation 1, one "
        "group, "
        "float32 or float64; `all` takes what there is",
        arguments.op, which);
  }
  if (variants.size() > 1) variants[0].name = kDirectVariants;
  return variants;
}

}  // namespace kiln::client
