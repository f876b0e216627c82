// Tests changes and additions of operator sets after 23, and meanings that newer texts of ONNX
// clarify.
#include <cmath>

#include "base/status_testing.h"
#include "frontend/onnx/model_testing.h"

namespace kiln::frontend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

// The inverse transform of a real signal's half spectrum is that signal, for even and odd lengths.
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
    // There are 5 of 5.7 elements. The last one lies on the last element, or a step of 2 / 4.7
    // before it.
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

// Returns element (b, i, k) of an array of three dimensions.
double At(const ir::NDArray& array, std::vector<int64_t> index) {
  return array.GetDouble(array.Flatten(index));
}

TEST(NewerRulesTest, CachesAreWrittenWhereTheBatchSays) {
  const ir::NDArray cache = Floats({2, 4, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  const ir::NDArray update = Floats({2, 2, 1}, {10, 11, 12, 13});
  const auto run = [&](const char* mode, std::vector<int64_t> where) {
    return Doubles(OutputOf({.op = "TensorScatter",
                             .version = 24,
                             .attributes = {{"mode", std::string(mode)}},
                             .inputs = {cache, update, Ints(std::move(where))}}));
  };
  EXPECT_THAT(run("linear", {1, 2}), ElementsAre(0, 10, 11, 3, 4, 5, 12, 13));
  EXPECT_THAT(run("circular", {3, 0}), ElementsAre(11, 1, 2, 10, 12, 13, 6, 7));
  EXPECT_THAT(Doubles(OutputOf({.op = "TensorScatter", .version = 24, .inputs = {cache, update}})),
              ElementsAre(10, 11, 2, 3, 12, 13, 6, 7));
}

// Single steps give the same results as all steps at once.
TEST(NewerRulesTest, ConvolutionsOverThePast) {
  const ir::NDArray x = SmallFloats({1, 2, 5}, 1), w = SmallFloats({2, 1, 3}, 2);
  const auto run = [&](const ir::NDArray& steps, const ir::NDArray& state) {
    return RunNode({.op = "CausalConvWithState",
                    .version = 27,
                    .inputs = {steps, w, Floats({2}, {1, 2}), state},
                    .outputs = 2});
  };
  const ir::NDArray zeros(ir::kFloat32, {1, 2, 2});
  const ir::NDArray all = run(x, zeros)[0];
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t t = 0; t < 5; ++t) {
      double want = 1.0 + static_cast<double>(c);
      for (int64_t k = 0; k < 3; ++k)
        if (t + k >= 2) want += At(w, {c, 0, k}) * At(x, {0, c, t + k - 2});
      EXPECT_NEAR(At(all, {0, c, t}), want, 1e-5);
    }
  }
  ir::NDArray state = zeros;
  for (int64_t t = 0; t < 5; ++t) {
    const ir::NDArray step = Floats({1, 2, 1}, {At(x, {0, 0, t}), At(x, {0, 1, t})});
    const auto outputs = run(step, state);
    for (int64_t c = 0; c < 2; ++c)
      EXPECT_NEAR(At(outputs[0], {0, c, 0}), At(all, {0, c, t}), 1e-5);
    state = outputs[1];
  }
}

TEST(NewerRulesTest, LinearAttention) {
  const int64_t steps = 3, heads = 2, size = 2;
  const ir::NDArray q = SmallFloats({1, steps, 2 * heads * size}, 1),
                    k = SmallFloats({1, steps, heads * size}, 2),
                    v = SmallFloats({1, steps, heads * size}, 3),
                    g = SmallFloats({1, steps, heads}, 4), beta = SmallFloats({1, steps, heads}, 5);
  const ir::NDArray found =
      OutputOf({.op = "LinearAttention",
                .version = 27,
                .attributes = {{"q_num_heads", 2 * heads}, {"kv_num_heads", heads}, {"scale", 0.5}},
                .inputs = {q, k, v, ir::NDArray(ir::kFloat32, {1, heads, size, size}), g, beta}});
  for (int64_t h = 0; h < heads; ++h) {
    double state[2][2] = {};
    for (int64_t t = 0; t < steps; ++t) {
      const double decay = std::exp(At(g, {0, t, h}));
      double change[2];
      for (int64_t c = 0; c < size; ++c) {
        double there = 0;
        for (int64_t r = 0; r < size; ++r)
          there += (state[r][c] *= decay) * At(k, {0, t, h * size + r});
        change[c] = At(beta, {0, t, h}) * (At(v, {0, t, h * size + c}) - there);
      }
      for (int64_t r = 0; r < size; ++r)
        for (int64_t c = 0; c < size; ++c) state[r][c] += At(k, {0, t, h * size + r}) * change[c];
      for (int64_t reader = 2 * h; reader < 2 * h + 2; ++reader) {
        for (int64_t c = 0; c < size; ++c) {
          double want = 0;
          for (int64_t r = 0; r < size; ++r)
            want += 0.5 * At(q, {0, t, reader * size + r}) * state[r][c];
          EXPECT_NEAR(At(found, {0, t, reader * size + c}), want, 1e-3 * (1 + std::abs(want)));
        }
      }
    }
  }
}

