#include "scheduler/values/answer_tolerance.h"

#include <gtest/gtest.h>

#include <optional>

#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"

namespace kiln::scheduler {
namespace {

constexpr char kFull[] = "cuda -arch=sm_90", kRounding[] = "cuda -arch=sm_90 -math=tf32";

std::string Text(ir::Type dtype, std::optional<ir::Type> out_dtype = {}) {
  return dag::PrintDag(
      **dag::BuildOp("matmul", "16,16,64", {.dtype = dtype, .out_dtype = out_dtype}));
}

TEST(AnswerTolerance, IsByTypeUnlessTheTargetRounds) {
  const std::string product = Text(ir::kFloat32);
  EXPECT_EQ(AnswerTolerance({}, product, kFull).absolute(), 0);
  EXPECT_GT(AnswerTolerance({}, product, kRounding).absolute(), 1e-3);
  EXPECT_LT(AnswerTolerance({}, product, kRounding).absolute(), 3e-3);
  EXPECT_EQ(AnswerTolerance({}, Text(ir::kFloat16), kRounding).absolute(), 0);
  EXPECT_EQ(AnswerTolerance({}, "no computation", kRounding).absolute(), 0);
}

TEST(AnswerTolerance, OfFloat8WhereThereAreUnitsForIt) {
  const std::string product = Text(ir::kFloat8E4M3, ir::kFloat32);
  EXPECT_GT(AnswerTolerance({}, product, kFull).absolute(), 3e-3);
  EXPECT_LT(AnswerTolerance({}, product, kFull).absolute(), 1e-2);
  EXPECT_EQ(AnswerTolerance({}, product, "cuda -arch=sm_86").absolute(), 0);
  EXPECT_EQ(AnswerTolerance({}, product, "llvm").absolute(), 0);
  EXPECT_EQ(AnswerTolerance({}, Text(ir::kFloat8E4M3), kFull).absolute(), 0) << "by type";
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
