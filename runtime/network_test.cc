#include "runtime/network.h"

#include <functional>
#include <limits>

#include "base/status_testing.h"
#include "runtime/network_testing.h"
#include "runtime/place_buffers.h"

namespace kiln::runtime {
namespace {

using testing::HasSubstr;

Network Placed() {
  Network network = SmallNetwork();
  const auto placed = PlaceBuffers(network);
  KILN_CHECK(placed.ok(), "{}", Message(placed.status()));
  return network;
}

// Returns the refusal of the small network after this change.
std::string RefusalOf(const std::function<void(Network&)>& change) {
  Network network = Placed();
  change(network);
  const Status status = CheckNetwork(network);
  return status.ok() ? "OK" : std::string(Message(status));
}

TEST(NetworkTest, TheSmallOneIsRight) {
  const Network network = Placed();
  EXPECT_OK(CheckNetwork(network));
  EXPECT_EQ(network.constants_bytes, 21);
  EXPECT_EQ(network.arena_bytes, 32);
  EXPECT_EQ(network.buffers[2].offset, 16);
  EXPECT_TRUE(IsWrittenInPlace(network, 0));
}

TEST(NetworkTest, PlacesShareMemoryThatIsNotLiveTogether) {
  Network network = SmallNetwork();
  // The network is a chain of five kernels through arena buffers of 64 bytes.
  network.buffers = {{.place = Place::kInput, .bytes = 16}, {.place = Place::kOutput, .bytes = 16}};
  network.constants.clear();
  network.outputs[0].buffer = 1;
  network.kernels.resize(1);
  const NetworkKernel kernel = network.kernels[0];
  network.kernels.clear();
  int32_t last = 0;
  for (int i = 0; i < 5; ++i) {
    int32_t next = 1;
    if (i < 4) {
      next = static_cast<int32_t>(network.buffers.size());
      network.buffers.push_back({.place = Place::kArena, .bytes = 64});
    }
    network.kernels.push_back(kernel);
    network.kernels.back().args = {{last, false}, {next, true}};
    network.kernels.back().launches[0].args = {0, 1};
    last = next;
  }
  ASSERT_OK_AND_ASSIGN(const PlacedMemory placed, PlaceBuffers(network));
  EXPECT_EQ(placed.arena_bytes, 128);
  EXPECT_EQ(placed.peak_bytes, 128);
  EXPECT_EQ(placed.sum_bytes, 256);
}

TEST(NetworkTest, OutputsThatAreNotWrittenInPlace) {
  Network network = SmallNetwork();
  network.outputs.push_back({.name = "again", .dtype = "float32", .shape = {4}, .buffer = 4});
  network.outputs.push_back({.name = "middle", .dtype = "int32", .shape = {8}, .buffer = 3});
  network.outputs.push_back({.name = "half", .dtype = "int64", .shape = {2}, .buffer = 5});
  network.outputs.push_back({.name = "x", .dtype = "float32", .shape = {4}, .buffer = 0});
  network.outputs.push_back({.name = "w", .dtype = "float32", .shape = {4}, .buffer = 1});
  ASSERT_OK(PlaceBuffers(network));
  EXPECT_TRUE(IsWrittenInPlace(network, 0));
  for (size_t i = 1; i < network.outputs.size(); ++i) EXPECT_FALSE(IsWrittenInPlace(network, i));
}

TEST(NetworkTest, RefusesTargets) {
  EXPECT_THAT(RefusalOf([](Network& n) { n.target.kind.clear(); }), HasSubstr("has no kind"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.target.text.assign(1 << 20, 'x'); }),
              HasSubstr("its target has 1048576 bytes"));
}

TEST(NetworkTest, RefusesBuffers) {
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[3].bytes = 0; }),
              HasSubstr("buffer 3: its size is 0 bytes"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[3].bytes = INT64_MAX; }),
              HasSubstr("expected 1 to 2^46"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[3].alignment_bytes = 3; }),
              HasSubstr("its alignment is 3, expected a power of two"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[3].alignment_bytes = 1 << 20; }),
              HasSubstr("at most 4096"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[3].offset = 32; }),
              HasSubstr("offset 32 is no multiple of its alignment 64"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[3].offset = 64; }),
              HasSubstr("bytes 64 to 96 are outside of the arena of 32 bytes"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[1].offset = -64; }),
              HasSubstr("outside of the constants"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[0].offset = 64; }),
              HasSubstr("expected 0 of an input or output"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.arena_bytes = int64_t{1} << 40; }),
              HasSubstr("the arena has 1099511627776 bytes, its buffers end at 32"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.arena_bytes = INT64_MAX; }),
              HasSubstr("expected 0 to 2^46"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[2].offset = 15; }),
              HasSubstr("constants 1 and 2 overlap"));
}

// A tensor without elements enters the network, and no kernel reads it.
TEST(NetworkTest, InputsMayHaveNoElements) {
  Network network = SmallNetwork();
  network.buffers.push_back({.place = Place::kInput, .bytes = 0});
  network.inputs.push_back({.name = "nothing",
                            .dtype = "int64",
                            .shape = {3, 0},
                            .buffer = static_cast<int32_t>(network.buffers.size()) - 1});
  ASSERT_OK(PlaceBuffers(network));
  EXPECT_OK(CheckNetwork(network));
}

