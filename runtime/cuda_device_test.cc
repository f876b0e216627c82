// Tests networks on a CUDA driver without a GPU. A graph's kernels run in the worst order that its
// recording allows.
#include <elf.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <future>
#include <numeric>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "runtime/cuda_driver_testing.h"
#include "runtime/executor.h"
#include "runtime/network_testing.h"
#include "runtime/place_buffers.h"

namespace kiln::runtime {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

using testing::HasSubstr;
using Values = std::vector<uint64_t>;

// Elements of every tensor, which takes 64 bytes.
constexpr size_t kElements = 8;

std::string Cubin() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = 190;
  header.e_shentsize = sizeof(Elf64_Shdr);
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

// Computes what kernel "mix" computes when it is launched with `x` blocks.
uint64_t Mix(uint64_t a, uint64_t b, uint64_t x) { return a * 31 + b * 17 + x; }

CuResult RunMix(const FakeLaunch& launch) {
  const auto pointer = [&](int i) {
    return reinterpret_cast<uint64_t*>(FakeParameter<CuPointer>(launch, i));
  };
  for (size_t i = 0; i < kElements; ++i) {
    pointer(2)[i] = Mix(pointer(0)[i], pointer(1)[i], launch.grid[0]);
  }
  return 0;
}

// A network of one kind of kernel. Buffers 0 and 1 are inputs, 2 is a constant (0, 1, 2, ... as
// bytes), and each call adds a buffer that is mixed from two earlier ones.
class MixNetwork {
 public:
  MixNetwork() : cubin_(Cubin()) {
    net_.target = {
        .kind = "cuda", .arch = "sm_90", .device = "Fake GPU", .features = {}, .text = ""};
    net_.binaries = {cubin_};
    net_.buffers = {{.place = Place::kInput, .bytes = 64},
                    {.place = Place::kInput, .bytes = 64},
                    {.place = Place::kConstant, .bytes = 64}};
    net_.inputs = {Tensor("a", 0), Tensor("b", 1)};
  }

  static NetworkTensor Tensor(const std::string& name, int32_t buffer) {
    return {.name = name, .dtype = "int64", .shape = {2, 4}, .buffer = buffer};
  }
  int32_t Add(int32_t a, int32_t b, Place place = Place::kArena) {
    const auto result = static_cast<int32_t>(net_.buffers.size());
    net_.buffers.push_back({.place = place, .bytes = 64});
    NetworkKernel& kernel = net_.kernels.emplace_back();
    kernel.name = fmt::format("mix{}", result);
    kernel.args = {{a, false}, {b, false}, {result, true}};
    NetworkLaunch launch{.symbol = "mix", .args = {0, 1, 2}};
    launch.grid[0] = static_cast<uint32_t>(result);
    kernel.launches = {launch};
    return result;
  }
  void Output(int32_t buffer) {
    net_.outputs.push_back(Tensor(fmt::format("y{}", net_.outputs.size()), buffer));
  }
  Network& net() { return net_; }

  std::shared_ptr<const NetworkFile> File() {
    const auto placed = PlaceBuffers(net_);
    KILN_CHECK(placed.ok(), "{}", Message(placed.status()));
    const auto bytes = FileOf(net_);
    KILN_CHECK(bytes.ok(), "{}", Message(bytes.status()));
    const auto file = NetworkFile::FromBytes(AsBytes(*bytes));
    KILN_CHECK(file.ok(), "{}", Message(file.status()));
    return *file;
  }

