#include "graph/passes/passes.h"

#include <fmt/format.h>

#include <utility>

#include "graph/passes/channels_last.h"
#include "graph/passes/fold_batch_norm.h"
#include "graph/passes/fold_constants.h"
#include "graph/passes/fold_patches.h"
#include "graph/passes/fold_scales.h"
#include "graph/passes/merge_equal.h"
#include "graph/passes/merge_products.h"
#include "graph/passes/reshapes_down.h"
#include "graph/passes/row_norms.h"
#include "graph/passes/simplify.h"
#include "graph/passes/weights_along_sum.h"
#include "graph/passes/winograd.h"
#include "graph/rewrite.h"
#include "graph/verify.h"

namespace kiln::graph {
namespace {

using Run = StatusOr<Graph> (*)(const Graph&);

Pass Always(std::string_view name, std::string_view doc, Run run) {
  return {.name = name, .doc = doc, .run = [run](const Graph& graph, const PassOptions&) {
            return run(graph);
          }};
}

}  // namespace

const std::vector<Pass>& AllPasses() {
  static const std::vector<Pass> passes = {
      Always("dead-code", "leaves out what no output is made of", WithoutDeadCode),
      Always("fold-constants", "computes what is made of constants alone", FoldConstants),
      Always("simplify", "splits become slices; leaves out what does nothing", Simplify),
      Always("row-norms", "normalisation over last axes is one node", RowNorms),
      Always("reshapes-down", "reshapes of products go behind elementwise functions", ReshapesDown),
      {.name = "channels-last",
       .doc = "convolutions and pools with the channels last",
       .run = [](const Graph& graph, const PassOptions&) { return ChannelsLast(graph); },
       .wanted = [](const PassOptions& options) { return options.channels_last; }},
      Always("fold-batch-norm", "normalisation with fixed statistics: a product and a sum",
             FoldBatchNorm),
      Always("fold-constants", "as above", FoldConstants),
      Always("fold-scales", "products with a number for each channel go into weights", FoldScales),
      Always("fold-constants", "as above", FoldConstants),
      Always("merge-products", "products of one input by constants become one", MergeProducts),
      Always("fold-patches", "rows of disjoint windows become channels", FoldPatches),
      {.name = "winograd",
       .doc = "3x3 convolutions by Winograd's method",
       .run = UseWinograd,
       .wanted = [](const PassOptions& o) { return o.winograd != WinogradRule::kNone; }},
      {.name = "weights-along-sum",
       .doc = "weights of convolutions with the output channels first",
       .run = WeightsAlongSum,
       .wanted = [](const PassOptions& options) { return !options.along_sum.empty(); }},
      Always("fold-constants", "as above", FoldConstants),
      Always("simplify", "as above", Simplify),
      Always("merge-equal", "equal nodes and constants become one", MergeEqual),
      Always("dead-code", "as above", WithoutDeadCode),
  };
  return passes;
}

StatusOr<Graph> RunPasses(Graph graph, const PassOptions& options,
                          const PassInstruments& instruments) {
  for (const Pass& pass : AllPasses()) {
    if (instruments.leave_out.contains(pass.name)) continue;
    if (pass.wanted != nullptr && !pass.wanted(options)) continue;
    StatusOr<Graph> after = pass.run(graph, options);
    if (!after.ok()) return Annotate(after.status(), fmt::format("pass {}", pass.name));
    if (instruments.verify)
      KILN_RETURN_IF_ERROR(Annotate(Verify(*after), fmt::format("after pass {}", pass.name)));
    if (instruments.observer) instruments.observer(pass.name, graph, *after);
    graph = *std::move(after);
  }
  return graph;
}

}  // namespace kiln::graph
