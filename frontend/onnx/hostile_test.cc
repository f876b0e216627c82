// Models that somebody has broken, by accident or on purpose, must give one clear sentence, and
// never a crash, a hang or a huge allocation.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <limits>

#include "base/file/file.h"
#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "frontend/onnx/import.h"
#include "frontend/onnx/model_testing.h"

namespace kiln::frontend {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(),
                  kMax = std::numeric_limits<int64_t>::max();

// Returns the model that the tests break: x [2, 3], y = Relu(x).
TestModel Small() {
  TestModel model;
  model.Input("x", "float32", {2, 3});
  model.Node("Relu", {"x"}, {"y"}).set_name("relu");
  model.Output("y");
  return model;
}

void ExpectInvalid(const TestModel& model, const std::string& part) {
  EXPECT_THAT(model.Import(), StatusIs(StatusCode::kInvalidArgument, HasSubstr(part)));
}

TEST(HostileTest, NotAModel) {
  EXPECT_THAT(ImportOnnxModel("", ""),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no ONNX model: it has no graph")));
  EXPECT_THAT(ImportOnnxModel("GIF89a, surely", ""),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no ONNX model, or a damaged one")));
  EXPECT_THAT(ImportOnnx("/nonexistent.onnx"),
              StatusIs(StatusCode::kNotFound, HasSubstr("/nonexistent.onnx")));
  EXPECT_THAT(ImportOnnx("/tmp"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("/tmp is not a file")));
  EXPECT_THAT(ImportOnnx("/dev/zero"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("/dev/zero is not a file")));
}

TEST(HostileTest, BreaksOff) {
  TestModel model;
  model.Input("x", "float32", {2, 3});
  model.Initializer("w", SmallFloats({3, 4}, 1));
  model.Node("MatMul", {"x", "w"}, {"y"});
  model.Output("y");
  const std::string bytes = model.Bytes();
  ASSERT_OK(ImportOnnxModel(bytes, ""));
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(ImportOnnxModel(bytes.substr(0, length), "").ok()) << length;
}

TEST(HostileTest, ALengthBeyondTheFileAllocatesNothing) {
  // The graph, its initializer, and raw_data of almost 2 GB: 10 bytes in all.
  const std::string raw = "\x4a\xf0\xff\xff\xff\x07";
  const std::string tensor = "\x2a\x06" + raw, graph = "\x3a\x08" + tensor;
  EXPECT_THAT(ImportOnnxModel(graph, ""),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("damaged one: it breaks off")));
}

TEST(HostileTest, FilesOf2GBAndMore) {
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("onnx_hostile"));
  const std::string path = folder.Join("m.onnx");
  ASSERT_OK(WriteFile(path, ""));
  std::filesystem::resize_file(path, (uintmax_t{1} << 31) - 1);
  EXPECT_THAT(ImportOnnx(path),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("has 2147483647 bytes: ONNX files have less than 2 GB; the "
                                 "weights of larger networks are exported as external data")));
}

TEST(HostileTest, Cycles) {
  TestModel model;
  model.Input("x", "float32", {2});
  model.Node("Add", {"x", "b"}, {"a"}).set_name("first");
  model.Node("Relu", {"a"}, {"b"});
  model.Output("b");
  ExpectInvalid(model, "the graph has a cycle: node 'first' waits for its own result");
  TestModel itself;
  itself.Node("Relu", {"y"}, {"y"});
  itself.Output("y");
  ExpectInvalid(itself, "the graph has a cycle");
}

