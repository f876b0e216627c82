#include "compiler/lower/annotations.h"

#include "base/status_testing.h"
#include "compiler/lower/state_testing.h"

namespace kiln::lower {
namespace {

// Stage 2 has the loops i, j, k.
constexpr std::string_view kMatmul = R"(
    input A: float32[4, 8]
    input B: float32[8, 6]
    C[i: 4, j: 6] = sum(k: 8) A[i, k] * B[k, j])";

Status Check(std::string_view steps, bool gpu) {
  return CheckAnnotations(StateFrom(kMatmul, steps), gpu);
}

TEST(Annotations, WhatACpuUnderstands) {
  EXPECT_OK(Check(R"([["AN", 2, 0, 3], ["AN", 2, 1, 2], ["AN", 2, 2, 1]])", false));
}

TEST(Annotations, WhatAGpuUnderstands) {
  EXPECT_OK(Check(R"([["AN", 2, 0, 5], ["AN", 2, 1, 6], ["AN", 2, 2, 6]])", true));
}

struct Refusal {
  std::string name;
  std::string_view steps;
  bool gpu;
  StatusCode code;
  std::string_view message;
};

void PrintTo(const Refusal& r, std::ostream* out) { *out << r.name; }

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, NamesStageLoopAndReason) {
  const Refusal& r = GetParam();
  EXPECT_THAT(Check(r.steps, r.gpu), StatusIs(r.code, std::string(r.message)));
}

std::vector<Refusal> Refusals() {
  constexpr StatusCode kPrecondition = StatusCode::kFailedPrecondition;
  std::vector<Refusal> refusals = {
      {"ParallelReduction", R"([["AN", 2, 2, 3]])", false, kPrecondition,
       "stage 2 (C), loop 2 (k): a reduction loop cannot be parallel: iterations depend on each "
       "other; use rfactor first"},
      {"VectorizedReduction", R"([["AN", 2, 2, 2]])", false, kPrecondition,
       "stage 2 (C), loop 2 (k): a reduction loop cannot be vectorized: iterations depend on each "
       "other; use rfactor first"},
      {"VectorizedReductionOnAGpu", R"([["AN", 2, 2, 2]])", true, kPrecondition,
       "stage 2 (C), loop 2 (k): a reduction loop cannot be vectorized: iterations depend on each "
       "other; use rfactor first"},
      {"PieceOfAReduction", R"([["SP", 2, 2, 8, [4], 1], ["AN", 2, 3, 2]])", false, kPrecondition,
       "stage 2 (C), loop 3 (k.1): a reduction loop cannot be vectorized: iterations depend on "
       "each other; use rfactor first"},
      {"ClusterReduction", R"([["AN", 2, 2, 12]])", true, kPrecondition,
       "stage 2 (C), loop 2 (k): the blocks of a cluster cannot share a reduction loop; use "
       "rfactor "
       "first"},
      {"ParallelOnAGpu", R"([["AN", 2, 0, 3]])", true, kPrecondition,
       "stage 2 (C), loop 0 (i): parallel has no meaning on a GPU; bind the loop"},
      {"FusedSpatialAndReduction", R"([["FU", 2, [1, 2]]])", false, kPrecondition,
       "stage 2 (C), loop 1 (j@k@): a loop that fuses spatial with reduction axes cannot be "
       "lowered; fuse axes of one kind"},
      {"Tensorize", R"([["AN", 2, 1, 11]])", false, StatusCode::kUnimplemented,
       "stage 2 (C), loop 1 (j): tensorize is not supported"},
  };
  return refusals;
}

INSTANTIATE_TEST_SUITE_P(All, Refused, testing::ValuesIn(Refusals()),
                         [](const auto& info) { return info.param.name; });

TEST(Annotations, BindingsOnACpuAreRefused) {
  for (int annotation = 4; annotation <= 10; ++annotation) {
    const auto name = schedule::AnnotationName(static_cast<schedule::Annotation>(annotation));
    EXPECT_THAT(
        Check(fmt::format(R"([["AN", 2, 1, {}]])", annotation), false),
        StatusIs(StatusCode::kFailedPrecondition,
                 fmt::format("stage 2 (C), loop 1 (j): {} has no meaning on a CPU; use parallel, "
                             "vectorize or unroll",
                             name)));
  }
}

TEST(Annotations, OfAnInlinedStageDoNotMatter) {
  const schedule::State state = StateFrom(R"(
      input A: float32[4]
      B[i: 4] = A[i] + 1.0
      C[i: 4] = B[i] * 2.0)",
                                          R"([["AN", 1, 0, 6], ["CI", 1]])");
  EXPECT_OK(CheckAnnotations(state, false));
}

}  // namespace
}  // namespace kiln::lower
