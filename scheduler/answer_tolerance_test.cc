#include "scheduler/answer_tolerance.h"

#include <gtest/gtest.h>

#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"

namespace kiln::scheduler {
namespace {

constexpr char kFull[] = "cuda -arch=sm_90", kRounding[] = "cuda -arch=sm_90 -math=tf32";

std::string Text(ir::Type dtype) {
  return dag::PrintDag(**dag::BuildOp("matmul", "16,16,64", {.dtype = dtype}));
}

TEST(AnswerTolerance, IsByTypeUnlessTheTargetRounds) {
  const std::string product = Text(ir::kFloat32);
  EXPECT_EQ(AnswerTolerance({}, product, kFull).absolute(), 0);
  EXPECT_GT(AnswerTolerance({}, product, kRounding).absolute(), 1e-3);
  EXPECT_LT(AnswerTolerance({}, product, kRounding).absolute(), 3e-3);
  EXPECT_EQ(AnswerTolerance({}, Text(ir::kFloat16), kRounding).absolute(), 0);
  EXPECT_EQ(AnswerTolerance({}, "no computation", kRounding).absolute(), 0);
}

TEST(AnswerTolerance, WhatIsAskedForIsKept) {
  v1::Tolerance asked;
  asked.set_absolute(1e-6);
  const v1::Tolerance tolerance = AnswerTolerance(asked, Text(ir::kFloat32), kRounding);
  EXPECT_EQ(tolerance.absolute(), 1e-6);
  EXPECT_GT(tolerance.relative(), 0);
}

}  // namespace
}  // namespace kiln::scheduler