  // Computes the outputs kernel by kernel.
  std::vector<Values> Reference(const Values& a, const Values& b) const {
    std::vector<Values> buffers = {a, b, Values(kElements)};
    std::iota(reinterpret_cast<uint8_t*>(buffers[2].data()),
              reinterpret_cast<uint8_t*>(buffers[2].data()) + 64, uint8_t{0});
    for (const NetworkKernel& kernel : net_.kernels) {
      Values result(kElements);
      for (size_t i = 0; i < kElements; ++i) {
        result[i] =
            Mix(buffers[static_cast<size_t>(kernel.args[0].buffer)][i],
                buffers[static_cast<size_t>(kernel.args[1].buffer)][i], kernel.launches[0].grid[0]);
      }
      buffers.push_back(std::move(result));
    }
    std::vector<Values> outputs;
    for (const NetworkTensor& output : net_.outputs) {
      outputs.push_back(buffers[static_cast<size_t>(output.buffer)]);
    }
    return outputs;
  }

 private:
  const std::string cubin_;
  Network net_;
};

class CudaDeviceTest : public testing::Test {
 protected:
  CudaDeviceTest() {
    cuda_.Reset();
    cuda_.kernels["mix"] = {.run = RunMix, .parameters = 3};
    std::iota(a_.begin(), a_.end(), 100);
    std::iota(b_.begin(), b_.end(), 7000);
  }
  ~CudaDeviceTest() override {
    EXPECT_EQ(cuda_.contexts, 0);
    EXPECT_EQ(cuda_.pushed_contexts, 0);
    EXPECT_EQ(cuda_.modules, 0);
    EXPECT_EQ(cuda_.streams, 0);
    EXPECT_EQ(cuda_.events, 0);
  }

  static StatusOr<std::unique_ptr<Executor>> Load(MixNetwork& mix, int streams = 4, int gpu = 0) {
    return Executor::Load(mix.File(),
                          {.gpu = gpu, .streams = streams, .driver = &FakeCuda::Driver()});
  }

  // Returns the caller's device memory with these values.
  static uint64_t* OnGpu(const Values& values) {
    CuPointer block = 0;
    KILN_CHECK(FakeCuda::Driver().MemAlloc(&block, 64) == 0);
    auto* pointer = reinterpret_cast<uint64_t*>(block);
    std::copy(values.begin(), values.end(), pointer);
    return pointer;
  }
  static void Free(const void* pointer) {
    FakeCuda::Driver().MemFree(reinterpret_cast<CuPointer>(pointer));
  }

  // Runs the executor with host memory.
  StatusOr<std::vector<Values>> Run(Executor& executor) const {
    std::vector<Values> outputs(executor.outputs().size(), Values(kElements));
    std::vector<void*> pointers;
    for (Values& output : outputs) pointers.push_back(output.data());
    const void* inputs[] = {a_.data(), b_.data()};
    KILN_RETURN_IF_ERROR(executor.Run(inputs, pointers));
    return outputs;
  }

  FakeCuda& cuda_ = FakeCuda::Get();
  Values a_ = Values(kElements);
  Values b_ = Values(kElements);
};

// a, b -> c -> (d, e) -> y. c is an output, too, and e is read from the arena.
MixNetwork Diamond() {
  MixNetwork mix;
  const int32_t c = mix.Add(0, 1);
  const int32_t d = mix.Add(c, 2), e = mix.Add(1, c);
  mix.Output(mix.Add(d, e, Place::kOutput));
  mix.Output(c);
  return mix;
}

TEST_F(CudaDeviceTest, RunsWithHostMemory) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  for (int i = 0; i < 3; ++i) {
    a_[0] = static_cast<uint64_t>(i);
    ASSERT_OK_AND_ASSIGN(const auto outputs, Run(*executor));
    EXPECT_EQ(outputs, mix.Reference(a_, b_));
  }
  EXPECT_EQ(cuda_.graphs, 1);
  EXPECT_EQ(cuda_.graph_launches, 3);
  EXPECT_EQ(executor->memory_use().constants, 64);
  EXPECT_EQ(executor->memory_use().staging, 3 * 64);
  // One stream runs, two record.
  EXPECT_GE(cuda_.streams, 3);
  executor.reset();
  EXPECT_TRUE(cuda_.memory.empty());
}