TEST(HostileTest, Names) {
  TestModel missing = Small();
  missing.proto().mutable_graph()->mutable_node(0)->set_input(0, "nothing");
  ExpectInvalid(missing, "Relu of 'relu': 'nothing' is not an input, an initializer or the output");
  TestModel output = Small();
  output.Output("nothing");
  ExpectInvalid(output, "an output of the graph: 'nothing' is not");
  TestModel twice = Small();
  twice.Node("Neg", {"x"}, {"y"}).set_name("neg");
  ExpectInvalid(twice, "two nodes make 'y': 'relu' and 'neg'");
  TestModel shadow = Small();
  shadow.Node("Neg", {"y"}, {"x"}).set_name("neg");
  shadow.Output("x");
  EXPECT_FALSE(shadow.Import().ok());
  TestModel inputs = Small();
  inputs.Input("x", "float32", {2});
  ExpectInvalid(inputs, "two inputs are called 'x'");
  TestModel initializers = Small();
  initializers.Ints("i", {1});
  initializers.Ints("i", {2});
  ExpectInvalid(initializers, "two initializers are called 'i'");
  TestModel nothing = Small();
  nothing.proto().mutable_graph()->clear_output();
  ExpectInvalid(nothing, "the network has no outputs");
}

TEST(HostileTest, Inputs) {
  TestModel few = Small();
  few.proto().mutable_graph()->mutable_node(0)->clear_input();
  ExpectInvalid(few, "Relu of 'relu': input 0 is missing");
  TestModel empty;
  empty.Input("x", "float32", {2, 3});
  empty.Node("Concat", {}, {"y"}, {{"axis", int64_t{0}}});
  empty.Output("y");
  ExpectInvalid(empty, "input 0 is missing");
}

TEST(HostileTest, WildShapes) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{kMax}, {kMax, kMax}, {1 << 30, 1 << 30}, {kMin}}) {
    TestModel model;
    model.Input("x", "float32", {1});
    auto& dims =
        *model.proto().mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
    dims.mutable_shape()->clear_dim();
    for (int64_t extent : shape) dims.mutable_shape()->add_dim()->set_dim_value(extent);
    model.Node("Relu", {"x"}, {"y"});
    model.Output("y");
    EXPECT_THAT(model.Import(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("x")));
  }
  TestModel deep;
  deep.Input("x", "float32", std::vector<int64_t>(100, 1));
  deep.Node("Relu", {"x"}, {"y"});
  deep.Output("y");
  ExpectInvalid(deep, "100 dimensions");
}

TEST(HostileTest, WildTensors) {
  struct Case {
    std::vector<int64_t> dims;
    size_t bytes;
    const char* part;
  };
  const Case cases[] = {{{2, 3}, 23, "tensor 'w': its raw_data has 23 bytes, float32[2, 3] has 24"},
                        {{2, 3}, 0, "tensor 'w': it has 0 elements, float32[2, 3] has 6"},
                        {{-1}, 4, "tensor 'w': it has an extent of -1"},
                        {{kMax, kMax}, 4, "tensor 'w': it has an extent of"},
                        {{1 << 30, 1 << 30}, 4, "has more than 2^40 elements"},
                        {{1 << 30, 1 << 9}, 4, "its raw_data has 4 bytes"},
                        {std::vector<int64_t>(40, 1), 4, "it has 40 dimensions"}};
  for (const Case& c : cases) {
    TestModel model = Small();
    auto& tensor = *model.proto().mutable_graph()->add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(::onnx::TensorProto::FLOAT);
    for (int64_t dim : c.dims) tensor.add_dims(dim);
    if (c.bytes > 0) tensor.set_raw_data(std::string(c.bytes, 'x'));
    model.Output("w");
    ExpectInvalid(model, c.part);
  }
}

