// Tests libraries for apache-tvm-ffi by its C ABI, with a libtvm_ffi of the test's own.
#include <dlfcn.h>

#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "runtime/tvm_ffi/abi.h"
#include "runtime/tvm_ffi/embedded.h"
#include "runtime/tvm_ffi/write_library.h"
#include "tests/runtime/made_network.h"

namespace {

// The calls that the library under test has made.
struct Asked {
  std::string kind, message, text;
  int allocated = 0, released = 0, array_of = 0;
};
Asked asked;

// A tensor of 64 floats at most, behind its header as the ABI has it.
struct Tensor {
  TvmFfiObject header = {1, kTvmFfiTensor, 0, nullptr};
  KilnDLTensor tensor = {};
  int64_t shape[4] = {};
  alignas(64) float elements[64] = {};
};
std::vector<std::unique_ptr<Tensor>> tensors;

}  // namespace

extern "C" {
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {
  asked.kind = kind;
  asked.message = message;
}
void* TVMFFIEnvGetStream(int32_t, int32_t) { return nullptr; }
int TVMFFIEnvTensorAlloc(KilnDLTensor* prototype, void** out) {
  auto& made = *tensors.emplace_back(std::make_unique<Tensor>());
  made.tensor = *prototype;
  std::copy_n(prototype->shape, prototype->ndim, made.shape);
  made.tensor.shape = made.shape;
  made.tensor.data = made.elements;
  ++asked.allocated;
  *out = &made.header;
  return 0;
}
int TVMFFIFunctionGetGlobal(const TvmFfiByteArray* name, void** out) {
  static int array;
  *out = std::string_view(name->data, name->size) == "ffi.Array" ? &array : nullptr;
  return 0;
}
int TVMFFIFunctionCall(void*, TvmFfiAny*, int32_t num_args, TvmFfiAny* result) {
  asked.array_of = num_args;
  result->type_index = kTvmFfiArray;
  return 0;
}
int TVMFFIObjectDecRef(void*) { return ++asked.released, 0; }
int TVMFFIStringFromByteArray(const TvmFfiByteArray* input, TvmFfiAny*) {
  asked.text.assign(input->data, input->size);
  return 0;
}
}

namespace kiln {
namespace {

using testing::HasSubstr;

class TvmFfiTest : public testing::Test {
 protected:
  TvmFfiTest() : folder_(*TempDir::Make("kiln_test")) {
    asked = {};
    tensors.clear();
  }
  ~TvmFfiTest() override {
    if (library_ != nullptr) dlclose(library_);
  }

  void Load(MadeNetwork made) {
    const std::string path = folder_.Join("op.so");
    const auto append = [&](AtomicFile& file) { return made.Append(file); };
    ASSERT_OK_AND_ASSIGN(const int64_t bytes, runtime::WriteTvmFfiLibrary(path, append));
    ASSERT_OK_AND_ASSIGN(const int64_t size, FileSize(path));
    EXPECT_EQ(bytes, size);
    library_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    main_ = reinterpret_cast<TvmFfiSafeCall>(dlsym(library_, "__tvm_ffi_main"));
    ASSERT_NE(main_, nullptr);
  }
  // Calls main with these tensors, as objects and as pointers in turn.
  int Call(const std::vector<Tensor*>& given) {
    std::vector<TvmFfiAny> args;
    for (Tensor* tensor : given) {
      TvmFfiAny& any = args.emplace_back();
      any = {};
      any.type_index = args.size() % 2 == 0 ? kTvmFfiDLTensorPtr : kTvmFfiTensor;
      if (args.size() % 2 == 0) {
        any.v_ptr = &tensor->tensor;
      } else {
        any.v_obj = &tensor->header;
      }
    }
    result_ = {};
    return main_(nullptr, args.data(), static_cast<int32_t>(args.size()), &result_);
  }
  static Tensor* Make(std::vector<int64_t> shape, float first) {
    auto& made = *tensors.emplace_back(std::make_unique<Tensor>());
    std::copy(shape.begin(), shape.end(), made.shape);
    made.tensor.data = made.elements;
    made.tensor.device = {1, 0};
    made.tensor.ndim = static_cast<int32_t>(shape.size());
    made.tensor.dtype = {2, 32, 1};
    made.tensor.shape = made.shape;
    for (size_t i = 0; i < std::size(made.elements); ++i)
      made.elements[i] = first + static_cast<float>(i);
    return &made;
  }

