// Tests the GPU runner on a real GPU: compares the runner's kernels with the host, and runs trials
// of right programs and of each fault. Skipped if there is no GPU of the architecture that the
// programs of testdata/ were compiled for. Prints what timing adds to programs of known length.
#include <algorithm>
#include <random>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/status_testing.h"
#include "rpc/artifact_digest.h"
#include "runner/cuda_device.h"
#include "runner/cuda_gpus.h"
#include "runner/device_slot.h"

namespace kiln::runner {

// For the names of the CUDA driver.
using namespace runtime;

namespace {

using testing::AllOf;
using testing::Each;
using testing::Gt;
using testing::HasSubstr;
using testing::SizeIs;

bool NotCancelled() { return false; }

struct Gpu {
  const CudaDriver* driver = nullptr;
  CudaGpu gpu;
};

StatusOr<Gpu> FindGpu() {
  KILN_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  KILN_ASSIGN_OR_RETURN(const auto gpus, ListCudaGpus(*driver));
  if (ArchOf(gpus[0]) != "sm_90") {
    return FailedPrecondition("GPU 0 is {}, the programs are for sm_90", ArchOf(gpus[0]));
  }
  return Gpu{driver, gpus[0]};
}

// Arguments a, b, out, scratch of one shape.
v1::Artifact WithArguments(const std::vector<int64_t>& shape) {
  v1::Artifact artifact;
  artifact.set_device("cuda");
  artifact.set_binary(*ReadFile("runner/testdata/gpu_programs.cubin"));
  for (const char* name : {"a", "b", "out", "scratch"}) {
    v1::ArgSpec& arg = *artifact.mutable_plan()->add_args();
    arg.set_name(name);
    arg.set_dtype("float32");
    for (const int64_t extent : shape) arg.add_shape(extent);
    if (arg.name() == "out") arg.set_role(v1::ArgSpec::OUTPUT);
    if (arg.name() == "scratch") arg.set_role(v1::ArgSpec::WORKSPACE);
  }
  return artifact;
}

v1::Artifact Program(const std::vector<std::pair<std::string, std::vector<uint32_t>>>& kernels) {
  v1::Artifact artifact = WithArguments({4, 6});
  for (const auto& [symbol, args] : kernels) {
    v1::KernelLaunch& launch = *artifact.mutable_plan()->add_launches();
    launch.set_symbol(symbol);
    for (uint32_t extent : {1, 1, 1}) launch.add_grid(extent);
    for (uint32_t extent : {24, 1, 1}) launch.add_block(extent);
    launch.mutable_args()->Assign(args.begin(), args.end());
  }
  artifact.set_digest(DigestOf(artifact));
  return artifact;
}
v1::Artifact Program(const std::string& symbol) { return Program({{symbol, {0, 1, 2}}}); }

// A program of one kernel with blocks of 256 threads.
v1::Artifact Blocks(const std::string& symbol, const std::vector<int64_t>& shape,
                    std::vector<uint32_t> grid, std::vector<uint32_t> block) {
  v1::Artifact artifact = WithArguments(shape);
  v1::KernelLaunch& launch = *artifact.mutable_plan()->add_launches();
  launch.set_symbol(symbol);
  launch.mutable_grid()->Assign(grid.begin(), grid.end());
  launch.mutable_block()->Assign(block.begin(), block.end());
  for (uint32_t arg : {0, 1, 2}) launch.add_args(arg);
  artifact.set_digest(DigestOf(artifact));
  return artifact;
}
v1::Artifact Sum(uint32_t elements) {
  return Blocks("sum", {elements}, {elements / 256, 1, 1}, {256, 1, 1});
}
v1::Artifact Product(const std::string& symbol, uint32_t n) {
  return Blocks(symbol, {n, n}, {n / 16, n / 16, 1}, {16, 16, 1});
}

Argument Elements(const std::string& name, DType dtype, int64_t count) {
  Argument argument;
  argument.name = name;
  argument.dtype = dtype;
  argument.shape = {count};
  argument.elements = count;
  argument.bytes = count * DTypeBytes(dtype);
  return argument;
}

class CudaGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    auto gpu = FindGpu();
    if (!gpu.ok()) GTEST_SKIP() << gpu.status();
    gpu_ = *gpu;
  }
  Gpu gpu_;
};

