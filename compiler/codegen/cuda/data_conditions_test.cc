#include "compiler/codegen/cuda/data_conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/state.h"

namespace kiln::codegen {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

StatusOr<std::string> CudaOfDag(const std::string& text) {
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(text));
  KILN_ASSIGN_OR_RETURN(const ir::Program program,
                        lower::Lower(schedule::State(dag), {.gpu = true}));
  KILN_ASSIGN_OR_RETURN(const CudaSource source, GenerateCuda(program));
  return source.text;
}

std::string CudaOf(const std::string& value) {
  const StatusOr<std::string> text = CudaOfDag(
      "input x: float32[64]\ninput z: float32[64]\ny[i: 64] = " + value + " + 0.0 * z[0]\n");
  return text.ok() ? *text : std::string(Message(text.status()));
}

TEST(DataConditions, AnArgmaxHasNoBranch) {
  for (const char* reduction : {"argmax", "argmin"}) {
    for (const char* type : {"float32", "float16"}) {
      const auto text = CudaOfDag(fmt::format(
          "input A: {}[5, 7]\nM[i: 5] = {}(k: 7) (int32(k), A[i, k])\n", type, reduction));
      ASSERT_OK(text);
      // Functions that convert short floats stand before the kernel.
      const size_t kernel = text->find("__global__");
      ASSERT_NE(kernel, std::string::npos);
      EXPECT_THAT(text->substr(kernel), AllOf(HasSubstr(" | "), HasSubstr(" & "),
                                              Not(HasSubstr("&&")), Not(HasSubstr("||"))));
    }
  }
}

TEST(DataConditions, WhatASelectReadsAnywayIsReadAtOnce) {
  EXPECT_THAT(CudaOf("select(x[i] > 0.0 && z[i] > 1.0, x[i], z[i])"),
              HasSubstr("(x[i_1] > 0.0f) & (z[i_1] > 1.0f) ?"));
  EXPECT_THAT(CudaOf("select(x[i] > 0.0 || x[i] < -1.0, x[i], 0.0)"),
              HasSubstr("(x[i_1] > 0.0f) | (x[i_1] < -1.0f) ?"));
}

TEST(DataConditions, OtherElementsAreReadOnlyIfTheyAreNeeded) {
  EXPECT_THAT(CudaOf("select(x[i] > 0.0 && z[i] > 1.0, x[i], 0.0)"),
              HasSubstr("x[i_1] > 0.0f && z[i_1] > 1.0f ?"));
  EXPECT_THAT(CudaOf("if(x[i] > 0.0 && z[i] > 1.0, x[i], z[i])"),
              HasSubstr("x[i_1] > 0.0f && z[i_1] > 1.0f ?"));
}

TEST(DataConditions, CostlyPartsAreEvaluatedOnlyIfTheyAreNeeded) {
  EXPECT_THAT(CudaOf("select(x[i] > 0.0 && exp(x[i]) > 2.0, x[i], 0.0)"), HasSubstr("0.0f && "));
  EXPECT_THAT(CudaOf("select(x[i] > 0.0 && select(x[i] > 2.0, 1.0, x[i]) < 1.0, x[i], 0.0)"),
              HasSubstr("0.0f && "));
}

TEST(DataConditions, ConditionsOnIndicesAreAsTheyWere) {
  EXPECT_THAT(CudaOf("select(i > 1 && i < 40, x[i], 0.0)"), HasSubstr("i_1 > 1 && i_1 < 40 ?"));
}

}  // namespace
}  // namespace kiln::codegen
