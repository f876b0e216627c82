// Tests the GPU runner's logic over a fake driver, without a GPU.
#include "runner/cuda_device.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/status_testing.h"
#include "rpc/fields_testing.h"
#include "runner/cuda_gpus.h"
#include "runner/cuda_kernels_testing.h"
#include "runner/cuda_program.h"

namespace kiln::runner {

// For the names of the CUDA driver.
using namespace runtime;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CudaDeviceTest : public testing::Test {
 protected:
  CudaDeviceTest() {
    ResetFakeCuda();
    cuda_.kernels["add"] = {
        .run =
            [](const FakeLaunch& launch) {
              auto* in = reinterpret_cast<float*>(FakeParameter<CuPointer>(launch, 0));
              auto* out = reinterpret_cast<float*>(FakeParameter<CuPointer>(launch, 1));
              for (int i = 0; i < 8; ++i) out[i] = in[i] + 1;
              return 0;
            },
        .parameters = 2};
  }
  void MakeDevice(CudaDeviceOptions options = {}) {
    const auto gpus = ListCudaGpus(FakeCuda::Driver());
    ASSERT_OK(gpus);
    auto device = MakeCudaDevice(FakeCuda::Driver(), gpus->front(), options);
    ASSERT_OK(device);
    device_ = *std::move(device);
    for (const char* name : {"in", "out"}) {
      Argument argument;
      argument.name = name;
      argument.shape = {2, 4};
      argument.elements = 8;
      argument.bytes = 32;
      if (argument.name == "out") argument.role = v1::ArgSpec::OUTPUT;
      buffers_.push_back(*device_->Allocate(argument));
      args_.push_back(buffers_.back().get());
    }
    const std::vector<float> values(8, 1.0f);
    ASSERT_OK(device_->Fill(*args_[0], std::as_bytes(std::span(values))));
    ASSERT_OK(device_->Poison(*args_[1], Poison::kNaN));
    cuda_.launched.clear();
  }
  static v1::Artifact Add() {
    v1::Artifact artifact;
    artifact.set_device("cuda");
    artifact.set_binary(EmptyCubin());
    artifact.mutable_plan()->add_args()->set_name("in");
    artifact.mutable_plan()->add_args()->set_name("out");
    v1::KernelLaunch& launch = *artifact.mutable_plan()->add_launches();
    launch.set_symbol("add");
    for (uint32_t extent : {2, 3, 1}) launch.add_grid(extent);
    for (uint32_t extent : {32, 4, 1}) launch.add_block(extent);
    launch.add_args(0);
    launch.add_args(1);
    return artifact;
  }
  static v1::KernelLaunch& LaunchOf(v1::Artifact& artifact) {
    return *artifact.mutable_plan()->mutable_launches(0);
  }

  FakeCuda& cuda_ = FakeCuda::Get();
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<Buffer*> args_;
};

TEST_F(CudaDeviceTest, RunsAndCompares) {
  MakeDevice({.lead_in_ns = 0});
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Add()));
  ASSERT_OK(device_->Run(*program, args_));
  EXPECT_THAT(cuda_.launched, ElementsAre("add"));
  ASSERT_OK_AND_ASSIGN(const auto bytes, device_->Fetch(*args_[1]));
  const std::vector<float> want(8, 2.0f);
  EXPECT_EQ(std::memcmp(bytes.data(), want.data(), bytes.size()), 0);
  ASSERT_OK_AND_ASSIGN(const Comparison comparison, device_->Compare(*args_[0], *args_[1], {}));
  EXPECT_EQ(comparison.different, 8);
  EXPECT_EQ(comparison.message,
            "output in: element [0, 0]: got 1, expected 2; 8 of 8 elements differ "
            "by more than 0.001 of what the reference has there and 0.0001 of its largest value");
  EXPECT_OK(device_->CheckGuards(*args_[1]));
}