TEST_F(CudaDeviceTest, MemoryUseWaitsForTheRunThatMayAllocate) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  std::future<MemoryUse> use;
  cuda_.kernels["mix"].run = [&](const FakeLaunch& launch) {
    if (!use.valid()) {
      use = std::async(std::launch::async, [&] { return executor->memory_use(); });
      EXPECT_EQ(use.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    }
    return RunMix(launch);
  };
  ASSERT_OK(Run(*executor).status());
  EXPECT_EQ(use.get().staging, 3 * 64);
}

// Makes all kernels wait by themselves for the kernel before them.
void DelayKernels(MixNetwork& mix) {
  for (NetworkKernel& kernel : mix.net().kernels) kernel.launches[0].waits_for_previous = true;
}

TEST_F(CudaDeviceTest, KernelsThatWaitByThemselvesAreLaunchedEarlyBehindAnother) {
  MixNetwork mix = Diamond();
  DelayKernels(mix);
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix, 1));
  ASSERT_OK_AND_ASSIGN(const auto outputs, Run(*executor));
  EXPECT_EQ(outputs, mix.Reference(a_, b_));
  EXPECT_EQ(cuda_.early_launches, 3) << "all but the first";
}

TEST_F(CudaDeviceTest, NoKernelIsLaunchedEarlyThatWaitsForAnotherStream) {
  MixNetwork mix = Diamond();
  DelayKernels(mix);
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix, 2));
  ASSERT_OK_AND_ASSIGN(const auto outputs, Run(*executor));
  EXPECT_EQ(outputs, mix.Reference(a_, b_));
  EXPECT_EQ(cuda_.early_launches, 1) << "one branch goes on in the stream of the first kernel";
}

// Each plan has a reading of one run and three more, and branches come first. The number of kernels
// that are launched early shows which plan was chosen.
TEST_F(CudaDeviceTest, BranchesRunBesideEachOtherWhereThatIsFaster) {
  MixNetwork mix = Diamond();
  DelayKernels(mix);
  const auto early = [&](std::deque<float> elapsed_ms) {
    cuda_.elapsed_ms = std::move(elapsed_ms);
    auto executor = Load(mix, 0);
    KILN_CHECK(executor.ok(), "{}", Message(executor.status()));
    EXPECT_TRUE(cuda_.elapsed_ms.empty());
    EXPECT_EQ((*executor)->memory_use().staging, 0);
    cuda_.early_launches = 0;
    const auto outputs = Run(**executor);
    EXPECT_TRUE(outputs.ok() && *outputs == mix.Reference(a_, b_));
    return cuda_.early_launches;
  };
  EXPECT_EQ(early({4, 4, 3, 4, 4, 4, 4, 4}), 1);
  EXPECT_EQ(early({4, 4, 4, 4, 4, 3, 4, 4}), 3);
}

// The constant has 64 bytes.
TEST_F(CudaDeviceTest, ConstantsThatDoNotFitTheCacheAreStreamed) {
  MixNetwork mix = Diamond();
  mix.Output(mix.Add(2, 0, Place::kOutput));
  const auto windows = [&](int l2_bytes, int most_bytes) {
    cuda_.gpus[0].attributes = {{kCuL2CacheBytes, l2_bytes},
                                {kCuMaxAccessPolicyWindowBytes, most_bytes}};
    cuda_.windows.clear();
    auto executor = Load(mix, 1);
    KILN_CHECK(executor.ok(), "{}", Message(executor.status()));
    const auto outputs = Run(**executor);
    EXPECT_TRUE(outputs.ok() && *outputs == mix.Reference(a_, b_));
    return cuda_.windows;
  };
  EXPECT_THAT(windows(128, 1 << 20), IsEmpty());
  EXPECT_THAT(windows(100, 0), IsEmpty()) << "a GPU that can't do it";
  EXPECT_THAT(windows(100, 32), Each(Field(&CuAccessPolicyWindow::bytes, 32u)));
  EXPECT_THAT(
      windows(100, 1 << 20),
      AllOf(Not(IsEmpty()), Each(AllOf(Field(&CuAccessPolicyWindow::bytes, 64u),
                                       Field(&CuAccessPolicyWindow::hit, kCuAccessStreaming)))));
}

