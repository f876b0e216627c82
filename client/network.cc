#include "client/network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/file/file.h"
#include "compiler/dag/text.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/target/math.h"
#include "frontend/onnx/import.h"
#include "frontend/zoo/zoo.h"
#include "graph/prepare.h"
#include "graph/text.h"

namespace kiln::client {
namespace {

constexpr std::string_view kByName = "network:";

StatusOr<graph::Graph> LoadByName(const NetworkArguments& arguments) {
  frontend::ZooOptions options{.batch = arguments.batch,
                               .channels_last = arguments.layout != "nchw",
                               .seed = arguments.seed,
                               .sequence = arguments.sequence};
  if (!arguments.layout.empty() && arguments.layout != "nhwc" && arguments.layout != "nchw")
    return InvalidArgument("layout {}, expected nhwc or nchw", arguments.layout);
  KILN_ASSIGN_OR_RETURN(options.dtype, ir::ParseType(arguments.dtype));
  return frontend::MakeZooNetwork(std::string_view(arguments.what).substr(kByName.size()), options);
}

// Parses an input's extents, such as "x=1,3,224,224".
Status AddInput(std::string_view text, frontend::ImportOptions& options) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return InvalidArgument(
        "--input {}: expected NAME=EXTENT,EXTENT,..., for instance x=1,3,224,224", text);
  }
  std::vector<int64_t>& shape = options.input_shapes[std::string(text.substr(0, equals))];
  std::string_view rest = text.substr(equals + 1);
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + comma, extent);
    if (error != std::errc() || end != rest.data() + comma || extent < 1)
      return InvalidArgument("--input {}: expected extents of at least 1", text);
    shape.push_back(extent);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return OkStatus();
}

StatusOr<graph::Graph> LoadFile(const NetworkArguments& arguments) {
  if (arguments.what.ends_with(".graph")) {
    KILN_ASSIGN_OR_RETURN(const std::string text, ReadFile(arguments.what));
    return graph::ParseGraph(text);
  }
  frontend::ImportOptions options;
  for (const std::string& input : arguments.inputs) KILN_RETURN_IF_ERROR(AddInput(input, options));
  return frontend::ImportOnnx(arguments.what, options);
}

// Returns "conv 1,56,56,64 x 3,3,64,64 + add + relu"; "... + add (stored) + relu" if the sum is an
// output too; "attention: matmul 1,12,128,64 x 1,12,128,64 + mul + softmax + matmul" without the
// moves of an attention.
std::string Description(const graph::Graph& graph, const graph::KernelGroup& group) {
  std::vector<std::string> shapes, nodes;
  for (graph::ValueId id : graph.node(group.anchor).inputs) {
    if (id != graph::kAbsent && shapes.size() < 2)
      shapes.push_back(fmt::format("{}", fmt::join(graph.value(id).type.shape, ",")));
  }
  for (int node : group.nodes) {
    if (group.is_attention && graph.node(node).op->pattern == graph::OpPattern::kInjective)
      continue;
    nodes.push_back(graph.node(node).op->name);
    if (node == group.anchor) nodes.back() += fmt::format(" {}", fmt::join(shapes, " x "));
    if (graph::IsStoredBetween(graph, group, node)) nodes.back() += " (stored)";
  }
  return fmt::format("{}{}", group.is_attention ? "attention: " : "", fmt::join(nodes, " + "));
}

graph::WinogradRule RuleOf(Variants variants) {
  return variants == Variants::kDirect     ? graph::WinogradRule::kNone
         : variants == Variants::kWinograd ? graph::WinogradRule::kTvm
                                           : graph::WinogradRule::kFast;
}

// Returns the name of the placeholder that stands for a value in the kernel's computation: "p1".
std::string PlaceholderOf(const graph::NodeDag& computation, graph::ValueId id) {
  const auto found = std::ranges::find(computation.inputs, id);
  KILN_CHECK(found != computation.inputs.end(), "a kernel's weights are none of its inputs");
  const dag::Dag& dag = *computation.dag;
  const auto input = static_cast<size_t>(found - computation.inputs.begin());
  return dag::TensorName(dag, dag::DisplayNames(dag), dag.arguments()[input]);
}

// Returns how the weights of a Winograd kernel are made; "" for any other kernel.
std::string PreparationOf(const graph::PreparedNetwork& network, int kernel) {
  const graph::Node& node = network.graph.node(network.group(kernel).anchor);
  if (node.op->name != "winograd_conv") return "";
  const auto number = [&](const char* name) { return std::get<int64_t>(node.attributes.at(name)); };
  return fmt::format(
      "{} = winograd_weights tile={}, by_rows={}, stride={}",
      PlaceholderOf(*network.kernels.dags[static_cast<size_t>(kernel)], node.inputs[1]),
      number("tile"), number("by_rows"), number("stride"));
}

TaskVariant VariantOf(const graph::PreparedNetwork& network, const graph::NetworkTask& task) {
  return {.name = {}, .preparation = PreparationOf(network, task.kernels[0]), .dag = task.dag};
}

}  // namespace

bool IsNetwork(std::string_view what) {
  return what.starts_with(kByName) || what.ends_with(".onnx") || what.ends_with(".graph");
}

bool IsNarrowed(const NetworkArguments& arguments) {
  return !arguments.what.starts_with(kByName) && arguments.dtype != "float32";
}

StatusOr<graph::Graph> LoadWide(const NetworkArguments& arguments) {
  NetworkArguments wide = arguments;
  wide.dtype = "float32";
  return LoadNetwork(wide);
}