TEST_F(CudaDeviceTest, AnInputHasOtherContentAtItsAddressUntilItIsRestored) {
  MakeDevice({.lead_in_ns = 0});
  const Argument argument = args_[0]->argument();
  ASSERT_OK_AND_ASSIGN(const auto first, device_->Fetch(*args_[0]));
  ASSERT_OK_AND_ASSIGN(auto other, device_->Allocate(argument));
  const std::vector<float> nines(8, 9.0f);
  ASSERT_OK(device_->Fill(*other, std::as_bytes(std::span(nines))));
  ASSERT_OK(device_->Substitute(*args_[0], *other));
  ASSERT_OK_AND_ASSIGN(const auto shown, device_->Fetch(*args_[0]));
  EXPECT_EQ(std::memcmp(shown.data(), nines.data(), shown.size()), 0);
  ASSERT_OK(device_->Restore(*args_[0], *other));
  ASSERT_OK_AND_ASSIGN(const auto last, device_->Fetch(*args_[0]));
  EXPECT_EQ(last, first);
}

TEST_F(CudaDeviceTest, ItsCanaryMultipliesAndReads) {
  MakeDevice({.canary_bytes = 4096});
  int64_t summed = 0, searched = 0;
  const auto checksum = cuda_.kernels["kiln_checksum"].run;
  cuda_.kernels["kiln_checksum"].run = [&](const FakeLaunch& launch) {
    summed += FakeParameter<int64_t>(launch, 1);
    return checksum(launch);
  };
  cuda_.kernels["kiln_largest"].run = [&](const FakeLaunch& launch) {
    const auto* values = reinterpret_cast<const double*>(FakeParameter<CuPointer>(launch, 0));
    EXPECT_EQ(values[511], values[0]) << "all its memory is filled";
    EXPECT_EQ(FakeParameter<int>(launch, 2), 0) << "float64";
    searched += FakeParameter<int64_t>(launch, 1);
    return 0;
  };
  ASSERT_OK_AND_ASSIGN(const double seconds, device_->TimeCanary());
  EXPECT_GT(seconds, 0);
  EXPECT_THAT(summed, testing::AllOf(testing::Ge(2 * 32 * 4096), testing::Le(6 * 32 * 4096)));
  EXPECT_EQ(searched * 8, summed);
  EXPECT_TRUE(device_->Usable());
  // A program still runs after it.
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Add()));
  ASSERT_OK(device_->Run(*program, args_));
}

TEST_F(CudaDeviceTest, AFaultOfTheCanaryIsTold) {
  MakeDevice({.canary_bytes = 4096});
  cuda_.kernels["kiln_checksum"].run = [](const FakeLaunch&) { return 700; };
  EXPECT_FALSE(device_->TimeCanary().ok());
  EXPECT_FALSE(device_->Usable());
}

