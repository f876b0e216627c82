#include "builder/artifact.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "rpc/artifact_digest.h"

namespace kiln::builder {
namespace {

codegen::Compiled Sample() {
  codegen::Compiled compiled;
  compiled.binary = std::string("\x7f\0ELF", 5);
  compiled.args = {
      {.name = "a",
       .type = ir::kInt32,
       .shape = {2, 3},
       .scope = ir::Scope::kInput,
       .alignment_bytes = 64,
       .index_limit = 7},
      {.name = "b",
       .type = ir::kFloat16,
       .shape = {},
       .scope = ir::Scope::kOutput,
       .alignment_bytes = 128},
      {.name = "c", .type = ir::kFloat32, .shape = {9}, .scope = ir::Scope::kWorkspace}};
  compiled.launches = {{.symbol = "k",
                        .grid = {1, 2, 3},
                        .block = {4, 5, 6},
                        .dynamic_shared_bytes = 8,
                        .args = {2, 0, 1}}};
  return compiled;
}

TEST(ArtifactTest, CarriesEveryField) {
  const v1::Artifact artifact = MakeArtifact(Sample(), "cuda");
  EXPECT_EQ(artifact.device(), "cuda");
  EXPECT_EQ(artifact.binary(), std::string("\x7f\0ELF", 5));
  v1::Artifact bare = artifact;
  bare.clear_binary();
  bare.clear_digest();
  EXPECT_EQ(bare.ShortDebugString(),
            "plan { "
            "args { name: \"a\" dtype: \"int32\" shape: 2 shape: 3 alignment_bytes: 64 "
            "index_limit: 7 } "
            "args { name: \"b\" dtype: \"float16\" role: OUTPUT alignment_bytes: 128 } "
            "args { name: \"c\" dtype: \"float32\" shape: 9 role: WORKSPACE alignment_bytes: 64 } "
            "launches { symbol: \"k\" grid: 1 grid: 2 grid: 3 block: 4 block: 5 block: 6 "
            "dynamic_shared_bytes: 8 args: 2 args: 0 args: 1 } } device: \"cuda\"");
}

TEST(ArtifactTest, CarriesHowInputsArePacked) {
  codegen::Compiled compiled = Sample();
  compiled.args[0].packing = {.shape = {2, 3}, .dims = {{1, 3, 1}, {0, 2, 1}}};
  const v1::Artifact artifact = MakeArtifact(std::move(compiled), "cpu");
  EXPECT_EQ(artifact.plan().args(0).ShortDebugString(),
            "name: \"a\" dtype: \"int32\" shape: 2 shape: 3 alignment_bytes: 64 index_limit: 7 "
            "packing { axis: 1 extent: 3 step: 1 } packing { extent: 2 step: 1 } is_packed: true");
}

TEST(ArtifactTest, CarriesTensorMaps) {
  codegen::Compiled compiled = Sample();
  compiled.launches[0].tensor_maps = {{.arg = 1,
                                       .element_bytes = 2,
                                       .extents = {64, 8},
                                       .strides = {128},
                                       .box = {32, 4},
                                       .swizzle_bytes = 64}};
  const v1::Artifact artifact = MakeArtifact(std::move(compiled), "cuda");
  EXPECT_EQ(artifact.plan().launches(0).tensor_maps(0).ShortDebugString(),
            "arg: 1 element_bytes: 2 extents: 64 extents: 8 strides: 128 box: 32 box: 4 "
            "swizzle_bytes: 64");
}

// The digest is a name that others keep, so it must never change for the same content.
TEST(ArtifactTest, DigestIsStable) {
  EXPECT_EQ(MakeArtifact(Sample(), "cuda").digest(),
            "36425e57da613b1b3faa8f1825613e6b06ed8f5bc2fe0c368766c334c55fe980");
}

TEST(ArtifactTest, DigestDependsOnEachField) {
  const v1::Artifact artifact = MakeArtifact(Sample(), "cuda");
  std::set<std::string> digests = {artifact.digest()};
  const auto differs = [&](const char* what, const std::function<void(v1::Artifact&)>& change) {
    v1::Artifact other = artifact;
    change(other);
    EXPECT_TRUE(digests.insert(DigestOf(other)).second) << what;
  };
  using A = v1::Artifact&;
  differs("device", [](A a) { a.set_device("cpu"); });
  differs("binary", [](A a) { a.mutable_binary()->push_back('x'); });
  differs("fewer args", [](A a) { a.mutable_plan()->mutable_args()->RemoveLast(); });
  differs("name", [](A a) { a.mutable_plan()->mutable_args(0)->set_name("a1"); });
  differs("dtype", [](A a) { a.mutable_plan()->mutable_args(0)->set_dtype("int8"); });
  differs("shape", [](A a) { a.mutable_plan()->mutable_args(0)->set_shape(0, 3); });
  differs("rank", [](A a) { a.mutable_plan()->mutable_args(0)->add_shape(1); });
  differs("role", [](A a) { a.mutable_plan()->mutable_args(0)->set_role(v1::ArgSpec::OUTPUT); });
  differs("align", [](A a) { a.mutable_plan()->mutable_args(0)->set_alignment_bytes(16); });
  differs("limit", [](A a) { a.mutable_plan()->mutable_args(0)->set_index_limit(8); });
  differs("range", [](A a) { a.mutable_plan()->mutable_args(0)->mutable_range()->set_high(0.1); });
  differs("packed", [](A a) { a.mutable_plan()->mutable_args(0)->set_is_packed(true); });
  differs("packing", [](A a) {
    a.mutable_plan()->mutable_args(0)->set_is_packed(true);
    a.mutable_plan()->mutable_args(0)->add_packing()->set_extent(2);
  });
  differs("symbol", [](A a) { a.mutable_plan()->mutable_launches(0)->set_symbol("kk"); });
  differs("grid", [](A a) { a.mutable_plan()->mutable_launches(0)->set_grid(0, 2); });
  differs("block", [](A a) { a.mutable_plan()->mutable_launches(0)->set_block(2, 7); });
  differs("shared",
          [](A a) { a.mutable_plan()->mutable_launches(0)->set_dynamic_shared_bytes(0); });
  differs("order", [](A a) { a.mutable_plan()->mutable_launches(0)->set_args(0, 1); });
  const auto differs_in_map = [&](const char* what,
                                  const std::function<void(v1::TensorMap&)>& change) {
    differs(what, [&](A a) { change(*a.mutable_plan()->mutable_launches(0)->add_tensor_maps()); });
  };
  differs_in_map("map", [](v1::TensorMap&) {});
  differs_in_map("map of", [](v1::TensorMap& m) { m.set_arg(1); });
  differs_in_map("map bytes", [](v1::TensorMap& m) { m.set_element_bytes(1); });
  differs_in_map("map extents", [](v1::TensorMap& m) { m.add_extents(1); });
  differs_in_map("map strides", [](v1::TensorMap& m) { m.add_strides(1); });
  differs_in_map("map box", [](v1::TensorMap& m) { m.add_box(1); });
  differs_in_map("map swizzle", [](v1::TensorMap& m) { m.set_swizzle_bytes(1); });
  differs("launches", [](A a) { a.mutable_plan()->add_launches()->set_symbol("k"); });
  v1::Artifact renamed = artifact;
  renamed.set_digest("other");
  EXPECT_EQ(DigestOf(renamed), artifact.digest());
}

}  // namespace
}  // namespace kiln::builder
