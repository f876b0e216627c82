// The operator library by name: `conv2d_nchw` with arguments 1,7,7,512,512,3,3,1,1 and epilogue
// bias,relu is a DAG.
//
// Immutable after the first call; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/ops/op.h"

namespace kiln::dag {

struct OpOptions {
  ir::Type dtype = ir::kFloat32;
  // Type of products, sums and the result. None: int32 for int8; for 16-bit floats, float32 for
  // products and sums and dtype for the result; else dtype.
  std::optional<ir::Type> out_dtype = {};
  // Names of EpilogueNames(), applied to the result in this order.
  std::vector<std::string> epilogue = {};
};

// Parses "1,7,7,512,groups=2": positional numbers, then name=value. A list parameter may come more
// than once.
struct OpArguments {
  std::vector<int64_t> positional = {};
  std::vector<std::pair<std::string, int64_t>> named = {};
};
StatusOr<OpArguments> ParseOpArguments(std::string_view text);
// Splits "bias,relu". An empty text gives no names.
std::vector<std::string> SplitEpilogue(std::string_view text);

// Returns all operators, in the order of the documentation. Names are unique.
const std::vector<OpInfo>& AllOps();
// If there is no such operator, the error names the closest ones.
StatusOr<const OpInfo*> FindOp(std::string_view name);
// Returns bias, scale, residual, and the elementwise functions.
std::vector<std::string> EpilogueNames();
// Returns "conv2d_nchw takes N,H,W,CO,CI,KH,KW,stride,pad[,dilation[,groups]]".
std::string Signature(const OpInfo& op);

StatusOr<DagPtr> BuildOp(std::string_view name, const OpArguments& arguments,
                         const OpOptions& options = {});
// Builds from text: BuildOp("matmul", "512,512,512", {.epilogue = {"relu"}}).
StatusOr<DagPtr> BuildOp(std::string_view name, std::string_view arguments,
                         const OpOptions& options = {});

// Returns the other variants of an operator that are worth measuring on a GPU or a CPU. BuildOp
// makes them and their preparation, with the same options (the preparation without an epilogue).
StatusOr<std::vector<AlgorithmVariant>> AlgorithmVariants(std::string_view name,
                                                          std::string_view arguments,
                                                          const OpOptions& options, bool gpu);

// Returns the part of docs/operators.md between its markers: tables of the operators by family.
std::string OperatorTables();

}  // namespace kiln::dag
