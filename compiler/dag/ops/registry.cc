#include "compiler/dag/ops/registry.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text/closest_names.h"
#include "compiler/dag/ops/epilogue.h"

namespace kiln::dag {
namespace {

std::vector<OpInfo> CollectOps() {
  std::vector<OpInfo> all;
  for (auto family : {MatmulOps, AttentionOps, ConvOps, DepthwiseOps, ConvTransposeOps, WinogradOps,
                      PoolOps, AdaptivePoolOps, SoftmaxOps, NormalizeOps, ReduceOps, UnaryOps,
                      BinaryOps, RearrangeOps, PadOps, ResizeOps}) {
    for (OpInfo& op : family()) all.push_back(std::move(op));
  }
  return all;
}

// Resolves old or short names of operators.
std::string_view Canonical(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
      {"conv1d", "conv1d_ncw"},
      {"conv3d", "conv3d_ncdhw"},
      {"conv2d_transpose", "conv2d_transpose_nchw"},
      {"adaptive_avg_pool1d", "adaptive_avg_pool1d_ncw"},
      {"adaptive_max_pool1d", "adaptive_max_pool1d_ncw"},
      {"adaptive_avg_pool2d", "adaptive_avg_pool2d_nchw"},
      {"adaptive_max_pool2d", "adaptive_max_pool2d_nchw"},
      {"resize_nearest", "resize_nearest_nchw"},
      {"resize_bilinear", "resize_bilinear_nchw"},
      {"concatenate", "concat"},
      {"strided_slice", "slice"},
      {"take", "gather"},
      {"hardsigmoid", "hard_sigmoid"},
      {"hardswish", "hard_swish"},
      {"max_pool2d", "max_pool2d_nchw"},
      {"avg_pool2d", "avg_pool2d_nchw"},
      {"global_avg_pool2d", "global_avg_pool2d_nchw"},
      {"global_max_pool2d", "global_max_pool2d_nchw"},
      {"conv2d", "conv2d_nchw"},
      {"depthwise_conv2d", "depthwise_conv2d_nchw"},
      {"conv2d_winograd", "conv2d_winograd_nhwc"},
  };
  for (const auto& [alias, canonical] : kAliases) {
    if (alias == name) return canonical;
  }
  return name;
}

const Parameter* FindParameter(const OpInfo& op, std::string_view name) {
  for (const Parameter& p : op.parameters) {
    if (p.name == name) return &p;
  }
  return nullptr;
}

Status CheckRange(const OpInfo& op, std::string_view name, int64_t value, int64_t min,
                  int64_t max) {
  if (value >= min && value <= max) return OkStatus();
  return InvalidArgument("{}: {} = {}, expected {} to {}", op.name, name, value, min, max);
}

Status SetShape(const OpInfo& op, const OpArguments& arguments, OpArgs& args) {
  const std::vector<int64_t>& shape = arguments.positional;
  if (shape.size() < static_cast<size_t>(op.min_rank) || shape.size() > 8) {
    return InvalidArgument("{}: got {} arguments", Signature(op), shape.size());
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    KILN_RETURN_IF_ERROR(CheckRange(op, fmt::format("extent {}", i), shape[i], 1, kMaxExtent));
  }
  args.SetShape(shape);
  return OkStatus();
}

Status SetPositional(const OpInfo& op, const OpArguments& arguments, OpArgs& args) {
  if (op.takes_shape) return SetShape(op, arguments, args);
  const std::vector<int64_t>& values = arguments.positional;
  if (values.size() > op.parameters.size()) {
    return InvalidArgument("{}: got {} arguments", Signature(op), values.size());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const Parameter& p = op.parameters[i];
    KILN_RETURN_IF_ERROR(CheckRange(op, p.name, values[i], p.min, p.max));
    args.Set(p.name, values[i]);
  }
  return OkStatus();
}

StatusOr<OpArgs> ReadArguments(const OpInfo& op, const OpArguments& arguments) {
  OpArgs args;
  std::vector<std::string> given;
  if (!op.takes_shape) {
    for (size_t i = 0; i < std::min(arguments.positional.size(), op.parameters.size()); ++i) {
      given.push_back(op.parameters[i].name);
    }
  }
  KILN_RETURN_IF_ERROR(SetPositional(op, arguments, args));
  for (const auto& [name, value] : arguments.named) {
    const Parameter* p = FindParameter(op, name);
    if (p == nullptr) return InvalidArgument("{}: it has no parameter '{}'", Signature(op), name);
    KILN_RETURN_IF_ERROR(CheckRange(op, p->name, value, p->min, p->max));
    if (p->list) {
      args.Append(p->name, value);
      continue;
    }
    if (std::find(given.begin(), given.end(), name) != given.end()) {
      return InvalidArgument("{}: {} is given twice", op.name, name);
    }
    given.push_back(name);
    args.Set(p->name, value);
  }
  for (const Parameter& p : op.parameters) {
    if (p.list || std::find(given.begin(), given.end(), p.name) != given.end()) continue;
    if (!p.default_value) {
      return InvalidArgument("{}: got {} arguments", Signature(op),
                             arguments.positional.size() + arguments.named.size());
    }
    args.Set(p.name, *p.default_value);
  }
  return args;
}

StatusOr<int64_t> ParseNumber(std::string_view text, std::string_view what) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return value;
  return InvalidArgument("{} '{}': expected a whole number{}; several have commas between them",
                         what, text, error == std::errc::result_out_of_range ? " of 64 bits" : "");
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> SplitCommas(std::string_view text) {
  std::vector<std::string_view> parts;
  if (Trim(text).empty()) return parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(Trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

int64_t OpArgs::operator[](std::string_view name) const {
  auto it = values_.find(name);
  KILN_CHECK(it != values_.end() && it->second.size() == 1, "parameter {}", name);
  return it->second[0];
}

std::optional<size_t> OpContext::AxisAt(std::string_view parameter, int64_t value) {
  const auto rank = static_cast<int64_t>(args.shape().size());
  const int64_t at = value < 0 ? value + rank : value;
  if (at >= 0 && at < rank) return static_cast<size_t>(at);
  Fail("{} = {} of a tensor with {} dimension{}, expected {} to {}", parameter, value, rank,
       rank == 1 ? "" : "s", -rank, rank - 1);
  return std::nullopt;
}

void OpContext::RequireFloat() {
  if (!type.is_float() || !out_type.is_float())
    Fail("for float types only, got {}", TypeName(type.is_float() ? out_type : type));
}

const std::vector<int64_t>& OpArgs::list(std::string_view name) const {
  static const std::vector<int64_t> none;
  auto it = values_.find(name);
  return it == values_.end() ? none : it->second;
}

StatusOr<OpArguments> ParseOpArguments(std::string_view text) {
  OpArguments arguments;
  for (std::string_view part : SplitCommas(text)) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      if (!arguments.named.empty()) {
        return InvalidArgument("argument '{}' after '{}=': positional arguments come first", part,
                               arguments.named.back().first);
      }
      KILN_ASSIGN_OR_RETURN(const int64_t value, ParseNumber(part, "argument"));
      arguments.positional.push_back(value);
      continue;
    }
    const std::string name(Trim(part.substr(0, equals)));
    KILN_ASSIGN_OR_RETURN(const int64_t value,
                          ParseNumber(Trim(part.substr(equals + 1)), name + " ="));
    arguments.named.emplace_back(name, value);
  }
  return arguments;
}

std::vector<std::string> SplitEpilogue(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view part : SplitCommas(text)) names.emplace_back(part);
  return names;
}

