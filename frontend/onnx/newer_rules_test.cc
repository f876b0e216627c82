// What operator sets after 23 changed or added, and meanings that newer texts of ONNX made plain.
#include <cmath>

#include "base/status_testing.h"
#include "frontend/onnx/model_testing.h"

namespace kiln::frontend {
namespace {

using ::testing::ElementsAre;

ir::NDArray OutputOf(const TestNode& node) { return RunNode(node)[0]; }

void ExpectNear(const ir::NDArray& found, const ir::NDArray& expected) {
  EXPECT_OK(ir::Compare(found, expected, {.relative = 1e-5, .absolute = 1e-5}));
}

TEST(NewerRulesTest, ZerosStayZerosWhenTheyAreNormalized) {
  const ir::NDArray x = Floats({3, 2}, {0, 0, 3, 4, NAN, 1});
  for (int64_t p : {1, 2}) {
    const std::vector<double> y = Doubles(OutputOf(
        {.op = "LpNormalization", .version = 22, .attributes = {{"p", p}}, .inputs = {x}}));
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[1], 0);
    EXPECT_NEAR(y[2], p == 1 ? 3.0 / 7 : 0.6, 1e-6);
    EXPECT_TRUE(std::isnan(y[4]));
  }
}

// The inverse of what a real signal gives is that signal, for even and odd lengths.
TEST(NewerRulesTest, InversesOfOneSidedTransforms) {
  for (int64_t length : {8, 7, 1}) {
    const ir::NDArray x = SmallFloats({2, length, 1}, static_cast<uint64_t>(length));
    const TestAttributes onesided = {{"onesided", int64_t{1}}};
    const ir::NDArray half =
        OutputOf({.op = "DFT", .version = 20, .attributes = onesided, .inputs = {x}});
    EXPECT_THAT(half.shape(), ElementsAre(2, length / 2 + 1, 2));
    const ir::NDArray back =
        OutputOf({.op = "DFT",
                  .version = 20,
                  .attributes = {{"onesided", int64_t{1}}, {"inverse", int64_t{1}}},
                  .inputs = {half, ir::NDArray(ir::kInt64, {},
                                               std::vector<double>{static_cast<double>(length)})},
                  .known = {1}});
    ExpectNear(back, x);
  }
}

// ONNX's reference aligns corners with the fraction of an extent, PyTorch without it.
TEST(NewerRulesTest, CornersAreAlignedAsTheProducerDoes) {
  for (const char* producer : {"", "pytorch"}) {
    TestModel model(19);
    model.proto().set_producer_name(producer);
    model.Input("x", "float32", {1, 1, 3});
    model.Initializer("scales", Floats({3}, {1, 1, 1.9}));
    model.Node("Resize", {"x", "", "scales"}, {"y"},
               {{"mode", std::string("linear")},
                {"coordinate_transformation_mode", std::string("align_corners")}});
    model.Output("y");
    // 5 of 5.7 elements: the last one is the last one, or a step of 2 / 4.7 short of it.
    const bool is_pytorch = producer[0] != '\0';
    const double step = is_pytorch ? 2 / 4.0 : 2 / 4.7;
    ExpectNear(model.Run({Floats({1, 1, 3}, {0, 10, 20})})[0],
               Floats({1, 1, 5}, {0, 10 * step, 20 * step, 30 * step, 40 * step}));
  }
}

TEST(NewerRulesTest, BlocksOfSpaceInEitherOrder) {
  const ir::NDArray x = Floats({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto run = [&](const char* mode) {
    return OutputOf({.op = "SpaceToDepth",
                     .version = 28,
                     .attributes = {{"blocksize", int64_t{2}}, {"mode", std::string(mode)}},
                     .inputs = {x}});
  };
  EXPECT_EQ(run("DCR"), Floats({1, 8, 1, 1}, {0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(run("CRD"), Floats({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(NewerRulesTest, RunningProducts) {
  const ir::NDArray x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto run = [&](int64_t axis, int64_t exclusive, int64_t reverse) {
    return Doubles(OutputOf({.op = "CumProd",
                             .version = 26,
                             .attributes = {{"exclusive", exclusive}, {"reverse", reverse}},
                             .inputs = {x, Ints({axis})},
                             .known = {1}}));
  };
  EXPECT_THAT(run(1, 0, 0), ElementsAre(1, 2, 6, 4, 20, 120));
  EXPECT_THAT(run(-1, 1, 0), ElementsAre(1, 1, 2, 1, 4, 20));
  EXPECT_THAT(run(0, 0, 1), ElementsAre(4, 10, 18, 4, 5, 6));
  EXPECT_THAT(run(1, 1, 1), ElementsAre(6, 3, 1, 30, 6, 1));
}

TEST(NewerRulesTest, RemaindersOfInfinities) {
  const double inf = INFINITY;
  const ir::NDArray x = Floats({5}, {3, -3, 0, inf, 3}), y = Floats({5}, {inf, inf, -inf, 2, 0});
  const auto run = [&](int64_t fmod) {
    return Doubles(
        OutputOf({.op = "Mod", .version = 28, .attributes = {{"fmod", fmod}}, .inputs = {x, y}}));
  };
  const std::vector<double> floored = run(0), truncated = run(1);
  EXPECT_THAT(std::vector<double>(floored.begin(), floored.begin() + 3), ElementsAre(3, inf, 0));
  EXPECT_THAT(std::vector<double>(truncated.begin(), truncated.begin() + 3), ElementsAre(3, -3, 0));
  for (const auto& values : {floored, truncated}) {
    EXPECT_TRUE(std::isnan(values[3]));
    EXPECT_TRUE(std::isnan(values[4]));
  }
}

TEST(NewerRulesTest, GatedActivations) {
  const ir::NDArray a = Floats({3}, {-1, 0, 2}), b = Floats({3}, {3, 4, 5});
  std::vector<double> want;
  for (int64_t i = 0; i < 3; ++i) {
    const double x = a.GetDouble(i);
    want.push_back(x / (1 + std::exp(-1.5 * x)) * b.GetDouble(i));
  }
  ExpectNear(
      OutputOf({.op = "SwiGLU", .version = 28, .attributes = {{"alpha", 1.5}}, .inputs = {a, b}}),
      Floats({3}, want));
}

}  // namespace
}  // namespace kiln::frontend
