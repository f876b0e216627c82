#include "client/check/large_workloads.h"

#include "compiler/dag/text.h"

namespace kiln::client {
namespace {

struct Text {
  const char* name;
  const char* text;
};

// Tensors with 0.2% more than 2^31 elements, in whole and odd rows.
constexpr Text kTexts[] = {
    {"element-wise, 2^31 elements and more",
     "input x: float16[65602, 32815]\n"
     "y[i: 65602, j: 32815] = x[i, j] * 0.5 + 1.0\n"},
    {"sums of rows, 2^31 elements and more",
     "input x: int8[65602, 32815]\n"
     "y[i: 65602] = sum(j: 32815) int32(x[i, j])\n"},
    {"transposition, 2^31 elements and more",
     "input x: int8[65602, 32815]\n"
     "y[j: 32815, i: 65602] = x[i, j]\n"},
    {"gather, offsets of 2^31 and more",
     "input table: int8[134545408, 16]\n"
     "input ids: int32[262144]\n"
     "y[i: 262144, j: 16] = table[ids[i], j]\n"},
};

}  // namespace

StatusOr<std::vector<NamedComputation>> LargeWorkloads() {
  std::vector<NamedComputation> all;
  for (const auto& [name, text] : kTexts) {
    KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, dag::ParseDag(text));
    all.push_back({name, std::move(dag)});
  }
  return all;
}

}  // namespace kiln::client