TEST_F(CudaDeviceTest, DriversThatLaunchNothingEarlyLaunchItAll) {
  MixNetwork mix = Diamond();
  DelayKernels(mix);
  CudaDriver driver = FakeCuda::Driver();
  driver.LaunchKernelEx = nullptr;
  ASSERT_OK_AND_ASSIGN(auto executor,
                       Executor::Load(mix.File(), {.streams = 1, .driver = &driver}));
  ASSERT_OK_AND_ASSIGN(const auto outputs, Run(*executor));
  EXPECT_EQ(outputs, mix.Reference(a_, b_));
}

TEST_F(CudaDeviceTest, UsesGpuMemoryWhereItIs) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  const uint64_t *a = OnGpu(a_), *b = OnGpu(b_);
  uint64_t *y = OnGpu(Values(kElements)), *c = OnGpu(Values(kElements));
  const void* inputs[] = {a, b};
  void* outputs[] = {y, c};
  ASSERT_OK(executor->Run(inputs, outputs));
  const auto want = mix.Reference(a_, b_);
  EXPECT_EQ(Values(y, y + kElements), want[0]);
  EXPECT_EQ(Values(c, c + kElements), want[1]);
  EXPECT_EQ(executor->memory_use().staging, 0);
  // The same memory needs no other graph. Other memory needs one, and no further graph is needed
  // for either afterwards.
  ASSERT_OK(executor->Run(inputs, outputs));
  EXPECT_EQ(cuda_.graphs, 1);
  std::swap(inputs[0], inputs[1]);
  ASSERT_OK(executor->Run(inputs, outputs));
  EXPECT_EQ(Values(y, y + kElements), mix.Reference(b_, a_)[0]);
  EXPECT_EQ(cuda_.graphs, 2);
  std::swap(inputs[0], inputs[1]);
  ASSERT_OK(executor->Run(inputs, outputs));
  EXPECT_EQ(Values(y, y + kElements), want[0]);
  EXPECT_EQ(cuda_.graphs, 2);
  for (const uint64_t* pointer :
       {a, b, static_cast<const uint64_t*>(y), static_cast<const uint64_t*>(c)})
    Free(pointer);
}

TEST_F(CudaDeviceTest, CopiesWhatIsNotAligned) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  CuPointer block = 0;
  ASSERT_EQ(FakeCuda::Driver().MemAlloc(&block, 256), 0);
  auto* a = reinterpret_cast<uint64_t*>(block + 8);
  auto* y = reinterpret_cast<uint64_t*>(block + 136);
  std::copy(a_.begin(), a_.end(), a);
  Values c(kElements);
  const void* inputs[] = {a, b_.data()};
  void* outputs[] = {y, c.data()};
  ASSERT_OK(executor->Run(inputs, outputs));
  EXPECT_EQ(Values(y, y + kElements), mix.Reference(a_, b_)[0]);
  EXPECT_EQ(c, mix.Reference(a_, b_)[1]);
  FakeCuda::Driver().MemFree(block);
}

