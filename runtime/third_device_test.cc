// A third kind of device, whole in one file: its memory, its binaries, its kernels and its row. It
// shows that executors, tensors and the C interface work with a device that they do not know.
//
// The device has memory that the host must not touch: the addresses that it gives are not mapped.
// Copies and launches are only queued, and are done by Synchronize. Kernels are host functions.
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "runtime/c_api.h"
#include "runtime/executor.h"
#include "runtime/kernel_by_kernel_device.h"
#include "runtime/network_testing.h"
#include "runtime/place_buffers.h"

namespace kiln::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// The devices' memory, and counts of what they have done.
struct Board {
  std::map<uintptr_t, std::vector<std::byte>> memory;
  uintptr_t next = uintptr_t{1} << 60;
  int entered = 0;
  int launches = 0;

  // Returns the host's address of the device's `address`, or null.
  std::byte* Find(const void* address) {
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    const auto after = memory.upper_bound(wanted);
    if (after == memory.begin()) return nullptr;
    auto& [begin, bytes] = *std::prev(after);
    return wanted < begin + bytes.size() ? bytes.data() + (wanted - begin) : nullptr;
  }
  void* Allocate(int64_t bytes) {
    const uintptr_t address = next;
    next += static_cast<uintptr_t>(bytes + 4095) / 4096 * 4096 + 4096;
    memory[address].resize(static_cast<size_t>(bytes));
    return reinterpret_cast<void*>(address);
  }
};

Board& TheBoard() {
  static Board board;
  return board;
}

// The small network's first kernel adds four floats into the halves of a block of eight. Its second
// multiplies the view that is the upper half with the first byte of a constant.
using HostKernel = void (*)(std::span<std::byte* const> args);
void Add(std::span<std::byte* const> args) {
  const auto* x = reinterpret_cast<const float*>(args[0]);
  const auto* w = reinterpret_cast<const uint8_t*>(args[1]);
  auto* sum = reinterpret_cast<float*>(args[2]);
  for (int i = 0; i < 8; ++i) sum[i] = x[i % 4] + static_cast<float>(w[i % 4] + 10 * (i / 4));
}
void Multiply(std::span<std::byte* const> args) {
  const auto* x = reinterpret_cast<const float*>(args[0]);
  const auto* w = reinterpret_cast<const uint8_t*>(args[1]);
  auto* y = reinterpret_cast<float*>(args[2]);
  for (int i = 0; i < 4; ++i) y[i] = x[i] * static_cast<float>(w[2]);
}
constexpr std::pair<std::string_view, HostKernel> kSymbols[] = {{"add", Add},
                                                                {"multiply", Multiply}};

constexpr std::string_view kBinary =
    "\x7f"
    "ELF of a third device";

class ThirdDevice : public KernelByKernelDevice {
 public:
  int number() const override { return 5; }
  void Enter() override { ++TheBoard().entered; }
  void Leave() override { --TheBoard().entered; }
  int64_t alignment_bytes() const override { return 128; }
  StatusOr<void*> Allocate(int64_t bytes, std::string_view purpose) override {
    if (bytes > 1 << 20) return ResourceExhausted("no {} bytes for {}", bytes, purpose);
    return TheBoard().Allocate(bytes);
  }
  void Free(void* memory, int64_t) override {
    EXPECT_GT(TheBoard().entered, 0);
    EXPECT_EQ(TheBoard().memory.erase(reinterpret_cast<uintptr_t>(memory)), 1u);
  }
  StatusOr<bool> Reaches(const void* pointer, std::string_view) const override {
    return TheBoard().Find(pointer) != nullptr;
  }
  Status Copy(void* to, const void* from, int64_t bytes, CopyPath path) override {
    queue_.push_back([=] {
      void* target = path == CopyPath::kFromDevice ? to : TheBoard().Find(to);
      const void* source = path == CopyPath::kToDevice ? from : TheBoard().Find(from);
      std::memcpy(target, source, static_cast<size_t>(bytes));
    });
    return OkStatus();
  }
  Status LoadBinary(std::string_view binary) override {
    if (binary == kBinary) return OkStatus();
    return InvalidArgument("the binary is for another device");
  }
  Status LoadKernel(const NetworkKernel& kernel) override {
    for (const auto& [name, function] : kSymbols) {
      if (name == kernel.launches[0].symbol) kernels_.push_back(function);
    }
    return OkStatus();
  }
  Status Synchronize(std::string_view) override {
    for (const auto& work : queue_) work();
    queue_.clear();
    return OkStatus();
  }