TEST(HostileTest, WildAttributes) {
  const ir::NDArray image = SmallFloats({1, 2, 5, 5}, 1), w = SmallFloats({2, 2, 3, 3}, 2);
  const std::vector<int64_t> wild = {kMin, -1, 0, kMax};
  int refused = 0, fine = 0;
  const auto run = [&](const TestNode& node) {
    const auto start = std::chrono::steady_clock::now();
    const auto outputs = TryNode(node);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << node.op;
    ++(outputs.ok() ? fine : refused);
    if (outputs.ok()) return;
    EXPECT_THAT(outputs.status().code(),
                AnyOf(StatusCode::kInvalidArgument, StatusCode::kUnimplemented,
                      StatusCode::kResourceExhausted))
        << node.op << ": " << outputs.status();
    EXPECT_FALSE(outputs.status().message().empty());
  };
  for (int64_t a : wild) {
    for (int64_t b : wild) {
      for (const char* name : {"strides", "dilations", "kernel_shape"}) {
        const TestAttributes attributes = {{name, std::vector<int64_t>{a, b}}};
        run({.op = "Conv", .attributes = attributes, .inputs = {image, w}});
        run({.op = "ConvTranspose", .attributes = attributes, .inputs = {image, w}});
        TestAttributes pool = {{"kernel_shape", std::vector<int64_t>{3, 3}}};
        pool[name] = std::vector<int64_t>{a, b};
        run({.op = "MaxPool", .attributes = pool, .inputs = {image}});
        pool["auto_pad"] = std::string("SAME_UPPER");
        run({.op = "AveragePool", .attributes = pool, .inputs = {image}});
      }
      run({.op = "Conv",
           .attributes = {{"pads", std::vector<int64_t>{a, b, a, b}}},
           .inputs = {image, w}});
      run({.op = "ConvTranspose",
           .attributes = {{"output_shape", std::vector<int64_t>{a, b}}},
           .inputs = {image, w}});
      run({.op = "Slice",
           .inputs = {image, Ints({a}), Ints({b}), Ints({2}), Ints({a})},
           .known = {1, 2, 3, 4}});
      run({.op = "Pad", .inputs = {image, Ints({0, 0, a, b, 0, 0, b, a})}, .known = {1}});
      run({.op = "Reshape", .inputs = {image, Ints({a, b})}, .known = {1}});
      run({.op = "Expand", .inputs = {image, Ints({a, b, 1, 1})}, .known = {1}});
      run({.op = "Tile", .inputs = {image, Ints({a, b, 1, 1})}, .known = {1}});
      run({.op = "Resize",
           .inputs = {image, Ints({}), Ints({}), Ints({1, 2, a, b})},
           .known = {3}});
      run({.op = "Range", .inputs = {Ints({a}), Ints({b}), Ints({a})}, .known = {0, 1, 2}});
      run({.op = "ReduceSum", .inputs = {image, Ints({a, b})}, .known = {1}});
      run({.op = "Split",
           .attributes = {{"axis", a}},
           .inputs = {image, Ints({b, a})},
           .known = {1}});
      run({.op = "Transpose",
           .attributes = {{"perm", std::vector<int64_t>{a, b, 1, 2}}},
           .inputs = {image}});
      run({.op = "Col2Im",
           .version = 18,
           .inputs = {SmallFloats({1, 4, 4}, 1), Ints({a, b}), Ints({b, a})},
           .known = {1, 2}});
    }
    for (const char* op : {"Softmax", "Flatten", "ArgMax", "Concat", "LpNormalization", "Hardmax",
                           "LayerNormalization"}) {
      run({.op = op, .attributes = {{"axis", a}}, .inputs = {image, SmallFloats({5}, 1)}});
      run({.op = op, .version = 11, .attributes = {{"axis", a}}, .inputs = {image}});
    }
    run({.op = "Conv", .attributes = {{"group", a}}, .inputs = {image, w}});
    run({.op = "DepthToSpace", .attributes = {{"blocksize", a}}, .inputs = {image}});
    run({.op = "SpaceToDepth", .attributes = {{"blocksize", a}}, .inputs = {image}});
    run({.op = "LRN", .attributes = {{"size", a}}, .inputs = {image}});
    run({.op = "Unsqueeze", .inputs = {image, Ints({a})}, .known = {1}});
    run({.op = "Squeeze", .inputs = {image, Ints({a})}, .known = {1}});
    run({.op = "TopK", .inputs = {image, Ints({a})}, .known = {1}});
    run({.op = "Trilu", .inputs = {image, Ints({a})}, .known = {1}});
    run({.op = "ConstantOfShape", .inputs = {Ints({a, 2})}, .known = {0}});
    run({.op = "OneHot",
         .inputs = {Ints({1, 2}), Ints({a}), Floats({2}, {0, 1})},
         .known = {1, 2}});
    run({.op = "Shape", .attributes = {{"start", a}, {"end", a}}, .inputs = {image}});
    run({.op = "EyeLike", .attributes = {{"k", a}}, .inputs = {SmallFloats({3, 3}, 1)}});
    run({.op = "CumSum", .inputs = {image, Ints({a})}, .known = {1}});
    run({.op = "GatherND", .attributes = {{"batch_dims", a}}, .inputs = {image, Ints({1})}});
    run({.op = "GroupNormalization",
         .version = 18,
         .attributes = {{"num_groups", a}},
         .inputs = {image, SmallFloats({2}, 1), SmallFloats({2}, 1)}});
    run({.op = "HannWindow", .inputs = {Ints({a})}, .known = {0}});
    run({.op = "DFT", .inputs = {SmallFloats({1, 8, 1}, 1), Ints({a})}, .known = {1}});
    run({.op = "Cast", .attributes = {{"to", a}}, .inputs = {image}});
    run({.op = "Clip", .version = 6, .attributes = {{"min", a}}, .inputs = {image}});
  }
  EXPECT_GT(refused, 400);
  EXPECT_GT(fine, 40);
}