TEST_F(CudaDeviceTest, QueuesIntoTheCallersStreamAndWaitsForNothing) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  const uint64_t *a = OnGpu(a_), *b = OnGpu(b_);
  uint64_t *y = OnGpu(Values(kElements)), *c = OnGpu(Values(kElements));
  const void* inputs[] = {a, b};
  void* outputs[] = {y, c};
  CuStream stream = nullptr;
  ASSERT_EQ(FakeCuda::Driver().StreamCreate(&stream, 0), 0);
  const int waits = cuda_.waits, allocations = cuda_.allocations;
  for (int i = 0; i < 3; ++i) ASSERT_OK(executor->Queue(inputs, outputs, stream));
  EXPECT_EQ(Values(y, y + kElements), mix.Reference(a_, b_)[0]);
  EXPECT_EQ(Values(c, c + kElements), mix.Reference(a_, b_)[1]);
  EXPECT_EQ(cuda_.waits, waits);
  EXPECT_EQ(cuda_.context_waits, 0);
  EXPECT_EQ(cuda_.allocations, allocations);
  EXPECT_EQ(cuda_.graphs, 1);
  EXPECT_EQ(cuda_.graph_launches, 3) << "more kernels than are launched one by one";
  EXPECT_EQ(cuda_.event_waits, 2) << "the runs share the arena";
  // A run that waits for its own end waits for the others, too.
  ASSERT_OK(executor->Run(inputs, outputs));
  EXPECT_EQ(cuda_.event_waits, 3);
  executor.reset();
  EXPECT_EQ(cuda_.context_waits, 1) << "nothing is freed while kernels run";
  FakeCuda::Driver().StreamDestroy(stream);
  for (const void* pointer :
       {inputs[0], inputs[1], static_cast<const void*>(y), static_cast<const void*>(c)})
    Free(pointer);
}

TEST_F(CudaDeviceTest, TheRunAfterAQueuedRunThatFailedWaitsForTheKernelsOfThatRun) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  const uint64_t *a = OnGpu(a_), *b = OnGpu(b_);
  uint64_t *y = OnGpu(Values(kElements)), *c = OnGpu(Values(kElements));
  const void* inputs[] = {a, b};
  void* outputs[] = {y, c};
  cuda_.device_copy_result = 1;
  EXPECT_THAT(executor->Queue(inputs, outputs, nullptr),
              StatusIs(StatusCode::kInternal, HasSubstr("output 'y1': cannot copy memory")));
  EXPECT_EQ(cuda_.graph_launches, 1);
  EXPECT_EQ(cuda_.event_records, 1);
  EXPECT_EQ(cuda_.event_waits, 0);
  cuda_.device_copy_result = 0;
  ASSERT_OK(executor->Queue(inputs, outputs, nullptr));
  EXPECT_EQ(cuda_.event_waits, 1);
  EXPECT_EQ(Values(c, c + kElements), mix.Reference(a_, b_)[1]);
  for (const void* pointer :
       {inputs[0], inputs[1], static_cast<const void*>(y), static_cast<const void*>(c)})
    Free(pointer);
}

TEST_F(CudaDeviceTest, FewKernelsAreLaunchedOneByOneAndRunsThatShareNothingDoNotWait) {
  MixNetwork mix;
  mix.Output(mix.Add(0, 1, Place::kOutput));
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  const uint64_t *a = OnGpu(a_), *b = OnGpu(b_);
  uint64_t* y = OnGpu(Values(kElements));
  const void* inputs[] = {a, b};
  void* outputs[] = {y};
  for (int i = 0; i < 3; ++i) ASSERT_OK(executor->Queue(inputs, outputs, nullptr));
  EXPECT_EQ(Values(y, y + kElements), mix.Reference(a_, b_)[0]);
  EXPECT_EQ(cuda_.graphs, 0);
  EXPECT_EQ(cuda_.event_waits, 0);
  EXPECT_EQ(cuda_.event_records, 0);
  for (const void* pointer : {inputs[0], inputs[1], static_cast<const void*>(y)}) Free(pointer);
}

// The kernel adds the first element of its input, which it finds by a tensor map, and the blocks.
CuResult RunOfMap(const FakeLaunch& launch) {
  const auto map = FakeParameter<CuTensorMap>(launch, 1);
  auto* result = reinterpret_cast<uint64_t*>(FakeParameter<CuPointer>(launch, 0));
  result[0] = *reinterpret_cast<const uint64_t*>(map.words[0]) + launch.grid[0];
  return 0;
}