TEST(NewerRulesTest, Determinants) {
  const ir::NDArray x = Floats({3, 3, 3}, {2, 0, 1, 1, 3, 2, 1, 1, 4,    //
                                           0, 1, 0, 1, 0, 0, 0, 0, 5,    // a pivot in another row
                                           1, 2, 3, 2, 4, 6, 1, 1, 1});  // of rank 2
  ExpectNear(OutputOf({.op = "Det", .version = 22, .inputs = {x}}), Floats({3}, {18, -5, 0}));
}

TEST(NewerRulesTest, SequencesAreCounted) {
  const ir::NDArray x = Ints({1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
  const auto run = [&](const char* mode, int64_t skips, std::vector<double> weights) {
    TestAttributes attributes = {
        {"mode", std::string(mode)},
        {"min_gram_length", int64_t{1}},
        {"max_gram_length", int64_t{2}},
        {"max_skip_count", skips},
        {"ngram_counts", std::vector<int64_t>{0, 4}},
        {"ngram_indexes", std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}},
        {"pool_int64s", std::vector<int64_t>{2, 3, 5, 4, 5, 6, 7, 8, 6, 7}}};
    if (!weights.empty()) attributes["weights"] = weights;
    return Doubles(
        OutputOf({.op = "TfIdfVectorizer", .version = 9, .attributes = attributes, .inputs = {x}}));
  };
  // 3 and 5 are counted; then (5, 6), (7, 8) and (6, 7), one after the other.
  EXPECT_THAT(run("TF", 0, {}), ElementsAre(0, 3, 1, 0, 1, 1, 1));
  // Pairs with one or two numbers between them count, too.
  EXPECT_THAT(run("TF", 2, {}), ElementsAre(0, 3, 1, 0, 1, 2, 1));
  EXPECT_THAT(run("IDF", 0, {}), ElementsAre(0, 1, 1, 0, 1, 1, 1));
  EXPECT_THAT(run("TFIDF", 0, {1, 2, 3, 4, 5, 6, 7}), ElementsAre(0, 6, 3, 0, 5, 6, 7));
}

// A deformed convolution without offsets is a convolution. With offsets of a whole element it is
// the convolution of a moved image.
TEST(NewerRulesTest, DeformedConvolutions) {
  const ir::NDArray x = SmallFloats({1, 2, 5, 5}, 1), w = SmallFloats({2, 1, 2, 2}, 2);
  ir::NDArray offset(ir::kFloat32, {1, 8, 4, 4});
  const auto run = [&] {
    return OutputOf(
        {.op = "DeformConv",
         .version = 19,
         .attributes = {{"group", int64_t{2}}, {"pads", std::vector<int64_t>{0, 0, 0, 0}}},
         .inputs = {x, w, offset}});
  };
  const ir::NDArray plain =
      OutputOf({.op = "Conv", .attributes = {{"group", int64_t{2}}}, .inputs = {x, w}});
  ExpectNear(run(), plain);
  for (int64_t i = 0; i < offset.num_elements(); ++i) offset.SetDouble(i, i / 16 % 2 == 0 ? 1 : 0);
  const ir::NDArray moved = run();
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 4; ++j)
        EXPECT_NEAR(At(moved, {0, c, i, j}), At(plain, {0, c, i + 1, j}), 1e-5);
  for (int64_t i = 0; i < offset.num_elements(); ++i)
    offset.SetDouble(i, i / 16 % 2 == 0 ? 0.5 : 0);
  const ir::NDArray between = run();
  EXPECT_NEAR(At(between, {0, 1, 1, 2}), (At(plain, {0, 1, 1, 2}) + At(plain, {0, 1, 2, 2})) / 2,
              1e-5);
}