TEST(HostileTest, AttributesOfAnotherKind) {
  for (const auto& [name, value] :
       TestAttributes{{"axis", 1.5}, {"axis", std::string("two")}, {"axis", Ints({1})}}) {
    const auto outputs =
        TryNode({.op = "Softmax", .attributes = {{name, value}}, .inputs = {SmallFloats({2}, 1)}});
    EXPECT_THAT(outputs, StatusIs(StatusCode::kInvalidArgument,
                                  HasSubstr("attribute axis is not a whole number")));
  }
}

TEST(HostileTest, LoopsAndSequencesAreBounded) {
  const auto body = Subgraph([](TestGraph& g) {
    g.Input("i", "int64", {});
    g.Input("c", "bool", {});
    g.Input("v", "float32", {2});
    g.Node("Add", {"v", "v"}, {"w"});
    g.Output("c");
    g.Output("w");
  });
  const auto outputs = TryNode({.op = "Loop",
                                .attributes = {{"body", body}},
                                .inputs = {Ints({kMax}), Ints({}), SmallFloats({2}, 1)},
                                .known = {0}});
  EXPECT_THAT(outputs, StatusIs(StatusCode::kUnimplemented,
                                HasSubstr("a loop of more than 1024 iterations")));
  const auto lstm = TryNode({.op = "LSTM",
                             .attributes = {{"hidden_size", int64_t{2}}},
                             .inputs = {SmallFloats({5000, 1, 1}, 1), SmallFloats({1, 8, 1}, 1),
                                        SmallFloats({1, 8, 2}, 1)}});
  EXPECT_THAT(lstm, StatusIs(StatusCode::kUnimplemented, HasSubstr("a sequence of 5000 steps")));
}

TEST(HostileTest, ManyLargeTablesAreBounded) {
  TestModel model;
  model.Input("x", "float32", {1, 1, 2, 2});
  model.Initializer("scales", Floats({4}, {1, 1, 500000, 1}));
  for (int i = 0; i < 100; ++i) {
    const std::string name = fmt::format("y{}", i);
    model.Node("Resize", {"x", "", "scales"}, {name}, {{"mode", std::string("linear")}});
    model.Output(name);
  }
  EXPECT_THAT(model.Import(),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("takes too much work to read")));
}