TEST_F(CudaDeviceTest, TensorMapsAreEncodedWhenTheirArrayMoves) {
  cuda_.kernels["map"] = {.run = RunOfMap, .parameters = 1, .tensor_maps = 1};
  MixNetwork mix;
  mix.Output(mix.Add(0, 1, Place::kOutput));
  NetworkLaunch& launch = mix.net().kernels[0].launches[0];
  launch.symbol = "map";
  launch.args = {2};
  launch.tensor_maps = {
      {.arg = 0, .element_bytes = 4, .extents = {16}, .strides = {}, .box = {16}}};
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  uint64_t* y = OnGpu(Values(kElements));
  const uint64_t *a = OnGpu(a_), *b = OnGpu(b_);
  void* outputs[] = {y};
  const auto encoded_by_queuing = [&](const uint64_t* input) {
    const void* inputs[] = {input, b};
    const int so_far = cuda_.encoded_maps;
    EXPECT_OK(executor->Queue(inputs, outputs, nullptr));
    EXPECT_EQ(y[0], input[0] + launch.grid[0]);
    return cuda_.encoded_maps - so_far;
  };
  EXPECT_EQ(encoded_by_queuing(a), 1);
  EXPECT_EQ(encoded_by_queuing(a), 0);
  EXPECT_EQ(encoded_by_queuing(b), 1);
  EXPECT_EQ(encoded_by_queuing(a), 1);
  for (const uint64_t* pointer : {a, b, static_cast<const uint64_t*>(y)}) Free(pointer);
}

TEST_F(CudaDeviceTest, ARunIsRecordedIntoAGraphOfTheCallers) {
  const CudaDriver& driver = FakeCuda::Driver();
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  uint64_t *a = OnGpu(a_), *b = OnGpu(b_);
  uint64_t *y = OnGpu(Values(kElements)), *c = OnGpu(Values(kElements));
  const void* inputs[] = {a, b};
  void* outputs[] = {y, c};
  CuStream stream = nullptr;
  ASSERT_EQ(driver.StreamCreate(&stream, 0), 0);
  // A run before, of which the recording must not depend.
  ASSERT_OK(executor->Queue(inputs, outputs, stream));
  std::fill(y, y + kElements, 0);
  ASSERT_EQ(driver.StreamBeginCapture(stream, 0), 0);
  ASSERT_OK(executor->Queue(inputs, outputs, stream));
  CuGraph graph = nullptr;
  ASSERT_EQ(driver.StreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(Values(y, y + kElements), Values(kElements)) << "nothing has run";
  CuGraphExec exec = nullptr;
  ASSERT_EQ(driver.GraphInstantiate(&exec, graph, 0), 0);
  for (uint64_t first : {5, 6}) {
    a[0] = a_[0] = first;
    ASSERT_EQ(driver.GraphLaunch(exec, stream), 0);
    EXPECT_EQ(Values(y, y + kElements), mix.Reference(a_, b_)[0]);
    EXPECT_EQ(Values(c, c + kElements), mix.Reference(a_, b_)[1]);
  }
  driver.GraphExecDestroy(exec);
  driver.GraphDestroy(graph);
  driver.StreamDestroy(stream);
  for (uint64_t* pointer : {a, b, y, c}) Free(pointer);
}

TEST_F(CudaDeviceTest, MemoryThatIsNotAlignedIsCopiedInTheCallersStream) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  CuPointer block = 0;
  ASSERT_EQ(FakeCuda::Driver().MemAlloc(&block, 512), 0);
  auto *a = reinterpret_cast<uint64_t*>(block + 8), *b = reinterpret_cast<uint64_t*>(block + 128);
  auto *y = reinterpret_cast<uint64_t*>(block + 264), *c = reinterpret_cast<uint64_t*>(block + 384);
  std::copy(a_.begin(), a_.end(), a);
  std::copy(b_.begin(), b_.end(), b);
  const void* inputs[] = {a, b};
  void* outputs[] = {y, c};
  const int waits = cuda_.waits;
  ASSERT_OK(executor->Queue(inputs, outputs, nullptr));
  const int allocations = cuda_.allocations;
  ASSERT_OK(executor->Queue(inputs, outputs, nullptr));
  EXPECT_EQ(Values(y, y + kElements), mix.Reference(a_, b_)[0]);
  EXPECT_EQ(Values(c, c + kElements), mix.Reference(a_, b_)[1]);
  EXPECT_EQ(cuda_.allocations, allocations);
  EXPECT_EQ(cuda_.waits, waits);
  FakeCuda::Driver().MemFree(block);
}

