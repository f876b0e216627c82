#include "scheduler/dispatch/known_outputs.h"

#include <cstring>

#include "base/status_testing.h"
#include "compiler/dag/evaluate.h"
#include "rpc/random_fill.h"

namespace kiln::scheduler {
namespace {

TEST(KnownOutputs, AreThoseOfTheInputsThatRunnersFill) {
  ASSERT_OK_AND_ASSIGN(const dag::DagText text, dag::ParseDagText(R"(@keep_order
@range(0.5, 2.0)
input x: float32[32, 24]
input ids: int32[40]
s[i: 32] = sum(k: 24) log(x[i, k])
y[i: 40] = s[ids[i]] + 1.0
)"));
  ASSERT_OK_AND_ASSIGN(const auto known, KnownOutputs(text, 7));
  std::vector<ir::NDArray> inputs = {ir::NDArray(ir::kFloat32, {32, 24}),
                                     ir::NDArray(ir::kInt32, {40})};
  const RandomInput x{.name = "x",
                      .dtype = runtime::DType::kFloat32,
                      .shape = {32, 24},
                      .range = ValueRange{0.5, 2}};
  const RandomInput ids{
      .name = "ids", .dtype = runtime::DType::kInt32, .shape = {40}, .index_limit = 32};
  FillRandom(inputs[0].mutable_bytes(), x.dtype, 0, RandomKey(x, 0, 7), x.range);
  FillRandom(inputs[1].mutable_bytes(), ids.dtype, 32, RandomKey(ids, 1, 7));
  ASSERT_OK_AND_ASSIGN(const auto want, dag::Evaluate(*text.dag, inputs));
  int elements = 0;
  for (const v1::KnownElements& of : known) {
    ASSERT_EQ(of.output(), 0u);
    ASSERT_EQ(of.element_size(), of.value_size());
    for (int i = 0; i < of.element_size(); ++i) {
      EXPECT_EQ(of.value(i), want[0].GetDouble(of.element(i))) << of.element(i);
    }
    elements += of.element_size();
  }
  EXPECT_GE(elements, 40);
}

TEST(KnownOutputs, OfALargeProductTakeAMoment) {
  ASSERT_OK_AND_ASSIGN(const dag::DagText text, dag::ParseDagText(R"(
input A: float32[4096, 4096]
input B: float32[4096, 4096]
C[i: 4096, j: 4096] = sum(k: 4096) A[i, k] * B[k, j]
)"));
  ASSERT_OK_AND_ASSIGN(const auto known, KnownOutputs(text, 1));
  EXPECT_GE(known.size(), 3u);
}

TEST(KnownOutputs, WhereEachIsTooDearThereAreNone) {
  ASSERT_OK_AND_ASSIGN(
      const dag::DagText text,
      dag::ParseDagText("input x: float32[4, 100000000]\ny[i: 4] = sum(k: 100000000) x[i, k]\n"));
  EXPECT_FALSE(KnownOutputs(text, 1).ok());
}

}  // namespace
}  // namespace kiln::scheduler