 private:
  Status LaunchKernel(size_t kernel, std::span<void* const> args) override {
    queue_.push_back([=, this, args = std::vector<void*>(args.begin(), args.end())] {
      std::vector<std::byte*> host;
      for (const void* arg : args) host.push_back(TheBoard().Find(arg));
      kernels_[kernel](host);
      ++TheBoard().launches;
    });
    return OkStatus();
  }

  std::vector<HostKernel> kernels_;
  std::vector<std::function<void()>> queue_;
};

constexpr int32_t kType = 77, kHostType = 78;
constexpr int32_t kHostTypes[] = {kHostType};

const NetworkDeviceKind kThird = {
    .target = "third",
    .noun = "board",
    .is_numbered = true,
    .dl_type = kType,
    .host_dl_types = kHostTypes,
    .open = [](const Network& network,
               const ExecutorOptions&) -> StatusOr<std::unique_ptr<NetworkDevice>> {
      if (network.target.arch == "t1") return std::make_unique<ThirdDevice>();
      return FailedPrecondition("the file was compiled for board {}, this one is t1",
                                network.target.arch);
    }};
constexpr const NetworkDeviceKind* kKinds[] = {&kCpuDevice, &kThird};

class ThirdDeviceTest : public testing::Test {
 protected:
  ThirdDeviceTest() : folder_(*TempDir::Make("kiln_third")), network_(SmallNetwork()) {
    network_.target = {
        .kind = "third", .arch = "t1", .device = "board", .features = {}, .text = "third"};
    network_.binaries = {kBinary};
    network_.kernels[0].launches[0].symbol = "add";
    network_.kernels[1].launches[0].symbol = "multiply";
    TheBoard() = {};
  }
  ~ThirdDeviceTest() override {
    EXPECT_EQ(TheBoard().entered, 0);
    EXPECT_THAT(TheBoard().memory, SizeIs(callers_));
  }

  StatusOr<std::string> Write() {
    KILN_RETURN_IF_ERROR(PlaceBuffers(network_).status());
    KILN_ASSIGN_OR_RETURN(const std::string bytes, FileOf(network_));
    const std::string path = folder_.Join("net.kiln");
    KILN_RETURN_IF_ERROR(WriteFile(path, bytes));
    return path;
  }
  StatusOr<std::unique_ptr<Executor>> Load() {
    KILN_ASSIGN_OR_RETURN(const std::string path, Write());
    return Executor::Load(path, {.kinds = kKinds});
  }
  // Returns the caller's memory on the board.
  void* OnBoard(int64_t bytes) {
    ++callers_;
    return TheBoard().Allocate(bytes);
  }

  TempDir folder_;
  Network network_;
  size_t callers_ = 0;
  const std::vector<float> x_ = {1, 2, 3, 4};
  // (x + w + 10) * 2 with the constants 0, 1, 2, ... of FileOf.
  const std::vector<float> wanted_ = {22, 26, 30, 34};
};

TEST_F(ThirdDeviceTest, RunsWithMemoryOfTheHost) {
  ASSERT_OK_AND_ASSIGN(const auto executor, Load());
  EXPECT_EQ(executor->device(), (DlDevice{kType, 5}));
  std::vector<float> y(4);
  const void* inputs[] = {x_.data()};
  void* outputs[] = {y.data()};
  for (int run = 0; run < 2; ++run) {
    y.assign(4, 0);
    ASSERT_OK(executor->Run(inputs, outputs));
    EXPECT_EQ(y, wanted_);
  }
  EXPECT_EQ(TheBoard().launches, 4);
  EXPECT_EQ(executor->memory_use().staging, 32);
}

TEST_F(ThirdDeviceTest, UsesItsOwnMemoryInPlace) {
  ASSERT_OK_AND_ASSIGN(const auto executor, Load());
  void* x = OnBoard(16);
  std::memcpy(TheBoard().Find(x), x_.data(), 16);
  void* y = OnBoard(32);
  const void* inputs[] = {x};
  void* outputs[] = {y};
  ASSERT_OK(executor->Run(inputs, outputs));
  EXPECT_EQ(std::memcmp(TheBoard().Find(y), wanted_.data(), 16), 0);
  EXPECT_EQ(executor->memory_use().staging, 0);
  // An output at an odd address is copied on the board.
  outputs[0] = static_cast<std::byte*>(y) + 4;
  ASSERT_OK(executor->Run(inputs, outputs));
  EXPECT_EQ(std::memcmp(TheBoard().Find(outputs[0]), wanted_.data(), 16), 0);
  EXPECT_EQ(executor->memory_use().staging, 16);
}