TEST_F(CudaDeviceTest, InputsDifferFromCallToCallAndStayInTheEnd) {
  MakeDevice();
  for (Buffer* arg : args_) ASSERT_OK(device_->Poison(*arg, Poison::kStale));
  std::vector<float> values(8), want;
  for (size_t i = 0; i < 8; ++i) values[i] = static_cast<float>(10 + i);
  for (const float value : values) want.push_back(value + 1);
  ASSERT_OK(device_->Fill(*args_[0], std::as_bytes(std::span(values))));
  ASSERT_OK_AND_ASSIGN(auto expected, device_->Allocate(args_[1]->argument()));
  ASSERT_OK(device_->Fill(*expected, std::as_bytes(std::span(want))));
  const Inspection::Pair pairs[] = {{args_[1], expected.get()}};
  std::vector<std::vector<float>> met;
  const auto add = cuda_.kernels["add"].run;
  const auto noting = [&](const FakeLaunch& launch) {
    const auto* in = reinterpret_cast<const float*>(FakeParameter<CuPointer>(launch, 0));
    const auto* out = reinterpret_cast<const float*>(FakeParameter<CuPointer>(launch, 1));
    met.emplace_back(in, in + 8);
    int right = 0;
    for (int i = 0; i < 8; ++i) right += out[i] == in[i] + 1 ? 1 : 0;
    EXPECT_LT(right, 4) << "the answer is there already";
    cuda_.now_ms += 0.25;
    return add(launch);
  };
  cuda_.kernels["add"].run = noting;
  cuda_.keeps_time = true;
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Add()));
  const ChangedCalls calls{.calls = 4, .checked = 2, .seed = 1};
  ASSERT_OK_AND_ASSIGN(auto result, device_->TimeChanged(*program, args_, calls, pairs, {}));
  ASSERT_TRUE(result.has_value());
  EXPECT_NEAR(result->call_s, 0.25e-3, 1e-8) << "the changes take no part in it";
  ASSERT_EQ(result->outputs.size(), 1u);
  EXPECT_OK(result->outputs[0]);
  ASSERT_EQ(met.size(), 4u);
  for (int call = 0; call < 4; ++call) {
    std::vector<float> sorted = met[static_cast<size_t>(call)];
    EXPECT_EQ(sorted == values, call == 2);
    for (float& value : sorted) value = std::abs(value);
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, values) << "but for their signs";
  }
  ASSERT_OK_AND_ASSIGN(const auto last, device_->Fetch(*args_[0]));
  EXPECT_EQ(std::memcmp(last.data(), values.data(), last.size()), 0);

  // An answer that the checked call leaves out is wrong.
  cuda_.kernels["add"].run = [&](const FakeLaunch& launch) {
    return met.size() == 6 ? met.emplace_back(), 0 : noting(launch);
  };
  ASSERT_OK_AND_ASSIGN(result, device_->TimeChanged(*program, args_, calls, pairs, {}));
  ASSERT_EQ(result->outputs.size(), 1u);
  EXPECT_EQ(Message(result->outputs[0]), "output out: 8 of 8 elements that were looked at differ");
  EXPECT_TRUE(device_->Usable());

  // A fault in such a call is one of the program.
  cuda_.kernels["add"].run = [](const FakeLaunch&) { return 700; };
  EXPECT_THAT(device_->TimeChanged(*program, args_, calls, pairs, {}),
              StatusIs(StatusCode::kInternal, HasSubstr("CUDA_ERROR_FAKE (700)")));
}

TEST_F(CudaDeviceTest, NumbersStandBetweenPointers) {
  MakeDevice();
  cuda_.kernels["scale"] = {
      .run =
          [](const FakeLaunch& launch) {
            auto* out = reinterpret_cast<float*>(FakeParameter<CuPointer>(launch, 1));
            auto* in = reinterpret_cast<float*>(FakeParameter<CuPointer>(launch, 2));
            const auto by = FakeParameter<double>(launch, 0);
            const auto more = FakeParameter<int64_t>(launch, 3);
            for (int i = 0; i < 8; ++i)
              out[i] = static_cast<float>(in[i] * by + static_cast<double>(more));
            return 0;
          },
      .parameters = 4};
  v1::Artifact artifact = Add();
  LaunchOf(artifact).set_symbol("scale");
  LaunchOf(artifact).set_args(0, 1);
  LaunchOf(artifact).set_args(1, 0);
  const auto add = [&](uint32_t position, const auto value) {
    v1::ScalarArgument& scalar = *LaunchOf(artifact).add_scalars();
    scalar.set_position(position);
    scalar.set_value(&value, sizeof(value));
  };
  add(0, 2.5);
  add(3, int64_t{4});
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(artifact));
  ASSERT_OK(device_->Run(*program, args_));
  ASSERT_OK_AND_ASSIGN(const auto bytes, device_->Fetch(*args_[1]));
  const std::vector<float> want(8, 6.5f);
  EXPECT_EQ(std::memcmp(bytes.data(), want.data(), bytes.size()), 0);

  LaunchOf(artifact).mutable_scalars(1)->set_position(5);
  EXPECT_THAT(device_->Load(artifact).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("at place 5 among its parameters")));
  LaunchOf(artifact).mutable_scalars(1)->set_position(3);
  LaunchOf(artifact).mutable_scalars(1)->set_value("abc");
  EXPECT_THAT(Message(device_->Load(artifact).status()), HasSubstr("a number of 3 bytes"));
  LaunchOf(artifact).mutable_scalars(1)->set_value("abcd");
  EXPECT_THAT(Message(device_->Load(artifact).status()),
              HasSubstr("its parameter 3 has 8 bytes, the plan gives 4"));
}