class CudaGpuDeviceTest : public CudaGpuTest {
 protected:
  void SetUp() override {
    CudaGpuTest::SetUp();
    if (IsSkipped()) return;
    auto device = MakeCudaDevice(*gpu_.driver, gpu_.gpu);
    ASSERT_OK(device);
    device_ = *std::move(device);
  }
  std::unique_ptr<Buffer> Filled(const Argument& argument, std::span<const std::byte> bytes) {
    auto buffer = device_->Allocate(argument);
    EXPECT_OK(buffer);
    EXPECT_OK(device_->Fill(**buffer, bytes));
    return *std::move(buffer);
  }
  std::unique_ptr<Device> device_;
};

TEST_F(CudaGpuTest, DescribesTheGpu) {
  EXPECT_EQ(TargetOf(gpu_.gpu), "cuda -arch=sm_90");
  EXPECT_EQ(HardwareOf(gpu_.gpu).max_shared_memory_per_block_bytes(),
            gpu_.gpu.max_shared_bytes_per_block_optin);
  EXPECT_EQ(HardwareOf(gpu_.gpu).max_threads_per_block(), 1024);
  EXPECT_EQ(HardwareOf(gpu_.gpu).warp_size(), 32);
  EXPECT_EQ(HardwareOf(gpu_.gpu).max_vthread_extent(), 8);
  EXPECT_EQ(gpu_.gpu.max_shared_bytes_per_block_optin, 232448);
  fmt::print("{} {} {} multiprocessors, L2 {} bytes, {} registers, memory {}\n", gpu_.gpu.name,
             gpu_.gpu.uuid, gpu_.gpu.multiprocessors, gpu_.gpu.l2_bytes,
             gpu_.gpu.max_registers_per_block, gpu_.gpu.memory_bytes);
}

TEST_F(CudaGpuDeviceTest, ComparesAsTheHostDoes) {
  const uint64_t seed = 7;
  std::mt19937_64 rng(seed);
  for (int dtype_index = 0; dtype_index <= static_cast<int>(DType::kBool); ++dtype_index) {
    for (int64_t count : {1, 31, 1000, 300001}) {
      const DType dtype = static_cast<DType>(dtype_index);
      SCOPED_TRACE(fmt::format("{} x {}, seed {}", DTypeName(dtype), count, seed));
      const Argument argument = Elements("x", dtype, count);
      std::vector<std::byte> want(static_cast<size_t>(argument.bytes));
      FillRandom(want, dtype, 0, "key");
      std::vector<std::byte> got = want;
      for (int round = 0; round < 3; ++round) {
        const auto got_buffer = Filled(argument, got);
        const auto want_buffer = Filled(argument, want);
        const Comparison host = Compare(argument, got, want, {});
        ASSERT_OK_AND_ASSIGN(const Comparison device,
                             device_->Compare(*got_buffer, *want_buffer, {}));
        EXPECT_EQ(device.different, host.different);
        EXPECT_EQ(device.message, host.message);
        EXPECT_EQ(device.max_error, host.max_error);
        ASSERT_OK_AND_ASSIGN(const auto fetched, device_->Fetch(*got_buffer));
        EXPECT_TRUE(std::ranges::equal(fetched, got));
        EXPECT_OK(device_->CheckGuards(*got_buffer));
        // Some other bytes follow, NaN and infinities among them; in the second round both outputs
        // have them.
        for (int i = 0; i < 20; ++i) {
          const size_t at = rng() % got.size();
          got[at] = std::byte(rng() % 3 == 0 ? 0xff : rng() % 256);
          if (round == 1) want[at] = got[at];
        }
      }
    }
  }
}

