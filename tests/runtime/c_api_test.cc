// Tests the C interface of the runtime, as a C program sees it.
#include <cstring>
#include <thread>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "runtime/kiln_runtime.h"
#include "tests/runtime/made_network.h"

namespace kiln {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class CApiTest : public testing::Test {
 protected:
  CApiTest() : made_(MakeSmallPerceptron()), folder_(*TempDir::Make("kiln_test")) {
    path_ = folder_.Join("net.kiln");
    KILN_CHECK(made_.Write(path_).ok());
    KilnLoadOptions options = {};
    options.size = sizeof(options);
    options.threads = 2;
    options.no_pinning = 1;
    net_ = kiln_load(path_.c_str(), &options);
    KILN_CHECK(net_ != nullptr, "{}", kiln_last_error());
    inputs_ = made_.RandomInputs(5);
    wanted_ = made_.Reference(inputs_);
    y_ = wanted_[0];
    hidden_ = wanted_[1];
    y_.Poison();
    hidden_.Poison();
  }
  ~CApiTest() override { kiln_free(net_); }

  void ExpectRight() const {
    EXPECT_OK(ir::Compare(y_, wanted_[0], {.relative = 1e-5, .absolute = 1e-5}, "y"));
    EXPECT_OK(ir::Compare(hidden_, wanted_[1], {.relative = 1e-5, .absolute = 1e-5}, "hidden"));
  }

  // `shape` outlives the tensor.
  static KilnDLTensor Tensor(ir::NDArray& array, std::vector<int64_t>& shape) {
    return {.data = array.mutable_bytes().data(),
            .device = {1, 0},
            .ndim = static_cast<int32_t>(shape.size()),
            .dtype = {2, 32, 1},
            .shape = shape.data(),
            .strides = nullptr,
            .byte_offset = 0};
  }
  // Returns the refusal of a run with this change to the input.
  std::string RefusalOf(const std::function<void(KilnDLTensor&)>& change) {
    KilnDLTensor x = Tensor(inputs_[0], x_shape_), y = Tensor(y_, y_shape_),
                 hidden = Tensor(hidden_, y_shape_);
    change(x);
    const KilnDLTensor* inputs[] = {&x};
    const KilnDLTensor* outputs[] = {&y, &hidden};
    return kiln_run_tensors(net_, inputs, 1, outputs, 2) == 0 ? "OK" : kiln_last_error();
  }