TEST_F(CudaDeviceTest, LaunchesLongBatchesThroughAGraph) {
  MakeDevice({.graph_calls = 4, .lead_in_ns = 1000});
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Add()));
  for (int number : {1, 3, 4, 11}) {
    cuda_.launched.clear();
    cuda_.graph_launches = 0;
    ASSERT_OK_AND_ASSIGN(const double seconds, device_->Time(*program, args_, number));
    EXPECT_FLOAT_EQ(seconds, 0.002);
    ASSERT_EQ(cuda_.launched.size(), static_cast<size_t>(number + 1));
    EXPECT_EQ(cuda_.launched[0], "kiln_lead_in");
    EXPECT_EQ(cuda_.graph_launches, number / 4);
  }
}

TEST_F(CudaDeviceTest, ReadingsOfShortKernelsAreWholeGraphs) {
  MakeDevice();
  EXPECT_EQ(device_->CallsPerReading(1, 5e-6), 20);
  EXPECT_EQ(device_->CallsPerReading(20, 5e-6), 20);
  EXPECT_EQ(device_->CallsPerReading(21, 5e-6), 40);
  EXPECT_EQ(device_->CallsPerReading(3, 2e-3), 3);
}

// The fake GPU's cache is as small as a flush is at least.
TEST_F(CudaDeviceTest, ColdCallsReadCopiesOfTheirInputsInTurns) {
  cuda_.gpus[0].attributes[kCuL2CacheBytes] = 1 << 10;
  MakeDevice({.graph_calls = 4, .lead_in_ns = 0});
  Argument argument = args_[0]->argument();
  argument.shape = {3 << 20};
  argument.elements = 3 << 20;
  argument.bytes = 12 << 20;
  ASSERT_OK_AND_ASSIGN(auto large, device_->Allocate(argument));
  const std::vector<float> values(3 << 20, 5.0f);
  ASSERT_OK(device_->Fill(*large, std::as_bytes(std::span(values))));
  const std::vector<Buffer*> args = {large.get(), args_[1]};
  std::vector<CuPointer> places;
  cuda_.kernels["add"].run = [&](const FakeLaunch& launch) {
    places.push_back(FakeParameter<CuPointer>(launch, 0));
    const auto* in = reinterpret_cast<const float*>(places.back());
    auto* out = reinterpret_cast<float*>(FakeParameter<CuPointer>(launch, 1));
    for (int i = 0; i < 8; ++i) out[i] = in[i] + in[(3 << 20) - 1];
    return 0;
  };
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Add()));
  const size_t blocks = cuda_.memory.size();
  {
    ASSERT_OK_AND_ASSIGN(const auto rotated, device_->Rotate(*program, args));
    ASSERT_NE(rotated, nullptr);
    // 32 MiB of copies, and the input itself, in a graph of whole rounds.
    EXPECT_EQ(cuda_.memory.size(), blocks + 3);
    EXPECT_EQ(rotated->PerReading(1, 5e-6), 4);
    EXPECT_EQ(rotated->PerReading(5, 5e-6), 8);
    for (const int number : {1, 1, 9}) ASSERT_OK(rotated->Time(number));
    ASSERT_THAT(places, SizeIs(11));
    for (size_t i = 4; i < places.size(); ++i) EXPECT_EQ(places[i], places[i - 4]) << i;
    EXPECT_EQ(std::set<CuPointer>(places.begin(), places.end()).size(), 4u);
    ASSERT_OK_AND_ASSIGN(const auto bytes, device_->Fetch(*args_[1]));
    const std::vector<float> want(8, 10.0f);
    EXPECT_EQ(std::memcmp(bytes.data(), want.data(), bytes.size()), 0);
  }
  // The memory of the copies is used again.
  ASSERT_OK_AND_ASSIGN(const auto again, device_->Rotate(*program, args));
  EXPECT_EQ(cuda_.memory.size(), blocks + 3);
}