  TempDir folder_;
  void* library_ = nullptr;
  TvmFfiSafeCall main_ = nullptr;
  TvmFfiAny result_ = {};
};

MadeNetwork Sum() {
  MadeNetwork made;
  const int32_t a = made.Input("a", {2, 3}), b = made.Input("b", {3});
  made.Output("c", made.Call("input A: float32[2, 3]\ninput B: float32[3]\n"
                             "C[i: 2, j: 3] = A[i, j] + B[j]\n",
                             {a, b})[0]);
  return made;
}

TEST_F(TvmFfiTest, WritesIntoTensorsThatAreGiven) {
  Load(Sum());
  Tensor *a = Make({2, 3}, 1), *b = Make({3}, 10), *c = Make({2, 3}, 0);
  ASSERT_EQ(Call({a, b, c}), 0) << asked.message;
  EXPECT_EQ(result_.type_index, kTvmFfiNone);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(c->elements[i], a->elements[i] + b->elements[i % 3]);
  EXPECT_EQ(c->elements[6], 6) << "nothing behind the output is written";
  EXPECT_EQ(asked.allocated, 0);
}

TEST_F(TvmFfiTest, ReturnsTensorsThatTheEnvironmentAllocates) {
  Load(Sum());
  Tensor *a = Make({2, 3}, 1), *b = Make({3}, 10);
  ASSERT_EQ(Call({a, b}), 0) << asked.message;
  ASSERT_EQ(result_.type_index, kTvmFfiTensor);
  const auto* made = reinterpret_cast<const Tensor*>(result_.v_obj);
  EXPECT_EQ(made->tensor.ndim, 2);
  EXPECT_EQ(made->tensor.dtype.bits, 32);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(made->elements[i], a->elements[i] + b->elements[i % 3]);
  EXPECT_EQ(asked.released, 0);
}

TEST_F(TvmFfiTest, SeveralOutputsAreAnArray) {
  Load(MakeSmallPerceptron());
  // 8 x 16 floats are more than a tensor of the test has.
  std::vector<float> x(8 * 16 + 16, 1);
  Tensor* a = Make({8, 16}, 0);
  a->tensor.data = x.data();
  ASSERT_EQ(Call({a}), 0) << asked.message;
  EXPECT_EQ(result_.type_index, kTvmFfiArray);
  EXPECT_EQ(asked.array_of, 2);
  EXPECT_EQ(asked.released, 3) << "the two tensors, and the function that makes the array";
}

TEST_F(TvmFfiTest, RaisesWhatIsWrong) {
  Load(Sum());
  Tensor *a = Make({2, 3}, 1), *b = Make({3}, 10), *c = Make({2, 3}, 0);
  EXPECT_EQ(Call({a}), -1);
  EXPECT_EQ(asked.kind, "TypeError");
  EXPECT_EQ(asked.message,
            "1 tensors are given, expected 2, or 3 with the outputs: main(a: float32[2, 3], "
            "b: float32[3], out c: float32[2, 3])");
  EXPECT_EQ(Call({a, a, c}), -1);
  EXPECT_EQ(asked.kind, "ValueError");
  EXPECT_EQ(asked.message, "tensor 'b': its shape is [2, 3], expected [3]");
  b->tensor.dtype = {2, 64, 1};
  EXPECT_EQ(Call({a, b, c}), -1);
  EXPECT_EQ(asked.message, "tensor 'b': its dtype is float64, expected float32");
  b->tensor.dtype = {2, 32, 1};
  b->tensor.device = {2, 0};
  EXPECT_EQ(Call({a, b, c}), -1);
  EXPECT_EQ(asked.message, "tensor 'b': it is on GPU 0, and the network runs on the CPU");
  TvmFfiAny number = {};
  number.type_index = 1;
  EXPECT_EQ(main_(nullptr, &number, 1, &result_), -1);
  EXPECT_EQ(asked.message, "argument 0 is no tensor: its type index is 1");
}

TEST_F(TvmFfiTest, SaysWhatItTakes) {
  Load(Sum());
  const auto doc = reinterpret_cast<TvmFfiSafeCall>(dlsym(library_, "__tvm_ffi__doc_main"));
  ASSERT_NE(doc, nullptr);
  ASSERT_EQ(doc(nullptr, nullptr, 0, &result_), 0);
  EXPECT_EQ(asked.text, "main(a: float32[2, 3], b: float32[3], out c: float32[2, 3])");
}

TEST_F(TvmFfiTest, SaysWhatItTakesWithoutTheDeviceThatItNeeds) {
  MadeNetwork made;
  made.Output("x", made.Input("x", {2, 3}));
  made.network().target = {
      .kind = "cuda", .arch = "sm_10", .device = "", .features = {}, .text = "cuda -arch=sm_10"};
  Load(std::move(made));
  EXPECT_EQ(Call({Make({2, 3}, 1)}), -1) << "there is no such GPU";
  const auto doc = reinterpret_cast<TvmFfiSafeCall>(dlsym(library_, "__tvm_ffi__doc_main"));
  ASSERT_EQ(doc(nullptr, nullptr, 0, &result_), 0) << asked.message;
  EXPECT_EQ(asked.text, "main(x: float32[2, 3], out x: float32[2, 3])");
}

TEST_F(TvmFfiTest, OutputsHaveTheirTypes) {
  MadeNetwork made;
  const std::pair<ir::Type, KilnDLDataType> types[] = {
      {ir::kBool, {6, 8, 1}},    {ir::kBFloat16, {4, 16, 1}},   {ir::kFloat8E4M3, {10, 8, 1}},
      {ir::kUInt16, {1, 16, 1}}, {ir::kFloat8E5M2, {12, 8, 1}}, {ir::kInt64, {0, 64, 1}}};
  for (const auto& [type, dl_type] : types) {
    ir::NDArray array(type, {3});
    array.FillRandom(2);
    made.Output("y", made.Constant(array));
  }
  Load(std::move(made));
  ASSERT_EQ(Call({}), 0) << asked.message;
  ASSERT_EQ(tensors.size(), std::size(types));
  for (size_t i = 0; i < std::size(types); ++i) {
    const KilnDLDataType &got = tensors[i]->tensor.dtype, &want = types[i].second;
    EXPECT_EQ(std::tie(got.code, got.bits, got.lanes), std::tie(want.code, want.bits, want.lanes));
  }
}

TEST_F(TvmFfiTest, WeightsAreInTheLibrary) {
  MadeNetwork made;
  ir::NDArray weights(ir::kFloat32, {3});
  weights.FillRandom(2);
  const float first = reinterpret_cast<const float*>(weights.bytes().data())[0];
  made.Output("w", made.Constant(weights));
  Load(std::move(made));
  Tensor* w = Make({3}, 0);
  ASSERT_EQ(Call({w}), 0) << asked.message;
  EXPECT_EQ(w->elements[0], first);
}

TEST_F(TvmFfiTest, TemplatesThatDoNotFitAreRefused) {
  const std::string path = folder_.Join("op.so");
  const auto append = [](AtomicFile& file) { return file.Append("bytes"); };
  const std::string elf(runtime::TvmFfiTemplate());
  const auto refusal = [&](std::string_view bytes) {
    return runtime::WriteTvmFfiLibrary(path, append, bytes).status().ToString();
  };
  EXPECT_THAT(refusal(""), HasSubstr("is no ELF file"));
  EXPECT_THAT(refusal(elf.substr(0, 70)), HasSubstr("is no shared library"));
  EXPECT_THAT(refusal(elf + runtime::kEmbeddedMark), HasSubstr("or several"));
  std::string none = elf;
  none[none.find(runtime::kEmbeddedMark)] = '?';
  EXPECT_THAT(refusal(none), HasSubstr("has no place for a network"));
  EXPECT_FALSE(FileExists(path));
}

TEST_F(TvmFfiTest, ANetworkThatCannotBeWrittenLeavesTheOldFile) {
  const std::string path = folder_.Join("op.so");
  ASSERT_OK(WriteFile(path, "old"));
  const auto append = [](AtomicFile& file) -> Status {
    KILN_RETURN_IF_ERROR(file.Append("half a network"));
    return DataLoss("no more");
  };
  EXPECT_THAT(runtime::WriteTvmFfiLibrary(path, append),
              StatusIs(StatusCode::kDataLoss, "no more"));
  ASSERT_OK_AND_ASSIGN(const std::string left, ReadFile(path));
  EXPECT_EQ(left, "old");
}

TEST_F(TvmFfiTest, ADamagedNetworkIsAnError) {
  const std::string path = folder_.Join("op.so");
  const auto append = [](AtomicFile& file) { return file.Append("no network"); };
  ASSERT_OK(runtime::WriteTvmFfiLibrary(path, append).status());
  library_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library_, nullptr) << dlerror();
  main_ = reinterpret_cast<TvmFfiSafeCall>(dlsym(library_, "__tvm_ffi_main"));
  EXPECT_EQ(Call({}), -1);
  EXPECT_EQ(asked.kind, "RuntimeError");
  EXPECT_THAT(asked.message, HasSubstr("this is no compiled network"));
}

}  // namespace
}  // namespace kiln
