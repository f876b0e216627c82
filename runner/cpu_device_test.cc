#include "runner/cpu_device.h"

#include "base/file/file.h"
#include "base/status_testing.h"
#include "rpc/fields_testing.h"
#include "runner/buffer_cache.h"
#include "runner/cpu_description.h"

namespace kiln::runner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Argument Floats(const std::string& name, int64_t count,
                v1::ArgSpec::Role role = v1::ArgSpec::INPUT) {
  Argument argument;
  argument.name = name;
  argument.shape = {count};
  argument.role = role;
  argument.elements = count;
  argument.bytes = 4 * count;
  return argument;
}

v1::Artifact Artifact(const std::string& program) {
  v1::Artifact artifact;
  artifact.set_device("cpu");
  artifact.set_binary(*ReadFile("runner/testdata/" + program + ".so"));
  return artifact;
}

class CpuDeviceTest : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = MakeCpuDevice({.threads = 2, .pin = false});
};

TEST_F(CpuDeviceTest, RunsAProgramOnItsBuffers) {
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Artifact("correct")));
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> args;
  for (const char* name : {"a", "b", "out", "scratch"}) {
    ASSERT_OK_AND_ASSIGN(auto buffer, device_->Allocate(Floats(name, 24)));
    args.push_back(buffer.get());
    buffers.push_back(std::move(buffer));
  }
  std::vector<float> values(24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  ASSERT_OK(device_->Fill(*args[0], std::as_bytes(std::span(values))));
  ASSERT_OK(device_->Fill(*args[1], std::as_bytes(std::span(values))));
  ASSERT_OK(device_->Poison(*args[2], Poison::kNaN));
  ASSERT_OK(device_->Run(*program, args));
  for (float& value : values) value *= 3;
  ASSERT_OK_AND_ASSIGN(auto want, device_->Allocate(Floats("want", 24)));
  ASSERT_OK(device_->Fill(*want, std::as_bytes(std::span(values))));
  ASSERT_OK_AND_ASSIGN(Comparison comparison, device_->Compare(*args[2], *want, {}));
  EXPECT_EQ(comparison.different, 0) << comparison.message;
  ASSERT_OK_AND_ASSIGN(const auto fetched, device_->Fetch(*args[2]));
  EXPECT_EQ(std::memcmp(fetched.data(), values.data(), fetched.size()), 0);
  ASSERT_OK_AND_ASSIGN(const double seconds, device_->Time(*program, args, 100));
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 10);
  device_->FlushCaches();
  for (Buffer* arg : args) EXPECT_OK(device_->CheckGuards(*arg));
}

TEST_F(CpuDeviceTest, RefusesArtifactsThatAreNoProgram) {
  v1::Artifact cubin;
  cubin.set_device("cuda");
  EXPECT_THAT(device_->Load(cubin), StatusIs(StatusCode::kInvalidArgument,
                                             HasSubstr("for device 'cuda', expected one for cpu")));
  EXPECT_THAT(device_->Load(Artifact("no_entry")),
              StatusIs(StatusCode::kNotFound, HasSubstr("kiln_entry")));
  EXPECT_THAT(device_->Load(Artifact("undefined_symbol")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("nobody_defines_this")));
}

TEST_F(CpuDeviceTest, CacheDropsTheLeastRecentlyUsed) {
  BufferCache cache(100 * 4);
  const auto make = [&](int64_t count) {
    auto cached = std::make_shared<CachedBuffer>();
    cached->buffer = *device_->Allocate(Floats("x", count));
    return cached;
  };
  cache.Insert("a", make(40));
  cache.Insert("b", make(40));
  const auto in_use = cache.Find("b");
  ASSERT_NE(cache.Find("a"), nullptr);
  cache.Insert("c", make(50));
  EXPECT_EQ(cache.Find("b"), nullptr);
  EXPECT_NE(cache.Find("a"), nullptr);
  EXPECT_EQ(cache.bytes(), 90 * 4);
  EXPECT_EQ(in_use->buffer->argument().bytes, 160) << "alive while in use";
  cache.Insert("huge", make(1000));
  EXPECT_NE(cache.Find("huge"), nullptr);
  EXPECT_EQ(cache.bytes(), 4000);
  cache.Insert("huge", make(10));
  EXPECT_EQ(cache.bytes(), 40);
  cache.Erase("huge");
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(CpuDescriptionTest, ReadsTheModelName) {
  EXPECT_EQ(CpuModelNameIn("processor\t: 0\nmodel name\t: AMD EPYC 9654 \nflags : x\n"),
            "AMD EPYC 9654");
  EXPECT_EQ(CpuModelNameIn("Model : Raspberry Pi 4"), "Raspberry Pi 4");
  EXPECT_EQ(CpuModelNameIn("processor : 0\n"), "unknown CPU");
  EXPECT_EQ(CpuModelNameIn(""), "unknown CPU");
  EXPECT_NE(CpuModelName(), "");
}

TEST(CpuDescriptionTest, TheDeviceModelHasCoresCachesAndWhatWasMeasured) {
  const device::DeviceModel model = CpuDeviceModel(3);
  EXPECT_OK(device::CheckDeviceModel(model));
  EXPECT_EQ(model.name, CpuModelName());
  EXPECT_EQ(model.cores, 3);
  EXPECT_EQ(model.vector_bytes, CpuHardware(3).vector_unit_bytes());
  EXPECT_FALSE(model.is_gpu());
#if defined(__x86_64__)
  // The bounds are wide enough for a machine that others use.
  EXPECT_GT(model.clock_mhz, 300);
  EXPECT_LT(model.clock_mhz, 8000);
  EXPECT_GT(model.gflops_per_core, 0);
#endif
}

TEST(CpuDescriptionTest, VectorWidthFollowsTheLevel) {
  const int bytes = CpuHardware(3).vector_unit_bytes();
  EXPECT_EQ(bytes, CpuLevel() == "x86-64-v4" ? 64 : CpuLevel() == "x86-64-v3" ? 32 : 16);
  EXPECT_EQ(CpuHardware(3).num_cores(), 3);
  // Only GPUs have these parameters.
  EXPECT_THAT(UnsetFields(CpuHardware(3)),
              ElementsAre("max_shared_memory_per_block_bytes", "max_local_memory_per_block_bytes",
                          "max_threads_per_block", "max_vthread_extent", "warp_size"));
  EXPECT_GT(LastLevelCacheBytes(), 0);
}

}  // namespace
}  // namespace kiln::runner
