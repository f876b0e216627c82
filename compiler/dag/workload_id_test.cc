#include "compiler/dag/workload_id.h"

#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"

namespace kiln::dag {
namespace {

DagPtr Op(std::string_view name, std::string_view args, ir::Type dtype = ir::kFloat32) {
  OpOptions options;
  options.dtype = dtype;
  const auto dag = BuildOp(name, args, options);
  EXPECT_OK(dag.status());
  return *dag;
}

DagPtr Text(std::string_view text) {
  const auto dag = ParseDag(text);
  EXPECT_OK(dag.status());
  return *dag;
}

// Checks that the computations share one key and have different identities.
void ExpectDistinct(const std::vector<DagPtr>& dags) {
  std::set<std::string> keys, ids;
  for (const DagPtr& dag : dags) {
    keys.insert(WorkloadKey(*dag));
    ids.insert(WorkloadId(*dag));
  }
  EXPECT_EQ(keys.size(), 1u);
  EXPECT_EQ(ids.size(), dags.size());
}

TEST(WorkloadId, TellsApartWhatTheKeyDoesNot) {
  {
    SCOPED_TRACE("extents of a reduction");
    ExpectDistinct(
        {Op("max_pool2d_nhwc", "1,35,35,64,2,2,2,0"), Op("max_pool2d_nhwc", "1,35,35,64,3,3,2,0")});
  }
  {
    SCOPED_TRACE("types");
    ExpectDistinct({Op("matmul", "64,64,64"), Op("matmul", "64,64,64", ir::kFloat64),
                    Op("matmul", "64,64,64", ir::kInt32), Op("matmul", "64,64,64", ir::kInt64)});
  }
  {
    SCOPED_TRACE("extents of a reduction that reads one element");
    ExpectDistinct({Text("input A: float32[8]\nS[i: 8] = sum(k: 10) A[i] * 0.5\n"),
                    Text("input A: float32[8]\nS[i: 8] = sum(k: 20000) A[i] * 0.5\n")});
  }
  {
    SCOPED_TRACE("constants within a call");
    ExpectDistinct({Text("input A: float32[8]\nB[i: 8] = exp(A[i] * 2.0)\n"),
                    Text("input A: float32[8]\nB[i: 8] = exp(A[i] * 3.0)\n")});
  }
}

TEST(WorkloadId, IsOfTheComputationWhateverTheFileLooksLike) {
  const DagPtr plain = Text("input A: float32[8]\nB[i: 8] = A[i] + 1.0\n");
  const DagPtr other = Text("# as before\ninput A:float32[8]\n\nB[i:8] = (A[i]+1.0)\n");
  EXPECT_EQ(WorkloadId(*plain), WorkloadId(*other));
  EXPECT_EQ(WorkloadId(*plain), WorkloadId(*Text(PrintDag(*plain))));
  EXPECT_EQ(WorkloadId(*plain).size(), 64u);
}

}  // namespace
}  // namespace kiln::dag