TEST(HostileTest, WildResizes) {
  const ir::NDArray x = SmallFloats({1, 1, 4, 4}, 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (double value : {1e-30, 1e30, -1.0, 0.0, nan, 1.9e9, 0.24}) {
      for (int64_t antialias : {0, 1}) {
        TestNode node{
            .op = "Resize",
            .version = 19,
            .attributes = {{"mode", std::string(mode)},
                           {"antialias", antialias},
                           {"coordinate_transformation_mode", std::string("tf_crop_and_resize")}},
            .inputs = {x, Floats({8}, {0, 0, value, 0, 1, 1, 1, value}), Floats({4}, {1, 1, 1, 2})},
            .known = {1, 2}};
        const auto by_roi = TryNode(node);
        node.inputs[1] = Floats({8}, {0, 0, 0, 0, 1, 1, 1, 1});
        node.inputs[2] = Floats({4}, {1, 1, value, 1});
        const auto by_scale = TryNode(node);
        EXPECT_FALSE(by_scale.ok()) << mode << " " << value;
        EXPECT_NE(by_roi.status().code(), StatusCode::kInternal);
      }
    }
  }
  // From a length of 2^24 to 1, every element of the input counts.
  TestModel model;
  model.Input("x", "float32", {1 << 24});
  model.Ints("size", {1});
  model.Node("Resize", {"x", "", "", "size"}, {"y"},
             {{"mode", std::string("linear")}, {"antialias", int64_t{1}}});
  model.Output("y");
  EXPECT_THAT(model.Import(), StatusIs(StatusCode::kUnimplemented, HasSubstr("a table of more")));
}

// Bytes of a model are changed, cut out and doubled. The result must be a graph or a sentence.
TEST(HostileTest, ChangedBytes) {
  TestModel model(13);
  model.Input("x", "float32", {1, 2, 6, 6});
  model.Initializer("w", SmallFloats({2, 2, 3, 3}, 1));
  model.Ints("to", {1, -1});
  model.Node("Conv", {"x", "w"}, {"c"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  model.Node("MaxPool", {"c"}, {"p"}, {{"kernel_shape", std::vector<int64_t>{2, 2}}});
  model.Node("Reshape", {"p", "to"}, {"r"});
  model.Node("Softmax", {"r"}, {"y"}, {{"axis", int64_t{-1}}});
  model.Output("y");
  const std::string bytes = model.Bytes();
  int fine = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::string changed = bytes;
    for (uint64_t k = 0; k <= seed % 4; ++k) {
      const uint64_t bits = SplitSeed(seed, k);
      const size_t at = bits % changed.size(), length = bits >> 32 & 15;
      if (bits >> 60 < 12) changed[at] = static_cast<char>(bits >> 40);
      if (bits >> 60 == 12) changed.erase(at, length);
      if (bits >> 60 > 12) changed.insert(at, changed.substr(at, length));
    }
    const auto graph = ImportOnnxModel(changed, "/nonexistent");
    fine += graph.ok();
    EXPECT_EQ(graph.ok(), graph.status().message().empty());
  }
  EXPECT_GT(fine, 300);
  EXPECT_LT(fine, 2700);
}

class ExternalDataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StatusOr<TempDir> made = TempDir::Make("kiln_onnx");
    ASSERT_OK(made);
    outer_.emplace(*std::move(made));
    folder_ = outer_->Join("model");
    ASSERT_OK(MakeDirs(folder_));
    const std::string numbers(reinterpret_cast<const char*>(kNumbers), sizeof(kNumbers));
    ASSERT_OK(WriteFile(JoinPath(folder_, "w.bin"), numbers));
    ASSERT_OK(WriteFile(outer_->Join("secret.bin"), numbers));
  }

  // Returns a model whose only output is w, float32 [2] in a file.
  std::string Model(const std::map<std::string, std::string>& entries) {
    TestModel model;
    auto& tensor = *model.proto().mutable_graph()->add_initializer();
    tensor.set_name("w");
    tensor.set_data_type(::onnx::TensorProto::FLOAT);
    tensor.add_dims(2);
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    model.Output("w");
    return model.Bytes();
  }
  StatusOr<graph::Graph> Import(const std::map<std::string, std::string>& entries) {
    return ImportOnnxModel(Model(entries), folder_);
  }
  void ExpectRefused(const std::map<std::string, std::string>& entries, const std::string& part) {
    EXPECT_THAT(
        Import(entries),
        StatusIs(AnyOf(StatusCode::kInvalidArgument, StatusCode::kNotFound), HasSubstr(part)));
  }

  static constexpr float kNumbers[] = {1, 2, 3, 4};
  std::optional<TempDir> outer_;
  std::string folder_;
};