  MadeNetwork made_;
  TempDir folder_;
  std::string path_;
  KilnNetwork* net_;
  std::vector<ir::NDArray> inputs_, wanted_;
  ir::NDArray y_, hidden_;
  std::vector<int64_t> x_shape_ = {8, 16}, y_shape_ = {8, 8};
};

TEST_F(CApiTest, Describes) {
  EXPECT_EQ(kiln_abi_version(), KILN_RUNTIME_ABI);
  EXPECT_STREQ(kiln_version(), "Kiln runtime, ABI 2, files of version 3");
  ASSERT_EQ(kiln_num_inputs(net_), 1);
  ASSERT_EQ(kiln_num_outputs(net_), 2);
  KilnTensorInfo info;
  ASSERT_EQ(kiln_input_info(net_, 0, &info), 0);
  EXPECT_STREQ(info.name, "x");
  EXPECT_STREQ(info.dtype, "float32");
  EXPECT_EQ(std::vector<int64_t>(info.shape, info.shape + info.ndim), x_shape_);
  EXPECT_EQ(info.bytes, 512);
  ASSERT_EQ(kiln_output_info(net_, 1, &info), 0);
  EXPECT_STREQ(info.name, "hidden");
  EXPECT_EQ(kiln_output_info(net_, 2, &info), -1);
  EXPECT_STREQ(kiln_last_error(), "there is no tensor 2, the network has 2");
  EXPECT_EQ(kiln_device(net_).device_type, 1);
  EXPECT_EQ(kiln_num_kernels(net_), 4);
  KilnKernelInfo kernel;
  ASSERT_EQ(kiln_kernel_info(net_, 3, &kernel), 0);
  EXPECT_STREQ(kernel.name, "kernel3");
  EXPECT_STREQ(kernel.source, "untuned");
  EXPECT_EQ(kiln_kernel_info(net_, -1, &kernel), -1);
  KilnMemoryUse use;
  kiln_memory_use(net_, &use);
  EXPECT_EQ(use.constants, 512);
}

TEST_F(CApiTest, RunsPointers) {
  const void* inputs[] = {inputs_[0].bytes().data()};
  void* outputs[] = {y_.mutable_bytes().data(), hidden_.mutable_bytes().data()};
  ASSERT_EQ(kiln_run(net_, inputs, 1, outputs, 2), 0) << kiln_last_error();
  ExpectRight();
  EXPECT_EQ(kiln_run(net_, inputs, 1, outputs, 1), -1);
  EXPECT_STREQ(kiln_last_error(), "1 outputs given, the network has 2");
  EXPECT_EQ(kiln_run(net_, nullptr, 1, outputs, 2), -1);
  void* same[] = {outputs[0], outputs[0]};
  EXPECT_EQ(kiln_run(net_, inputs, 1, same, 2), -1);
  EXPECT_STREQ(kiln_last_error(),
               "output 'hidden' overlaps output 'y' in memory; give it memory of its own");
  EXPECT_EQ(kiln_run(net_, inputs, -1, outputs, 2), -1);
}

TEST_F(CApiTest, RunsTensors) {
  EXPECT_EQ(RefusalOf([](KilnDLTensor&) {}), "OK");
  ExpectRight();
  y_.Poison();
  // The strides say the same as no strides, and there is an offset.
  int64_t strides[] = {16, 1};
  EXPECT_EQ(RefusalOf([&](KilnDLTensor& x) {
              x.strides = strides;
              x.data = static_cast<char*>(x.data) - 32;
              x.byte_offset = 32;
            }),
            "OK");
  ExpectRight();
}

TEST_F(CApiTest, RunsANetworkInMemory) {
  const auto bytes = ReadFile(path_);
  ASSERT_OK(bytes.status());
  kiln_free(net_);
  net_ = kiln_load_memory(bytes->data(), bytes->size(), nullptr);
  ASSERT_NE(net_, nullptr) << kiln_last_error();
  EXPECT_EQ(RefusalOf([](KilnDLTensor&) {}), "OK");
  ExpectRight();
  EXPECT_EQ(kiln_load_memory(bytes->data(), 100, nullptr), nullptr);
  EXPECT_THAT(kiln_last_error(), HasSubstr("and has 100"));
  EXPECT_EQ(kiln_load_memory(nullptr, 100, nullptr), nullptr);
  EXPECT_STREQ(kiln_last_error(), "the bytes are NULL");
  kiln_free(net_);
  net_ = nullptr;
}

TEST_F(CApiTest, ACpuHasNoStreams) {
  KilnDLTensor x = Tensor(inputs_[0], x_shape_), y = Tensor(y_, y_shape_),
               hidden = Tensor(hidden_, y_shape_);
  const KilnDLTensor* inputs[] = {&x};
  const KilnDLTensor* outputs[] = {&y, &hidden};
  EXPECT_EQ(kiln_run_on_stream(net_, inputs, 1, outputs, 2, nullptr), -1);
  EXPECT_STREQ(kiln_last_error(), "the network runs on the CPU, which has no streams");
}

TEST_F(CApiTest, RefusesTensors) {
  EXPECT_EQ(RefusalOf([](KilnDLTensor& x) { x.dtype = {2, 16, 1}; }),
            "tensor 'x': its dtype is float16, expected float32");
  EXPECT_EQ(RefusalOf([](KilnDLTensor& x) { x.dtype.lanes = 4; }),
            "tensor 'x': its dtype is float32x4, expected float32");
  EXPECT_EQ(RefusalOf([](KilnDLTensor& x) { x.dtype = {10, 8, 1}; }),
            "tensor 'x': its dtype is float8_e4m3fn, expected float32");
  EXPECT_EQ(RefusalOf([](KilnDLTensor& x) { x.dtype = {12, 8, 1}; }),
            "tensor 'x': its dtype is float8_e5m2, expected float32");
  EXPECT_EQ(RefusalOf([](KilnDLTensor& x) { x.ndim = 1; }),
            "tensor 'x': its shape is [8], expected [8, 16]");
  int64_t transposed[] = {1, 8};
  EXPECT_THAT(RefusalOf([&](KilnDLTensor& x) { x.strides = transposed; }),
              HasSubstr("it is not contiguous: its stride along axis 1 is 8, expected 1"));
  EXPECT_THAT(RefusalOf([](KilnDLTensor& x) { x.device = {2, 1}; }),
              HasSubstr("it is on GPU 1, and the network runs on the CPU"));
  EXPECT_EQ(RefusalOf([](KilnDLTensor& x) { x.data = nullptr; }), "tensor 'x': it is NULL");
  EXPECT_THAT(RefusalOf([](KilnDLTensor& x) { x.ndim = -1; }), HasSubstr("-1 dimensions"));
}

TEST_F(CApiTest, TimesRunsAndKernels) {
  double seconds[16] = {};
  EXPECT_EQ(kiln_bench(net_, nullptr, nullptr, 0, seconds, 16), 10) << kiln_last_error();
  EXPECT_GT(seconds[9], 0);
  const KilnBenchOptions options = {
      .size = sizeof(options), .warmup = 1, .repeat = 2, .number = 5, .min_repeat_s = 1e-4};
  EXPECT_EQ(kiln_bench(net_, &options, nullptr, 0, seconds, 16), 2);
  EXPECT_EQ(kiln_bench(net_, &options, nullptr, 0, seconds, 1), -1);
  EXPECT_STREQ(kiln_last_error(), "there are 2 values, and room for 1");
  EXPECT_EQ(kiln_profile(net_, 5, nullptr, 0, seconds, 16), 4);
  EXPECT_GT(seconds[3], 0);
  EXPECT_EQ(kiln_profile(net_, 0, nullptr, 0, seconds, 16), -1);
}

TEST_F(CApiTest, LoadingFails) {
  EXPECT_EQ(kiln_load(nullptr, nullptr), nullptr);
  EXPECT_STREQ(kiln_last_error(), "the path is NULL");
  EXPECT_EQ(kiln_load("/nowhere/net.kiln", nullptr), nullptr);
  EXPECT_THAT(kiln_last_error(), EndsWith("No such file or directory"));
  KilnLoadOptions options = {};
  options.size = 1000;
  EXPECT_EQ(kiln_load(path_.c_str(), &options), nullptr);
  EXPECT_THAT(kiln_last_error(), HasSubstr("the size of options is 1000"));
  kiln_free(nullptr);
}

TEST_F(CApiTest, ErrorsBelongToThreads) {
  EXPECT_EQ(kiln_load("/nowhere/a", nullptr), nullptr);
  std::thread([] { EXPECT_STREQ(kiln_last_error(), "no call has failed"); }).join();
  EXPECT_THAT(kiln_last_error(), HasSubstr("/nowhere/a"));
}

}  // namespace
}  // namespace kiln