TEST(NewerRulesTest, Regions) {
  ir::NDArray x(ir::kFloat32, {2, 1, 4, 4});
  // Image 0 grows along rows and columns; image 1 is larger by 100.
  for (int64_t i = 0; i < 32; ++i)
    x.SetDouble(i, static_cast<double>(i / 16 * 100 + i / 4 % 4 * 10 + i % 4));
  const ir::NDArray corners = Floats({2, 4}, {0, 0, 2, 2, 1, 1, 3, 3});
  const auto run = [&](const char* mode, int64_t ratio) {
    return TryNode(
        {.op = "RoiAlign",
         .version = 16,
         .attributes = {{"mode", std::string(mode)},
                        {"output_height", int64_t{1}},
                        {"output_width", int64_t{2}},
                        {"sampling_ratio", ratio},
                        {"coordinate_transformation_mode", std::string("output_half_pixel")}},
         .inputs = {x, corners, Ints({1, 0})}});
  };
  ASSERT_OK_AND_ASSIGN(const auto means, run("avg", 2));
  // The samples lie at rows 0.5 and 1.5 and columns 0.25, 0.75 and 1.25, 1.75; then one further
  // each way.
  ExpectNear(means[0], Floats({2, 1, 1, 2}, {110.5, 111.5, 21.5, 22.5}));
  EXPECT_OK(run("max", 1).status());
  EXPECT_THAT(run("avg", 0), StatusIs(StatusCode::kUnimplemented, HasSubstr("depends on data")));
}

// A part has as many samples as it is wide, rounded up. Regions of equal sizes are sampled
// together, and the results stay in the order of the regions.
TEST(NewerRulesTest, RegionsAreSampledByTheirSizes) {
  ir::NDArray x(ir::kFloat32, {1, 1, 8, 8});
  for (int64_t i = 0; i < 64; ++i) x.SetDouble(i, static_cast<double>(i * i % 23));
  const std::vector<std::vector<double>> regions = {
      {0, 0, 4, 2}, {1, 2, 2, 7}, {0, 1, 4, 3}, {5, 5, 2, 2}};
  const auto run = [&](const std::vector<std::vector<double>>& some, const char* mode,
                       int64_t ratio, bool is_half_pixel) {
    std::vector<double> corners;
    for (const auto& region : some) corners.insert(corners.end(), region.begin(), region.end());
    const auto count = std::ssize(some);
    return OutputOf(
        {.op = "RoiAlign",
         .version = 16,
         .attributes = {{"mode", std::string(mode)},
                        {"output_height", int64_t{1}},
                        {"output_width", int64_t{2}},
                        {"sampling_ratio", ratio},
                        {"coordinate_transformation_mode",
                         std::string(is_half_pixel ? "half_pixel" : "output_half_pixel")}},
         .inputs = {x, Floats({count, 4}, corners), Ints(std::vector<int64_t>(some.size(), 0))},
         .known = {1}});
  };
  for (const char* mode : {"avg", "max"}) {
    const ir::NDArray y = run(regions, mode, 0, /*is_half_pixel=*/false);
    ASSERT_THAT(y.shape(), ElementsAre(4, 1, 1, 2));
    // Each part of regions 0 and 2 has 2 x 2 samples. Each region has the result that it has alone.
    for (const int64_t i : {0, 2}) {
      const ir::NDArray same = run({regions[static_cast<size_t>(i)]}, mode, 2, false);
      for (int64_t k = 0; k < 2; ++k) EXPECT_EQ(y.GetDouble(2 * i + k), same.GetDouble(k));
    }
    for (int64_t i = 0; i < 4; ++i) {
      const ir::NDArray alone = run({regions[static_cast<size_t>(i)]}, mode, 0, false);
      for (int64_t k = 0; k < 2; ++k) EXPECT_EQ(y.GetDouble(2 * i + k), alone.GetDouble(k));
    }
    // A region that ends before it begins has no samples.
    EXPECT_THAT(Doubles(run({regions[3]}, mode, 0, /*is_half_pixel=*/true)), ElementsAre(0, 0));
  }
}