TEST_F(ExternalDataTest, IsRead) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                       Import({{"location", "w.bin"}, {"offset", "8"}, {"length", "8"}}));
  const graph::Constant& w = *graph.value(graph.outputs()[0]).constant;
  EXPECT_EQ(w.At(0), 3);
  EXPECT_EQ(w.At(1), 4);
  // For a model in a file, the folder is the file's own.
  ASSERT_OK(WriteFile(JoinPath(folder_, "m.onnx"), Model({{"location", "./w.bin"}})));
  EXPECT_OK(ImportOnnx(JoinPath(folder_, "m.onnx")));
  // Data that is not aligned to its elements is moved.
  ASSERT_OK_AND_ASSIGN(const graph::Graph moved, Import({{"location", "w.bin"}, {"offset", "3"}}));
  EXPECT_EQ(
      reinterpret_cast<uintptr_t>(moved.value(moved.outputs()[0]).constant->bytes().data()) % 4,
      0u);
}

TEST_F(ExternalDataTest, StaysInTheFolder) {
  ExpectRefused({{"location", "../secret.bin"}}, "is outside of the model's folder");
  ExpectRefused({{"location", outer_->Join("secret.bin")}}, "is not a path below the model's");
  ExpectRefused({{"location", ""}}, "is not a path below the model's folder");
  ExpectRefused({}, "is not a path below the model's folder");
  ExpectRefused({{"location", std::string("w.bin\0x", 7)}}, "is not a path below");
  ExpectRefused({{"location", "absent.bin"}}, "cannot find external data 'absent.bin'");
  ExpectRefused({{"location", "."}}, "is not a file");
  std::filesystem::create_symlink(outer_->Join("secret.bin"), JoinPath(folder_, "link.bin"));
  ExpectRefused({{"location", "link.bin"}}, "is outside of the model's folder");
  std::filesystem::create_directory_symlink(outer_->path(), JoinPath(folder_, "up"));
  ExpectRefused({{"location", "up/secret.bin"}}, "is outside of the model's folder");
}

TEST_F(ExternalDataTest, SizesAreChecked) {
  ExpectRefused({{"location", "w.bin"}, {"offset", "12"}},
                "has 16 bytes, wanted are 8 from byte 12");
  ExpectRefused({{"location", "w.bin"}, {"offset", "-4"}},
                "the offset of its external data is '-4'");
  ExpectRefused({{"location", "w.bin"}, {"offset", "9223372036854775807"}}, "has 16 bytes, wanted");
  ExpectRefused({{"location", "w.bin"}, {"offset", "99999999999999999999"}}, "expected a number");
  ExpectRefused({{"location", "w.bin"}, {"length", "9"}}, "has 9 bytes, float32[2] has 8");
  ExpectRefused({{"location", "w.bin"}, {"length", "x"}}, "the length of its external data is 'x'");
  ASSERT_OK(WriteFile(JoinPath(folder_, "empty.bin"), ""));
  ExpectRefused({{"location", "empty.bin"}}, "has 0 bytes, wanted are 8");
}

}  // namespace
}  // namespace kiln::frontend