TEST_F(ThirdDeviceTest, IsTimedByTheHostsClock) {
  ASSERT_OK_AND_ASSIGN(const auto executor, Load());
  ASSERT_OK_AND_ASSIGN(const auto runs, executor->Bench({.warmup = 1, .repeat = 3, .number = 4}));
  EXPECT_THAT(runs, SizeIs(3));
  EXPECT_EQ(TheBoard().launches, 2 * (1 + 3 * 4));
  ASSERT_OK_AND_ASSIGN(const auto kernels, executor->Profile(10));
  EXPECT_THAT(kernels, ElementsAre(testing::Gt(0), testing::Gt(0)));
  ASSERT_OK_AND_ASSIGN(const auto in_network, executor->ProfileInNetwork(10));
  EXPECT_THAT(in_network, ElementsAre(testing::Gt(0), testing::Gt(0)));
  ASSERT_OK_AND_ASSIGN(const auto spans, executor->TraceRun());
  ASSERT_THAT(spans, SizeIs(2));
  EXPECT_GE(spans[0].begin_s, 0);
  EXPECT_GT(spans[0].end_s, spans[0].begin_s);
  EXPECT_GE(spans[1].begin_s, spans[0].end_s);
  EXPECT_GT(spans[1].end_s, spans[1].begin_s);
}

TEST_F(ThirdDeviceTest, SaysWhatItCannotRun) {
  network_.buffers[3].alignment_bytes = 256;
  EXPECT_THAT(Load().status().ToString(), HasSubstr("at most 128 are possible for the third"));
  network_.buffers[3].alignment_bytes = 64;
  network_.target.arch = "t2";
  EXPECT_THAT(Load().status().ToString(), HasSubstr("compiled for board t2, this one is t1"));
  network_.target.kind = "fourth";
  EXPECT_THAT(Load().status().ToString(),
              HasSubstr("for the fourth target, and networks run on cpu or third only"));
  network_.target = {.kind = "third", .arch = "t1", .device = "", .features = {}, .text = ""};
  network_.binaries = {
      "\x7f"
      "ELF of another"};
  EXPECT_THAT(Load().status().ToString(), HasSubstr("the binary is for another device"));
  ASSERT_OK_AND_ASSIGN(const std::string path, Write());
  EXPECT_THAT(Executor::Load(path).status().ToString(),
              HasSubstr("for the third target, and networks run on cpu or cuda only"));
}

TEST_F(ThirdDeviceTest, CAndDlpackKnowItByItsRow) {
  ASSERT_OK_AND_ASSIGN(const std::string path, Write());
  ASSERT_OK_AND_ASSIGN(KilnNetwork * net, LoadNetwork(path.c_str(), nullptr, kKinds));
  EXPECT_EQ(kiln_device(net).device_type, kType);
  EXPECT_EQ(kiln_device(net).device_id, 5);
  int64_t x_shape[] = {4}, y_shape[] = {2, 2};
  std::vector<float> values = x_, result(4);
  void* on_board = OnBoard(16);
  KilnDLTensor x = {.data = values.data(),
                    .device = {kHostType, 0},
                    .ndim = 1,
                    .dtype = {2, 32, 1},
                    .shape = x_shape,
                    .strides = nullptr,
                    .byte_offset = 0};
  KilnDLTensor y = {.data = on_board,
                    .device = {kType, 5},
                    .ndim = 2,
                    .dtype = {2, 32, 1},
                    .shape = y_shape,
                    .strides = nullptr,
                    .byte_offset = 0};
  const KilnDLTensor *inputs[] = {&x}, *outputs[] = {&y};
  ASSERT_EQ(kiln_run_tensors(net, inputs, 1, outputs, 1), 0) << kiln_last_error();
  EXPECT_EQ(std::memcmp(TheBoard().Find(on_board), wanted_.data(), 16), 0);
  y.device.device_id = 4;
  EXPECT_EQ(kiln_run_tensors(net, inputs, 1, outputs, 1), -1);
  EXPECT_STREQ(kiln_last_error(), "tensor 'y': it is on board 4, and the network runs on board 5");
  y = x;
  y.data = result.data();
  y.device = {1, 0};
  y.shape = y_shape;
  y.ndim = 2;
  ASSERT_EQ(kiln_run_tensors(net, inputs, 1, outputs, 1), 0) << kiln_last_error();
  EXPECT_EQ(result, wanted_);
  double seconds[2] = {};
  EXPECT_EQ(kiln_profile(net, 1, nullptr, 0, seconds, 2), 2) << kiln_last_error();
  kiln_free(net);
}

}  // namespace
}  // namespace kiln::runtime