const std::vector<OpInfo>& AllOps() {
  static const std::vector<OpInfo> ops = CollectOps();
  return ops;
}

StatusOr<const OpInfo*> FindOp(std::string_view name) {
  const std::string_view canonical = Canonical(name);
  std::vector<std::string> names;
  for (const OpInfo& op : AllOps()) {
    if (op.name == canonical) return &op;
    names.push_back(op.name);
  }
  const std::string guess = DidYouMean(name, names);
  return NotFound("unknown operator '{}'{} `kiln ops` lists the {} there are", name,
                  guess.empty() ? ";" : guess, names.size());
}

std::string Signature(const OpInfo& op) {
  std::string text = fmt::format("{} takes ", op.name);
  std::string closing;
  bool first = true;
  if (op.takes_shape) {
    text += "the extents of its input";
    for (const Parameter& p : op.parameters) text += fmt::format("[,{}=...]", p.name);
    return text;
  }
  for (const Parameter& p : op.parameters) {
    if (p.default_value) {
      text += first ? "[" : "[,";
      closing += "]";
    } else if (!first) {
      text += ",";
    }
    text += p.name;
    first = false;
  }
  return text + closing;
}

// Sums of short floats are rounded once, at the end.
ir::Type AccumulatorType(ir::Type type) {
  if (type == ir::kInt8) return ir::kInt32;
  return type.is_short_float() ? ir::kFloat32 : type;
}