TEST(NetworkTest, RefusesViews) {
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[5].viewed = 5; }),
              HasSubstr("a view of buffer 5, which is a view itself"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[5].viewed = 6; }),
              HasSubstr("names buffer 6, and there are 6"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[5].viewed = -1; }), HasSubstr("buffer -1"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[5].offset = 32; }),
              HasSubstr("outside of the viewed buffer of 32 bytes"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.buffers[5].alignment_bytes = 128; }),
              HasSubstr("no multiple of its alignment 128"));
  EXPECT_THAT(RefusalOf([](Network& n) {
                n.buffers[5].offset = 0;
                n.buffers[5].alignment_bytes = 128;
              }),
              HasSubstr("a view aligned to 128 bytes of buffer 3, which is aligned to 64"));
}

TEST(NetworkTest, RefusesInputsAndOutputs) {
  EXPECT_THAT(RefusalOf([](Network& n) { n.inputs[0].dtype = "float31"; }),
              HasSubstr("input 'x': unknown dtype 'float31'"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.inputs[0].shape = {5}; }),
              HasSubstr("it takes 20 bytes, its buffer 0 has 16"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.outputs[0].shape = {-1}; }),
              HasSubstr("output 'y': an extent of its shape is -1"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.outputs[0].shape = {0}; }),
              HasSubstr("it takes 0 bytes, its buffer"));
  EXPECT_THAT(
      RefusalOf([](Network& n) { n.inputs[0].shape = {int64_t{1} << 62, int64_t{1} << 62}; }),
      HasSubstr("9223372036854775807 bytes"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.inputs[0].shape.assign(40, 1); }),
              HasSubstr("40 dimensions, at most 32"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.inputs[0].buffer = 77; }), HasSubstr("buffer 77"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.inputs[0].buffer = 4; }),
              HasSubstr("buffer 4 is not an input of its own"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.inputs.push_back(n.inputs[0]); }),
              HasSubstr("buffer 0 is not an input of its own"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.inputs.clear(); }),
              HasSubstr("buffer 0 is that of an input, and no input names it"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.constants[0].buffer = 3; }),
              HasSubstr("constant 'w': it takes 16 bytes, its buffer 3 has 32"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.constants[0].buffer = 0; }),
              HasSubstr("constant 'w': buffer 0 is no constant"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.constants.push_back(n.constants[0]); }),
              HasSubstr("constant 'w': buffer 1 is that of another constant"));
  EXPECT_THAT(RefusalOf([](Network& n) {
                n.constants[0].packing = Packing{.shape = {2, 2}, .dims = {{0, 2, 1}, {1, 2, 1}}};
              }),
              HasSubstr("constant 'w': what it is packed of has another shape than it"));
  EXPECT_THAT(RefusalOf([](Network& n) {
                n.constants[0].packing = Packing{.shape = {4}, .dims = {{0, 2, 1}, {0, 2, 2}}};
                n.outputs.push_back({.name = "w", .dtype = "int8", .shape = {16}, .buffer = 1});
              }),
              HasSubstr("output 'w' is buffer 1, which holds a constant packed"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.outputs.clear(); }),
              HasSubstr("buffer 4 is that of an output, and no output names it"));
}

TEST(NetworkTest, RefusesKernels) {
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels[1].binary = 1; }),
              HasSubstr("kernel 1: it names binary 1, and there are 1"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels[1].args[0].buffer = 6; }),
              HasSubstr("kernel 1: it names buffer 6, and there are 6"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels[0].launches.clear(); }),
              HasSubstr("kernel 0: it launches nothing"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels[0].launches[0].symbol = ""; }),
              HasSubstr("the symbol of a launch is empty"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels[0].flops = -1; }), HasSubstr("is -1"));
  EXPECT_THAT(RefusalOf([](Network& n) {
                n.kernels[0].expected_s = std::numeric_limits<double>::infinity();
              }),
              HasSubstr("is inf"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels[0].launches[0].grid[1] = 0; }),
              HasSubstr("a grid or block of extent 0"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels[0].launches[0].args = {3}; }),
              HasSubstr("it names argument 3, and there are 3"));
  const auto refusal_of_map = [](const TensorMap& map) {
    return RefusalOf([&](Network& n) { n.kernels[0].launches[0].tensor_maps = {map}; });
  };
  TensorMap map = {.arg = 0, .element_bytes = 4, .extents = {4}, .strides = {}, .box = {4}};
  EXPECT_THAT(refusal_of_map({}), HasSubstr("it has 0 extents"));
  map.arg = 3;
  EXPECT_THAT(refusal_of_map(map), HasSubstr("it names argument 3, and there are 3"));
  map.arg = 0;
  map.extents = {1 << 20};
  EXPECT_THAT(refusal_of_map(map),
              HasSubstr("a launch of 'kiln_entry' maps 4194304 bytes of a buffer of"));
}

TEST(NetworkTest, RefusesWrongDataFlow) {
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels[0].args[0].written = true; }),
              HasSubstr("kernel 0 ('add') writes buffer 0, and input buffers are read only"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels[0].args[1].written = true; }),
              HasSubstr("constant buffers are read only"));
  EXPECT_THAT(RefusalOf([](Network& n) { std::swap(n.kernels[0], n.kernels[1]); }),
              HasSubstr("kernel 0 ('mul') reads buffer 5, which nothing has written"));
  EXPECT_THAT(RefusalOf([](Network& n) { n.kernels.pop_back(); }),
              HasSubstr("output 'y' is buffer 4, which nothing writes"));
}

TEST(NetworkTest, RefusesArenaBuffersThatShareMemoryWhileLive) {
  EXPECT_THAT(RefusalOf([](Network& n) {
                n.buffers.push_back(n.buffers[3]);
                n.kernels[0].args.push_back({6, true});
                n.kernels[0].launches[0].args.push_back(3);
              }),
              HasSubstr("buffers 3 and 6 share memory of the arena, and kernel 0 needs both"));
}

}  // namespace
}  // namespace kiln::runtime