TEST_F(CudaDeviceTest, OutputsOfEveryPlace) {
  MixNetwork mix;
  const int32_t y = mix.Add(0, 1, Place::kOutput);
  const int32_t middle = mix.Add(y, 2);
  mix.Add(middle, 2);
  mix.Output(y);
  mix.Output(y);
  mix.Output(middle);
  mix.Output(0);
  mix.Output(2);
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  ASSERT_OK_AND_ASSIGN(const auto outputs, Run(*executor));
  EXPECT_EQ(outputs, mix.Reference(a_, b_));
}

TEST_F(CudaDeviceTest, ManyGraphsArePruned) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  std::vector<uint64_t*> inputs;
  for (int i = 0; i < 12; ++i) inputs.push_back(OnGpu(a_));
  Values y(kElements), c(kElements);
  void* outputs[] = {y.data(), c.data()};
  for (int round = 0; round < 2; ++round) {
    for (const uint64_t* input : inputs) {
      const void* pointers[] = {input, b_.data()};
      ASSERT_OK(executor->Run(pointers, outputs));
      EXPECT_EQ(y, mix.Reference(a_, b_)[0]);
    }
  }
  for (const uint64_t* input : inputs) Free(input);
}

TEST_F(CudaDeviceTest, RandomNetworksComputeTheSameInAnyOrder) {
  int concurrent = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    MixNetwork mix;
    for (int64_t i = UniformIn(rng, 1, 25); i > 0; --i) {
      const auto count = static_cast<int64_t>(mix.net().buffers.size());
      // Picks late buffers mostly, so that memory is used again.
      const auto pick = [&] {
        return static_cast<int32_t>(Chance(rng, 0.7)
                                        ? UniformIn(rng, std::max<int64_t>(0, count - 4), count - 1)
                                        : UniformInt(rng, count));
      };
      const int32_t a = pick(), b = pick();
      const int32_t added = mix.Add(a, b);
      if (Chance(rng, 0.2)) {
        mix.net().buffers.back().place = Place::kOutput;
        mix.Output(added);
      }
    }
    mix.Output(static_cast<int32_t>(mix.net().buffers.size()) - 1);
    ASSERT_OK_AND_ASSIGN(auto executor, Load(mix, static_cast<int>(UniformIn(rng, 1, 4))));
    concurrent += cuda_.streams > 2;
    for (int run = 0; run < 2; ++run) {
      ASSERT_OK_AND_ASSIGN(const auto outputs, Run(*executor));
      ASSERT_EQ(outputs, mix.Reference(a_, b_)) << "seed " << seed;
    }
  }
  EXPECT_GT(concurrent, 30);
}

TEST_F(CudaDeviceTest, TimesRunsAndKernels) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  // The fake's clock shows 2 ms between any two events.
  ASSERT_OK_AND_ASSIGN(const auto seconds,
                       executor->Bench({.warmup = 1, .repeat = 3, .number = 4}));
  EXPECT_THAT(seconds, testing::Each(testing::DoubleNear(0.5e-3, 1e-9)));
  EXPECT_EQ(seconds.size(), 3u);
  ASSERT_OK_AND_ASSIGN(const auto kernels, executor->Profile(10));
  EXPECT_THAT(kernels, testing::Each(testing::DoubleNear(0.2e-3, 1e-9)));
  EXPECT_EQ(kernels.size(), 4u);
  const int events = cuda_.events;
  ASSERT_OK_AND_ASSIGN(const auto spans, executor->TraceRun());
  ASSERT_EQ(spans.size(), 4u);
  for (size_t k = 0; k < spans.size(); ++k) {
    EXPECT_NEAR(spans[k].begin_s, 2e-3 * static_cast<double>(k), 1e-9);
    EXPECT_NEAR(spans[k].end_s, 2e-3 * static_cast<double>(k + 1), 1e-9);
  }
  EXPECT_EQ(cuda_.events, events);
  EXPECT_THAT(executor->Bench({.repeat = 0}), StatusIs(StatusCode::kInvalidArgument, testing::_));
  // Runs are still right afterwards.
  ASSERT_OK_AND_ASSIGN(const auto outputs, Run(*executor));
  EXPECT_EQ(outputs, mix.Reference(a_, b_));
}