ir::Type ResultType(ir::Type type) { return type == ir::kInt8 ? ir::kInt32 : type; }

TensorRef OpContext::Input(std::vector<int64_t> shape, ir::Type input_type) {
  const auto number = static_cast<size_t>(num_inputs_++);
  if (given_.empty())
    return b.Placeholder(fmt::format("p{}", number), input_type, std::move(shape));
  KILN_CHECK(number < given_.size(), "input {} of {}", number, given_.size());
  const TensorRef& input = given_[number];
  if (input.type() != input_type || input.shape() != shape) {
    Fail("input {} is {}[{}], expected {}[{}]", number, ir::TypeName(input.type()),
         fmt::join(input.shape(), ", "), ir::TypeName(input_type), fmt::join(shape, ", "));
  }
  return input;
}

StatusOr<DagPtr> BuildOp(std::string_view name, const OpArguments& arguments,
                         const OpOptions& options) {
  KILN_ASSIGN_OR_RETURN(const OpInfo* op, FindOp(name));
  KILN_ASSIGN_OR_RETURN(const OpArgs args, ReadArguments(*op, arguments));
  DagBuilder builder;
  OpContext context(builder, args, options.dtype,
                    options.out_dtype.value_or(AccumulatorType(options.dtype)),
                    options.out_dtype.value_or(ResultType(options.dtype)));
  TensorRef result = op->build(context);
  for (const std::string& step : options.epilogue) {
    KILN_ASSIGN_OR_RETURN(result, ApplyEpilogue(context, step, result, op->channel_axis));
  }
  if (options.dtype.is_short_float() && result.type() == context.out_type)
    result = Converted(context, result, context.result_type);
  StatusOr<DagPtr> dag = builder.Build();
  if (!dag.ok()) return Annotate(dag.status(), op->name);
  if (options.out_dtype && result.type() != *options.out_dtype) {
    return InvalidArgument("{} makes {} of {}: leave out the output type {}", op->name,
                           TypeName(result.type()), TypeName(options.dtype),
                           TypeName(*options.out_dtype));
  }
  return dag;
}

StatusOr<DagPtr> BuildOp(std::string_view name, std::string_view arguments,
                         const OpOptions& options) {
  // An unknown name is reported before errors in its arguments.
  KILN_RETURN_IF_ERROR(FindOp(name).status());
  KILN_ASSIGN_OR_RETURN(const OpArguments parsed, ParseOpArguments(arguments));
  return BuildOp(name, parsed, options);
}

StatusOr<std::vector<AlgorithmVariant>> AlgorithmVariants(std::string_view name,
                                                          std::string_view arguments,
                                                          const OpOptions& options, bool gpu) {
  KILN_ASSIGN_OR_RETURN(const OpInfo* op, FindOp(name));
  if (op->variants == nullptr) return std::vector<AlgorithmVariant>();
  KILN_ASSIGN_OR_RETURN(const OpArguments parsed, ParseOpArguments(arguments));
  KILN_ASSIGN_OR_RETURN(const OpArgs args, ReadArguments(*op, parsed));
  return op->variants(args, options.dtype, gpu);
}

namespace {

std::string ParameterCell(const OpInfo& op) {
  std::vector<std::string> cells;
  if (op.takes_shape) cells.push_back(fmt::format("extents of the input ({} to 8)", op.min_rank));
  for (const Parameter& p : op.parameters) {
    std::string cell = fmt::format("`{}`: {}", p.name, p.doc);
    if (p.default_value) cell += fmt::format(" (default {})", *p.default_value);
    cells.push_back(std::move(cell));
  }
  return fmt::format("{}", fmt::join(cells, "; "));
}

}  // namespace

std::string OperatorTables() {
  std::string text;
  std::vector<std::string> families;
  for (const OpInfo& op : AllOps()) {
    if (std::find(families.begin(), families.end(), op.family) == families.end())
      families.push_back(op.family);
  }
  for (const std::string& family : families) {
    text += fmt::format("\n### {}\n\n| operator | computes | arguments |\n|---|---|---|\n", family);
    for (const OpInfo& op : AllOps()) {
      if (op.family != family) continue;
      text += fmt::format("| `{}` | {} | {} |\n", op.name, op.doc, ParameterCell(op));
    }
  }
  return text + fmt::format("\nEpilogues: {}.\n", fmt::join(EpilogueNames(), ", "));
}

}  // namespace kiln::dag