TEST_F(CudaDeviceTest, FewBytesAreNotRotated) {
  MakeDevice();
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Add()));
  ASSERT_OK_AND_ASSIGN(const auto rotated, device_->Rotate(*program, args_));
  EXPECT_EQ(rotated, nullptr);
}

TEST_F(CudaDeviceTest, NamesTheNearestStrayWriteOnce) {
  MakeDevice();
  cuda_.kernels["add"].run = [](const FakeLaunch& launch) {
    auto* out = reinterpret_cast<char*>(FakeParameter<CuPointer>(launch, 1));
    out[32 + 7] = 0;
    out[32 + 70] = 0;
    return 0;
  };
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Add()));
  ASSERT_OK(device_->Run(*program, args_));
  EXPECT_OK(device_->CheckGuards(*args_[0]));
  EXPECT_THAT(device_->CheckGuards(*args_[1]),
              StatusIs(StatusCode::kInternal, HasSubstr("'out': 7 bytes after its end")));
  EXPECT_OK(device_->CheckGuards(*args_[1]));
}

TEST_F(CudaDeviceTest, AnswersManyQuestionsAfterOneWait) {
  MakeDevice();
  ASSERT_OK_AND_ASSIGN(const uint64_t sum, device_->Checksum(*args_[0]));
  cuda_.kernels["add"].run = [](const FakeLaunch& launch) {
    auto* in = reinterpret_cast<float*>(FakeParameter<CuPointer>(launch, 0));
    auto* out = reinterpret_cast<float*>(FakeParameter<CuPointer>(launch, 1));
    std::copy_n(in, 8, out);
    // One element too many.
    out[8] = 0;
    return 0;
  };
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Add()));
  Inspection inspection;
  inspection.guards = {args_[0], args_[1]};
  inspection.sums = {args_[0]};
  inspection.pairs = {{args_[0], args_[0]}, {args_[1], args_[0]}};
  ASSERT_OK(device_->Poison(*args_[1], Poison::kStale));
  cuda_.waits = 0;
  ASSERT_OK_AND_ASSIGN(Findings findings, device_->Inspect(inspection));
  // There is one wait more for each of the two elements that the message shows.
  EXPECT_EQ(cuda_.waits, 3);
  EXPECT_EQ(findings.comparisons.at(0).different, 0);
  EXPECT_EQ(findings.comparisons.at(1).different, 8);
  ASSERT_OK(device_->Run(*program, args_));
  cuda_.waits = 0;
  ASSERT_OK_AND_ASSIGN(findings, device_->Inspect(inspection));
  EXPECT_THAT(findings.sums, ElementsAre(sum));
  EXPECT_EQ(findings.comparisons.at(1).different, 0);
  ASSERT_EQ(findings.guards.size(), 2u);
  EXPECT_OK(findings.guards[0]);
  EXPECT_THAT(findings.guards[1],
              StatusIs(StatusCode::kInternal, HasSubstr("'out': 0 bytes after its end")));
  // These are more questions than are answered at once.
  inspection.guards.assign(100, args_[0]);
  inspection.sums.assign(100, args_[0]);
  cuda_.waits = 0;
  ASSERT_OK_AND_ASSIGN(findings, device_->Inspect(inspection));
  EXPECT_EQ(cuda_.waits, 4);
  EXPECT_EQ(findings.sums, std::vector<uint64_t>(100, sum));
  EXPECT_EQ(findings.comparisons.size(), 2u);
}