TEST_F(CudaGpuDeviceTest, ChecksumSeesEveryByte) {
  for (int64_t count : {1, 7, 8, 9, 4099}) {
    const Argument argument = Elements("x", DType::kUInt8, count);
    std::vector<std::byte> bytes(static_cast<size_t>(count));
    FillRandom(bytes, DType::kUInt8, 0, "key");
    const auto buffer = Filled(argument, bytes);
    ASSERT_OK_AND_ASSIGN(const uint64_t sum, device_->Checksum(*buffer));
    EXPECT_EQ(*device_->Checksum(*buffer), sum);
    for (size_t at : {size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
      bytes[at] ^= std::byte{4};
      ASSERT_OK(device_->Fill(*buffer, bytes));
      EXPECT_NE(*device_->Checksum(*buffer), sum) << at << " of " << count;
      bytes[at] ^= std::byte{4};
    }
    ASSERT_OK(device_->Fill(*buffer, bytes));
    EXPECT_EQ(*device_->Checksum(*buffer), sum);
  }
}

TEST_F(CudaGpuDeviceTest, RefusesWhatDoesNotLaunch) {
  const auto load = [&](const v1::Artifact& artifact) { return device_->Load(artifact).status(); };
  EXPECT_THAT(load(Program("nothing")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no such kernel")));
  EXPECT_THAT(load(Program({{"correct", {0, 1}}})),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("takes 3 parameters")));
  v1::Artifact artifact = Program("small_blocks");
  artifact.mutable_plan()->mutable_launches(0)->set_block(0, 96);
  EXPECT_THAT(load(artifact), StatusIs(StatusCode::kInvalidArgument, HasSubstr("allow 64")));
  artifact = Program("shared");
  artifact.mutable_plan()->mutable_launches(0)->set_dynamic_shared_bytes(232449);
  EXPECT_THAT(load(artifact), StatusIs(StatusCode::kInvalidArgument, HasSubstr("232448")));
  artifact = Program("correct");
  artifact.mutable_binary()->resize(artifact.binary().size() / 2);
  EXPECT_THAT(load(artifact), StatusIs(StatusCode::kInvalidArgument, HasSubstr("cut off")));
  EXPECT_TRUE(device_->Usable());
}

// The test has no limits; its table is for the reader.
TEST_F(CudaGpuDeviceTest, TimesWithLittleOfItsOwn) {
  const CudaDeviceOptions kinds[] = {{0, 0},     {0, 20000},  {1, 20000},
                                     {5, 20000}, {20, 20000}, {50, 20000}};
  fmt::print(
      "us per call: kernel, calls, then plain; lead-in; lead-in and graphs of 1, 5, 20, 50\n");
  const auto two = Program({{"twice", {1, 3}}, {"add", {0, 3, 2}}});
  for (const std::string name :
       {"cycles_0", "cycles_3000", "cycles_10000", "cycles_100000", "two"}) {
    for (int64_t number : {1, 3, 20, 100, 2000}) {
      std::string line = fmt::format("{:14} {:5}", name, number);
      for (const CudaDeviceOptions& options : kinds) {
        ASSERT_OK_AND_ASSIGN(auto device, MakeCudaDevice(*gpu_.driver, gpu_.gpu, options));
        ASSERT_OK_AND_ASSIGN(auto program, device->Load(name == "two" ? two : Program(name)));
        std::vector<std::unique_ptr<Buffer>> buffers;
        std::vector<Buffer*> args;
        for (int i = 0; i < 4; ++i) {
          buffers.push_back(*device->Allocate(Elements("x", DType::kFloat32, 24)));
          args.push_back(buffers.back().get());
        }
        ASSERT_OK(device->Time(*program, args, 100));
        std::vector<double> readings;
        for (int i = 0; i < 11; ++i) {
          ASSERT_OK_AND_ASSIGN(const double seconds, device->Time(*program, args, number));
          EXPECT_GT(seconds, 0);
          readings.push_back(1e6 * seconds / static_cast<double>(number));
        }
        std::sort(readings.begin(), readings.end());
        line += fmt::format(" {:8.2f} ({:4.1f}%)", readings[5],
                            100 * (readings[9] - readings[1]) / readings[5]);
      }
      fmt::print("{}\n", line);
    }
  }
}

// A reading on inputs that change is that of the timed calls, whatever the size.
TEST_F(CudaGpuDeviceTest, CallsOnChangedInputsTakeNoLonger) {
  std::vector<std::pair<std::string, v1::Artifact>> programs;
  for (uint32_t elements : {256u, 4096u, 1u << 16, 1u << 18, 1u << 20, 1u << 21, 1u << 22})
    programs.emplace_back(fmt::format("sum {}", elements), Sum(elements));
  for (uint32_t n : {16, 64, 128, 256, 512, 1024})
    programs.emplace_back(fmt::format("product {}", n), Product("product", n));
  fmt::print("us per call: timed, and on inputs that change (three readings of each)\n");
  for (const auto& [name, artifact] : programs) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(auto program, device_->Load(artifact));
    ASSERT_OK_AND_ASSIGN(const auto arguments, ParseArguments(artifact.plan()));
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<Buffer*> args;
    for (const Argument& argument : arguments) {
      std::vector<std::byte> bytes(static_cast<size_t>(argument.bytes));
      FillRandom(bytes, argument.dtype, 0, argument.name);
      buffers.push_back(Filled(argument, bytes));
      args.push_back(buffers.back().get());
    }
    ASSERT_OK(device_->Run(*program, args));
    ASSERT_OK_AND_ASSIGN(const auto right, device_->Fetch(*args[2]));
    const auto expected = Filled(arguments[2], right);
    const Inspection::Pair pairs[] = {{args[2], expected.get()}};
    ASSERT_OK_AND_ASSIGN(const uint64_t sum, device_->Checksum(*args[0]));
    std::string line = fmt::format("{:14}", name);
    double least_ratio = 1e9;
    for (int round = 0; round < 3; ++round) {
      ASSERT_OK_AND_ASSIGN(const double batch_s, device_->Time(*program, args, 400));
      const ChangedCalls calls{.calls = 16, .checked = 5 * round, .seed = uint64_t(round)};
      ASSERT_OK_AND_ASSIGN(const auto changed,
                           device_->TimeChanged(*program, args, calls, pairs, {}));
      ASSERT_TRUE(changed.has_value());
      EXPECT_OK(changed->outputs.at(0));
      line += fmt::format(" {:8.2f} {:8.2f}", 1e6 * batch_s / 400, 1e6 * changed->call_s);
      least_ratio = std::min(least_ratio, (changed->call_s - 1e-6) / (batch_s / 400));
    }
    fmt::print("{}\n", line);
    const bool is_cached = 4 * args[0]->argument().bytes <= 16 << 20;
    EXPECT_LT(least_ratio, is_cached ? 1.3 : 2.0);
    ASSERT_OK_AND_ASSIGN(const uint64_t last_sum, device_->Checksum(*args[0]));
    EXPECT_EQ(last_sum, sum);
  }
}

class CudaSlotTest : public CudaGpuTest {
 protected:
  void SetUp() override {
    CudaGpuTest::SetUp();
    if (IsSkipped()) return;
    DeviceSlotOptions options;
    options.device = "cuda:" + gpu_.gpu.uuid;
    options.child_command = {"runner/kiln_runner", "--child", "--device", options.device};
    options.device_name = gpu_.gpu.name;
    slot_ = std::make_unique<DeviceSlot>(std::move(options));
  }
  v1::TrialResult Measure(const v1::Artifact& artifact) {
    return Measure(artifact, Program("correct"));
  }
  v1::TrialResult Measure(const v1::Artifact& artifact, const v1::Artifact& reference,
                          uint32_t min_repeat_ms = 0) {
    v1::MeasureRequest request;
    *request.mutable_artifact() = artifact;
    // Some tests change the plan of a program.
    request.mutable_artifact()->set_digest(DigestOf(artifact));
    *request.mutable_reference() = reference;
    request.set_reference_digest(request.reference().digest());
    request.set_seed(42);
    request.mutable_options()->set_timeout_ms(3000);
    request.mutable_options()->set_min_repeat_ms(min_repeat_ms);
    const double start_s = Clock::Real().MonotonicSeconds();
    auto reply = slot_->Measure(request, NotCancelled);
    EXPECT_OK(reply);
    if (!reply.ok()) return {};
    fmt::print("{:18} {:8.2f} ms  {}  {}\n", artifact.plan().launches(0).symbol(),
               1e3 * (Clock::Real().MonotonicSeconds() - start_s),
               v1::ErrorKind_Name(reply->result().error()), reply->result().message());
    return reply->result();
  }
  void ExpectRight(const v1::Artifact& artifact) {
    const v1::TrialResult result = Measure(artifact);
    EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
    EXPECT_THAT(result.costs_s(), AllOf(SizeIs(1), Each(Gt(0))));
  }
  std::unique_ptr<DeviceSlot> slot_;
};

TEST_F(CudaSlotTest, MeasuresRightPrograms) {
  for (int i = 0; i < 5; ++i) ExpectRight(Program("correct"));
  ExpectRight(Program({{"twice", {1, 3}}, {"add", {0, 3, 2}}}));
  for (uint32_t bytes : {1024, 49152, 232448}) {
    v1::Artifact artifact = Program("shared");
    artifact.mutable_plan()->mutable_launches(0)->set_dynamic_shared_bytes(bytes);
    ExpectRight(artifact);
  }
  EXPECT_EQ(slot_->stats().children_lost, 0);
}

// Honest programs keep the reading of their timed calls.
TEST_F(CudaSlotTest, HonestProgramsPassWithChangedInputs) {
  std::vector<v1::Artifact> programs;
  for (uint32_t elements : {256u, 1u << 16, 1u << 20, 1u << 22, 1u << 24})
    programs.push_back(Sum(elements));
  for (uint32_t n : {16, 64, 128, 256, 512, 1024}) programs.push_back(Product("product", n));
  for (const v1::Artifact& program : programs) {
    for (int trial = 0; trial < 5; ++trial) {
      const v1::TrialResult result = Measure(program, program, 10);
      EXPECT_EQ(result.error(), v1::NO_ERROR) << result.message();
      EXPECT_FALSE(result.stopped_early())
          << program.plan().launches(0).symbol() << " " << program.plan().args(0).shape(0) << ": "
          << result.message();
    }
  }
}

TEST_F(CudaSlotTest, ProgramsThatKeepAnswersGainNothing) {
  for (uint32_t n : {128, 512}) {
    const v1::TrialResult honest = Measure(Product("product", n), Product("product", n), 10);
    ASSERT_EQ(honest.error(), v1::NO_ERROR) << honest.message();
    for (const char* program : {"product_by_sample", "product_if_poison_first", "product_if_poison",
                                "product_after_rest"}) {
      SCOPED_TRACE(fmt::format("{} {}", program, n));
      const v1::TrialResult result = Measure(Product(program, n), Product("product", n), 10);
      if (result.error() == v1::NO_ERROR) {
        EXPECT_THAT(result.costs_s(), Each(Gt(0.7 * honest.costs_s(0))));
      } else {
        EXPECT_EQ(result.error(), v1::WRONG_ANSWER_ERROR);
      }
    }
  }
}

TEST_F(CudaSlotTest, EachFaultCostsOneTrial) {
  struct Fault {
    const char* program;
    v1::ErrorKind error;
    const char* message;
    uint64_t children;
  };
  const Fault faults[] = {
      {"wrong_answer", v1::WRONG_ANSWER_ERROR, "element [1, 1]", 0},
      {"unwritten", v1::WRONG_ANSWER_ERROR, "got nan", 0},
      {"modifies_input", v1::WRONG_ANSWER_ERROR, "modified its input a", 0},
      {"out_of_bounds", v1::RUNTIME_DEVICE_ERROR, "'out': 40 bytes after its end", 0},
      {"before_start", v1::RUNTIME_DEVICE_ERROR, "'out': 5 bytes before its start", 0},
      {"nothing", v1::COMPILE_DEVICE_ERROR, "no such kernel", 0},
      {"far_out_of_bounds", v1::RUNTIME_DEVICE_ERROR, "CUDA_ERROR_ILLEGAL_ADDRESS", 1},
      {"misaligned", v1::RUNTIME_DEVICE_ERROR, "CUDA_ERROR_MISALIGNED_ADDRESS", 1},
      {"trap", v1::RUNTIME_DEVICE_ERROR, "CUDA_ERROR", 1},
      {"infinite_loop", v1::RUN_TIMEOUT_ERROR, "not finished after 3s", 1},
  };
  ExpectRight(Program("correct"));
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.program);
    const uint64_t lost = slot_->stats().children_lost;
    const v1::TrialResult result = Measure(Program(fault.program));
    EXPECT_EQ(result.error(), fault.error);
    EXPECT_THAT(result.message(), HasSubstr(fault.message));
    const double start_s = Clock::Real().MonotonicSeconds();
    ExpectRight(Program("correct"));
    EXPECT_LT(Clock::Real().MonotonicSeconds() - start_s, 1.5);
    EXPECT_EQ(slot_->stats().children_lost, lost + fault.children);
  }
}

}  // namespace
}  // namespace kiln::runner