TEST_F(CudaDeviceTest, RefusesOtherGpus) {
  MixNetwork mix = Diamond();
  mix.net().target.arch = "sm_80";
  mix.net().target.device = "NVIDIA A100";
  EXPECT_THAT(Load(mix),
              StatusIs(StatusCode::kFailedPrecondition,
                       "the file was compiled for GPUs of sm_80 (NVIDIA A100), and GPU 0 here is "
                       "Fake GPU of sm_90: compile it again for 'cuda -arch=sm_90'"));
  mix.net().target.arch = "sm_90a";
  EXPECT_OK(Load(mix));
  EXPECT_THAT(Load(mix, 4, 1),
              StatusIs(StatusCode::kNotFound, "there is no GPU 1, expected 0 to 0"));
}

TEST_F(CudaDeviceTest, RefusesMemoryOfAnotherGpu) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  const uint64_t* a = OnGpu(a_);
  cuda_.memory_ordinal = 1;
  Values y(kElements), c(kElements);
  const void* inputs[] = {a, b_.data()};
  void* outputs[] = {y.data(), c.data()};
  EXPECT_THAT(executor->Run(inputs, outputs),
              StatusIs(StatusCode::kInvalidArgument,
                       "the memory of 'a' is on GPU 1, and the network on GPU 0"));
  Free(a);
}

TEST_F(CudaDeviceTest, RefusesWrongPointers) {
  MixNetwork mix = Diamond();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  Values y(kElements);
  const void* inputs[] = {a_.data(), b_.data()};
  void* one[] = {y.data()};
  void* null[] = {y.data(), nullptr};
  EXPECT_THAT(executor->Run(inputs, one).ToString(),
              HasSubstr("1 outputs given, the network has 2"));
  EXPECT_THAT(executor->Run(inputs, null).ToString(),
              HasSubstr("the pointer to 'y1' (outputs 1) is null"));
}

TEST_F(CudaDeviceTest, LoadingSaysWhatDoesNotFit) {
  MixNetwork mix = Diamond();
  mix.net().kernels[0].launches[0].block[0] = 2048;
  EXPECT_THAT(Load(mix).status().ToString(), HasSubstr("kernel 'mix': block extent x is 2048"));
  mix.net().kernels[0].launches[0].block[0] = 1;
  mix.net().kernels[0].launches[0].symbol = "none";
  EXPECT_THAT(Load(mix).status().ToString(), HasSubstr("kernel 'none': the cubin has no such"));
  mix.net().kernels[0].launches[0].symbol = "mix";
  cuda_.free_bytes = 10;
  EXPECT_THAT(Load(mix), StatusIs(StatusCode::kResourceExhausted,
                                  HasSubstr("bytes of GPU memory for buffers")));
}

TEST_F(CudaDeviceTest, AFaultIsAnError) {
  MixNetwork mix = Diamond();
  cuda_.kernels["mix"].run = [](const FakeLaunch&) { return 700; };
  ASSERT_OK_AND_ASSIGN(auto executor, Load(mix));
  EXPECT_THAT(Run(*executor), StatusIs(StatusCode::kInternal, HasSubstr("(700)")));
  EXPECT_FALSE(Run(*executor).ok());
}

}  // namespace
}  // namespace kiln::runtime