StatusOr<graph::NarrowedNetwork> Narrow(const graph::Graph& wide,
                                        const NetworkArguments& arguments) {
  KILN_CHECK(IsNarrowed(arguments), "{} as {}", arguments.what, arguments.dtype);
  StatusOr<ir::Type> type = ir::ParseType(arguments.dtype);
  if (!type.ok()) return Annotate(type.status(), "--dtype");
  StatusOr<graph::NarrowedNetwork> narrowed = graph::NarrowFloats(wide, *type);
  if (!narrowed.ok()) return Annotate(narrowed.status(), arguments.what);
  return narrowed;
}

StatusOr<graph::Graph> LoadNetwork(const NetworkArguments& arguments) {
  if (IsNarrowed(arguments)) {
    KILN_ASSIGN_OR_RETURN(const graph::Graph wide, LoadWide(arguments));
    KILN_ASSIGN_OR_RETURN(graph::NarrowedNetwork narrowed, Narrow(wide, arguments));
    return std::move(narrowed.graph);
  }
  StatusOr<graph::Graph> network =
      arguments.what.starts_with(kByName) ? LoadByName(arguments) : LoadFile(arguments);
  // The ONNX importer's errors name the file already.
  const bool is_named = arguments.what.ends_with(".onnx");
  if (!network.ok() && !is_named) return Annotate(network.status(), arguments.what);
  return network;
}

StatusOr<Variants> ParseVariants(std::string_view word) {
  if (word == "direct") return Variants::kDirect;
  if (word == "winograd") return Variants::kWinograd;
  if (word == "all") return Variants::kAll;
  return InvalidArgument("variants {}, expected direct, winograd or all", word);
}

StatusOr<bool> ParseLayoutRewrite(std::string_view word, const target::Target& target) {
  if (word.empty()) return !target.is_gpu() && target.kind->runs_programs;
  if (word == kRewriteNone) return false;
  if (word != kRewritePreTransformed) {
    return InvalidArgument("layout rewrite {}, expected {} or {}", word, kRewriteNone,
                           kRewritePreTransformed);
  }
  return true;
}

graph::PassOptions PassOptionsFor(const target::Target& target, graph::WinogradRule winograd) {
  graph::PassOptions options{.is_gpu = target.is_gpu(), .winograd = winograd};
  for (const instructions::MatrixUnit& unit : instructions::MatrixUnits()) {
    // Types of 16 bits may have either order. The target's architecture may not be known yet.
    const bool is_allowed = !unit.rounds || target::AllowsTf32(target);
    if (target.is_gpu() && is_allowed && unit.factor.bytes() != 2)
      options.along_sum.push_back(unit.factor);
  }
  return options;
}

StatusOr<std::string> NetworkText(const graph::Graph& network, const target::Target& target,
                                  Variants variants, std::string_view after) {
  if (after.empty()) return graph::PrintGraph(network);
  std::string text;
  std::vector<std::string_view> names = {"all"};
  for (const graph::Pass& pass : graph::AllPasses()) names.push_back(pass.name);
  if (std::ranges::find(names, after) == names.end()) {
    return InvalidArgument("there is no pass '{}', expected one of: {}", after,
                           fmt::join(names, ", "));
  }
  const auto observe = [&](std::string_view name, const graph::Graph&, const graph::Graph& now) {
    if (name == after) text = graph::PrintGraph(now);
  };
  KILN_ASSIGN_OR_RETURN(
      const graph::Graph done,
      graph::RunPasses(network, PassOptionsFor(target, RuleOf(variants)), {.observer = observe}));
  return after == "all" ? graph::PrintGraph(done) : text;
}

StatusOr<std::vector<NetworkTuneTask>> TuneTasks(const graph::Graph& network,
                                                 const target::Target& target,
                                                 const TaskSelection& selection) {
  const auto prepare = [&](graph::WinogradRule rule) {
    return graph::PrepareNetwork(network, {.passes = PassOptionsFor(target, rule),
                                           .pack_constants = selection.pack_constants});
  };
  KILN_ASSIGN_OR_RETURN(
      const graph::PreparedNetwork prepared,
      prepare(selection.variants == Variants::kWinograd ? graph::WinogradRule::kTvm
                                                        : graph::WinogradRule::kNone));
  graph::PreparedNetwork other;
  if (selection.variants == Variants::kAll) {
    KILN_ASSIGN_OR_RETURN(other, prepare(graph::WinogradRule::kFast));
  }
  const std::map<std::string, const graph::NetworkTask*> other_tasks = graph::TasksByMade(other);
  std::vector<NetworkTuneTask> tasks;
  for (const graph::NetworkTask& task : prepared.kernels.tasks) {
    if (task.is_simple && !selection.include_simple) continue;
    NetworkTuneTask& tuned = tasks.emplace_back(
        NetworkTuneTask{.weight = static_cast<double>(task.kernels.size()),
                        .description = Description(prepared.graph, prepared.group(task.kernels[0])),
                        .is_simple = task.is_simple,
                        .variants = {VariantOf(prepared, task)}});
    const auto same = other_tasks.find(prepared.MadeBy(task.kernels[0]));
    if (same == other_tasks.end() || same->second->workload_id == task.workload_id) continue;
    tuned.variants[0].name = "direct";
    tuned.variants.push_back(VariantOf(other, *same->second));
    tuned.variants[1].name = "winograd";
  }
  return tasks;
}

}  // namespace kiln::client