TEST_F(CudaDeviceTest, KeepsMemoryForTheNextTrial) {
  MakeDevice();
  Argument argument;
  argument.bytes = 1 << 20;
  const size_t blocks = cuda_.memory.size();
  const int64_t free_bytes = device_->FreeMemoryBytes();
  for (int trial = 0; trial < 3; ++trial) {
    ASSERT_OK_AND_ASSIGN(const auto buffer, device_->Allocate(argument));
    EXPECT_EQ(cuda_.memory.size(), blocks + 1);
    EXPECT_OK(device_->CheckGuards(*buffer));
    ASSERT_OK(device_->Poison(*buffer, Poison::kNaN));
  }
  EXPECT_EQ(cuda_.memory.size(), blocks + 1);
  EXPECT_GT(device_->FreeMemoryBytes(), free_bytes) << "what is kept is free";
  // Kept memory is given up for a block that does not fit beside it.
  argument.bytes = 900 << 20;
  ASSERT_OK_AND_ASSIGN(const auto large, device_->Allocate(argument));
  cuda_.free_bytes = 1 << 10;
  argument.bytes = 2 << 20;
  EXPECT_THAT(device_->Allocate(argument).status(),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("allocate")));
  EXPECT_EQ(cuda_.memory.size(), blocks + 1) << "the large one";
}

TEST_F(CudaDeviceTest, IsLostAfterAStickyError) {
  MakeDevice();
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(Add()));
  EXPECT_TRUE(device_->Usable());
  cuda_.kernels["add"].run = [](const FakeLaunch&) { return 700; };
  EXPECT_THAT(device_->Run(*program, args_),
              StatusIs(StatusCode::kInternal, HasSubstr("CUDA_ERROR_FAKE (700)")));
  EXPECT_FALSE(device_->Usable());
  EXPECT_FALSE(device_->Checksum(*args_[0]).ok());
}

TEST_F(CudaDeviceTest, RefusesLaunchesThatTheGpuDoesNotTake) {
  MakeDevice();
  const auto expect_refused = [&](const v1::Artifact& artifact, const char* message) {
    EXPECT_THAT(device_->Load(artifact).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)));
    EXPECT_EQ(cuda_.modules, 1) << "only the runner's own";
  };
  v1::Artifact artifact = Add();
  LaunchOf(artifact).set_symbol("sub");
  expect_refused(artifact, "kernel 'sub': the cubin has no such kernel");
  artifact = Add();
  LaunchOf(artifact).add_args(1);
  expect_refused(artifact, "takes 2 parameters, the plan gives 3");
  artifact = Add();
  LaunchOf(artifact).set_args(1, 2);
  expect_refused(artifact, "argument 2 of a plan with 2");
  artifact = Add();
  LaunchOf(artifact).set_grid(1, 65536);
  expect_refused(artifact, "grid extent y is 65536");
  artifact = Add();
  LaunchOf(artifact).set_block(2, 0);
  expect_refused(artifact, "block extent z is 0");
  artifact = Add();
  LaunchOf(artifact).clear_grid();
  expect_refused(artifact, "grid of 0 extents");
  artifact = Add();
  LaunchOf(artifact).set_block(1, 64);
  expect_refused(artifact, "2048 threads per block");
  artifact = Add();
  LaunchOf(artifact).set_dynamic_shared_bytes(232449);
  expect_refused(artifact, "232449 bytes of shared memory");
  artifact = Add();
  artifact.mutable_plan()->clear_launches();
  expect_refused(artifact, "launches nothing");
  artifact = Add();
  artifact.set_device("cpu");
  expect_refused(artifact, "expected one for cuda");
}