// There are two images, and two classes of three boxes. Boxes are kept in the order of images,
// classes and scores.
TEST(NewerRulesTest, BoxesThatOverlapAreSuppressed) {
  const ir::NDArray boxes = Floats({2, 3, 4}, {0, 0, 1, 1, 1, 1, 0, 0.1, 0, 2, 1, 3,  //
                                               0, 0, 1, 1, 0, 0, 1, 0.5, 0, 0, 1, 1});
  const ir::NDArray scores = Floats({2, 2, 3}, {0.5, 0.9, 0.7, 0.9, 0.2, 0.9,  //
                                                0.1, 0.2, 0.3, 0.6, 0.5, 0.6});
  const auto scalar = [](ir::Type type, double value) {
    return ir::NDArray(type, {}, std::vector<double>{value});
  };
  TestNode node{.op = "NonMaxSuppression",
                .version = 11,
                .inputs = {boxes, scores, scalar(ir::kInt64, 3), scalar(ir::kFloat32, 0.5)},
                .known = {0, 1, 2, 3}};
  const auto kept = [&] { return Doubles(OutputOf(node)); };
  // The second box of image 0 has its corners in another order and covers 0.9 of the first box. In
  // image 1 the second box covers half of the first one, which does not exceed the threshold.
  EXPECT_THAT(kept(), ElementsAre(0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 2,  //
                                  1, 0, 2, 1, 0, 1, 1, 1, 0, 1, 1, 1));
  // Only scores above 0.5 count.
  node.inputs.push_back(scalar(ir::kFloat32, 0.5));
  node.known.push_back(4);
  EXPECT_THAT(kept(), ElementsAre(0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 1, 2, 1, 1, 0));
  node.inputs[2] = scalar(ir::kInt64, 1);
  EXPECT_THAT(kept(), ElementsAre(0, 0, 1, 0, 1, 0, 1, 1, 0));
  node.inputs[4] = scalar(ir::kFloat32, 2);
  EXPECT_THAT(OutputOf(node).shape(), ElementsAre(0, 3));
  node.inputs[2] = scalar(ir::kInt64, 0);
  EXPECT_THAT(OutputOf(node).shape(), ElementsAre(0, 3));
  // Boxes are given by centre, width and height. The first two overlap by a third.
  TestNode centred{.op = "NonMaxSuppression",
                   .version = 11,
                   .attributes = {{"center_point_box", int64_t{1}}},
                   .inputs = {Floats({1, 3, 4}, {1, 1, 2, 2, 2, 1, 2, 2, 9, 9, 0, 0}),
                              Floats({1, 1, 3}, {0.3, 0.4, NAN}), scalar(ir::kInt64, 9),
                              scalar(ir::kFloat32, 0.33)},
                   .known = {0, 1, 2, 3}};
  EXPECT_THAT(Doubles(OutputOf(centred)), ElementsAre(0, 0, 1, 0, 0, 2));
  centred.inputs[3] = scalar(ir::kFloat32, 0.34);
  EXPECT_THAT(Doubles(OutputOf(centred)), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0, 2));
  centred.known = {2, 3};
  EXPECT_THAT(TryNode(centred), StatusIs(StatusCode::kUnimplemented,
                                         HasSubstr("the shape of its result depends on data")));
}

TEST(NewerRulesTest, ImagesAreDecodedOutside) {
  EXPECT_THAT(
      TryNode({.op = "ImageDecoder",
               .version = 20,
               .inputs = {ir::NDArray(ir::kUInt8, {4}, std::vector<double>(4))}}),
      StatusIs(StatusCode::kUnimplemented,
               HasSubstr("no decoders of JPEG, PNG and other files: decode images before")));
}

TEST(NewerRulesTest, ShapesThatDependOnData) {
  const ir::NDArray x = Floats({2, 2}, {1, 0, 0, 4}),
                    bits(ir::kBool, {2}, std::vector<double>{1, 0});
  for (const char* op : {"NonZero", "Unique"}) {
    EXPECT_THAT(TryNode({.op = op, .version = 13, .inputs = {x}}),
                StatusIs(StatusCode::kUnimplemented, HasSubstr("the shape of its result depends")));
  }
  TestNode compress{
      .op = "Compress", .version = 11, .attributes = {{"axis", int64_t{0}}}, .inputs = {x, bits}};
  EXPECT_THAT(TryNode(compress),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("the shape of its result depends")));
  compress.known = {1};
  EXPECT_EQ(OutputOf(compress), Floats({1, 2}, {1, 0}));
}

TEST(NewerRulesTest, WhatDiffersInWhatIsKnown) {
  const auto run = [](const ir::NDArray& x, const TestAttributes& attributes) {
    std::vector<std::vector<double>> all;
    for (const ir::NDArray& y : RunNode({.op = "Unique",
                                         .version = 11,
                                         .attributes = attributes,
                                         .inputs = {x},
                                         .known = {0},
                                         .outputs = 4}))
      all.push_back(Doubles(y));
    return all;
  };
  const ir::NDArray x = Floats({6}, {2, 1, 1, 3, 4, 3});
  EXPECT_THAT(run(x, {}), ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(1, 0, 3, 4),
                                      ElementsAre(1, 0, 0, 2, 3, 2), ElementsAre(2, 1, 2, 1)));
  EXPECT_THAT(run(x, {{"sorted", int64_t{0}}}),
              ElementsAre(ElementsAre(2, 1, 3, 4), ElementsAre(0, 1, 3, 4),
                          ElementsAre(0, 1, 1, 2, 3, 2), ElementsAre(1, 2, 2, 1)));
  // Slices along rows, then along columns.
  const ir::NDArray rows = Floats({3, 2}, {2, 3, 1, 0, 2, 3});
  EXPECT_THAT(run(rows, {{"axis", int64_t{0}}}),
              ElementsAre(ElementsAre(1, 0, 2, 3), ElementsAre(1, 0), ElementsAre(1, 0, 1),
                          ElementsAre(1, 2)));
  EXPECT_THAT(run(rows, {{"axis", int64_t{-1}}})[0], ElementsAre(2, 3, 1, 0, 2, 3));
}

}  // namespace
}  // namespace kiln::frontend