// Tensor maps come behind all other parameters, with the arguments' addresses of that call.
TEST_F(CudaDeviceTest, TensorMapsAreParameters) {
  MakeDevice({.lead_in_ns = 0});
  static CuTensorMap seen;
  cuda_.kernels["add"].tensor_maps = 1;
  cuda_.kernels["add"].run = [](const FakeLaunch& launch) {
    seen = FakeParameter<CuTensorMap>(launch, 2);
    return 0;
  };
  v1::Artifact artifact = Add();
  for (v1::ArgSpec& spec : *artifact.mutable_plan()->mutable_args()) {
    spec.set_dtype("float32");
    spec.add_shape(2);
    spec.add_shape(4);
    spec.set_alignment_bytes(64);
  }
  artifact.mutable_plan()->mutable_args(1)->set_role(v1::ArgSpec::OUTPUT);
  v1::TensorMap& map = *LaunchOf(artifact).add_tensor_maps();
  map.set_element_bytes(4);
  for (int64_t extent : {4, 2}) map.add_extents(extent);
  map.add_strides(16);
  for (int64_t extent : {4, 1}) map.add_box(extent);
  ASSERT_OK_AND_ASSIGN(auto program, device_->Load(artifact));
  ASSERT_OK(device_->Run(*program, args_));
  // Number of dimensions.
  EXPECT_EQ(seen.words[2], 2u);
  EXPECT_EQ(seen.words[5], 16u);
  EXPECT_TRUE(cuda_.memory.lower_bound(seen.words[0]) != cuda_.memory.begin());

  const auto refusal = [&] { return std::string(device_->Load(artifact).status().message()); };
  map.set_extents(1, 3);
  EXPECT_THAT(refusal(), HasSubstr("kernel 'add': maps 48 bytes of argument 'in', which has 32"));
  map.set_extents(1, 2);
  map.set_arg(2);
  EXPECT_THAT(refusal(), HasSubstr("kernel 'add': maps argument 2 of a plan with 2"));
  map.set_strides(0, 8);
  EXPECT_THAT(refusal(), HasSubstr("stride 1 is 8 bytes"));
}

TEST_F(CudaDeviceTest, RefusesEveryCutOffCubin) {
  const std::string cubin = EmptyCubin();
  ASSERT_OK(CheckCubin(cubin));
  for (size_t bytes = 0; bytes < cubin.size(); ++bytes) {
    EXPECT_FALSE(CheckCubin(cubin.substr(0, bytes)).ok()) << bytes;
  }
}

TEST_F(CudaDeviceTest, AsksForSharedMemoryAbove48KiB) {
  MakeDevice();
  v1::Artifact artifact = Add();
  LaunchOf(artifact).set_dynamic_shared_bytes(48 << 10);
  ASSERT_OK(device_->Load(artifact));
  EXPECT_EQ(cuda_.kernels["add"].dynamic_shared_bytes, 0);
  LaunchOf(artifact).set_dynamic_shared_bytes(100 << 10);
  ASSERT_OK(device_->Load(artifact));
  EXPECT_EQ(cuda_.kernels["add"].dynamic_shared_bytes, 100 << 10);
}

TEST_F(CudaDeviceTest, ChecksClusters) {
  MakeDevice();
  v1::Artifact artifact = Add();
  const auto says = [](std::string_view text) {
    return StatusIs(StatusCode::kInvalidArgument, HasSubstr(std::string(text)));
  };
  LaunchOf(artifact).set_cluster(2);
  EXPECT_THAT(device_->Load(artifact).status(),
              says("compiled for clusters of 1 blocks, the plan says 2"));
  cuda_.kernels["add"].cluster_width = 2;
  ASSERT_OK(device_->Load(artifact));
  cuda_.active_clusters = 0;
  EXPECT_THAT(device_->Load(artifact).status(),
              says("no cluster of 2 blocks with 128 threads and 0 bytes"));
  cuda_.active_clusters = 1;
  LaunchOf(artifact).set_grid(0, 3);
  EXPECT_THAT(device_->Load(artifact).status(), says("3 blocks along x are no clusters of 2"));
  LaunchOf(artifact).set_cluster(0);
  EXPECT_THAT(device_->Load(artifact).status(),
              says("compiled for clusters of 2 blocks, the plan says 1"));
}

TEST_F(CudaDeviceTest, SaysWhenMemoryIsShortAndFreesWhatItTook) {
  MakeDevice();
  Argument argument;
  argument.name = "huge";
  argument.bytes = int64_t{1} << 40;
  EXPECT_THAT(device_->Allocate(argument).status(),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("'huge'")));
  device_->FlushCaches();
  buffers_.clear();
  device_ = nullptr;
  EXPECT_TRUE(cuda_.memory.empty());
  EXPECT_EQ(cuda_.host_blocks, 0);
  EXPECT_EQ(cuda_.modules, 0);
}

TEST_F(CudaDeviceTest, SelectsAndDescribesGpus) {
  cuda_.gpus.resize(3);
  cuda_.gpus[1].uuid = 0x12;
  cuda_.gpus[2].uuid = 0x22;
  cuda_.gpus[2].name = "Small GPU";
  cuda_.gpus[2].major = 7;
  cuda_.gpus[2].attributes[kCuMaxThreadsPerBlock] = 512;
  cuda_.gpus[2].attributes[kCuPciDomain] = 1;
  cuda_.gpus[2].attributes[kCuPciBus] = 0xdb;
  const auto count = [](std::string_view device) -> StatusOr<size_t> {
    KILN_ASSIGN_OR_RETURN(const auto gpus, SelectCudaGpus(FakeCuda::Driver(), device));
    return gpus.size();
  };
  EXPECT_EQ(*count("cuda"), 3);
  EXPECT_EQ(*count("cuda:2"), 1);
  EXPECT_EQ(*count("cuda:GPU-11"), 1);
  EXPECT_THAT(count("cuda:GPU-1").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("2 GPUs")));
  EXPECT_THAT(count("cuda:3").status(), StatusIs(StatusCode::kNotFound, HasSubstr("Small GPU")));
  EXPECT_FALSE(count("cuda:").ok());
  EXPECT_FALSE(count("cuda:-1").ok());
  EXPECT_FALSE(count("opencl").ok());
  const auto gpus = *SelectCudaGpus(FakeCuda::Driver(), "cuda:GPU-22");
  EXPECT_EQ(gpus[0].uuid, "GPU-22222222-2222-2222-2222-222222222222");
  EXPECT_EQ(gpus[0].pci_address, "0001:db:00.0");
  EXPECT_EQ(TargetOf(gpus[0]), "cuda -arch=sm_70 -max_threads_per_block=512");
  EXPECT_THAT(KeysOf(gpus[0]), ElementsAre("cuda", "cuda/sm_70", "Small GPU", gpus[0].uuid));
  const v1::HardwareParams hardware = HardwareOf(gpus[0]);
  EXPECT_THAT(UnsetFields(hardware), IsEmpty());
  EXPECT_EQ(hardware.num_cores(), -1);
  // The size with opt-in.
  EXPECT_EQ(hardware.max_shared_memory_per_block_bytes(), 232448);
  EXPECT_EQ(hardware.max_local_memory_per_block_bytes(), 2147483647);
  EXPECT_EQ(hardware.max_threads_per_block(), 512);
  EXPECT_EQ(hardware.max_vthread_extent(), 8);
  cuda_.gpus.clear();
  EXPECT_THAT(count("cuda").status(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("no GPU")));
}

}  // namespace
}  // namespace kiln::runner
