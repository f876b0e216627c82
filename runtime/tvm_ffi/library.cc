// A shared library with a compiled network for apache-tvm-ffi: tvm_ffi.load_module("op.so").main(x,
// y).
//
// main takes the inputs and then the outputs, or the inputs alone, for which it allocates the
// outputs as the caller's framework does (TVMFFIEnvTensorAlloc) and returns one tensor or an array
// of them. On CUDA it queues the run on the environment's stream (TVMFFIEnvGetStream) and waits for
// nothing; the first call on a GPU loads the kernels. Tensors are checked as kiln_run_tensors does
// it, and its sentences are raised.
//
// The library needs glibc, and libtvm_ffi.so is in the process already. The network is loaded once
// a device and freed when the library is unloaded, unless a call is still running then.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/kiln_runtime.h"
#include "runtime/tvm_ffi/abi.h"
#include "runtime/tvm_ffi/embedded.h"

namespace kiln::runtime {
namespace {

// Written by who adds the network, so the compiler must not know the values.
[[gnu::used]] volatile EmbeddedNetwork embedded = {
    {'K', 'I', 'L', 'N', '-', 'N', 'E', 'T', '-', 'I', 'S', '-', 'H', 'E', 'R', 'E'}, 0, 0};

// Functions of libtvm_ffi.so.
struct TvmFfi {
  TvmFfiErrorSetRaisedFromCStr raise = nullptr;
  TvmFfiEnvGetStream stream = nullptr;
  TvmFfiEnvTensorAlloc allocate = nullptr;
  TvmFfiFunctionGetGlobal global = nullptr;
  TvmFfiFunctionCall call = nullptr;
  TvmFfiObjectDecRef release = nullptr;
  TvmFfiStringFromByteArray text = nullptr;
};

template <typename Function>
void Find(void* library, const char* name, Function& function) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr && library != nullptr) found = dlsym(library, name);
  function = reinterpret_cast<Function>(found);
}

// Python loads libtvm_ffi.so without making its symbols global.
TvmFfi FindTvmFfi() {
  void* library = dlopen("libtvm_ffi.so", RTLD_LAZY | RTLD_NOLOAD);
  TvmFfi ffi;
  Find(library, "TVMFFIErrorSetRaisedFromCStr", ffi.raise);
  Find(library, "TVMFFIEnvGetStream", ffi.stream);
  Find(library, "TVMFFIEnvTensorAlloc", ffi.allocate);
  Find(library, "TVMFFIFunctionGetGlobal", ffi.global);
  Find(library, "TVMFFIFunctionCall", ffi.call);
  Find(library, "TVMFFIObjectDecRef", ffi.release);
  Find(library, "TVMFFIStringFromByteArray", ffi.text);
  return ffi;
}

const TvmFfi& Ffi() {
  static const TvmFfi ffi = FindTvmFfi();
  return ffi;
}

int Raise(const char* kind, const std::string& message) {
  if (Ffi().raise != nullptr) Ffi().raise(kind, message.c_str());
  return -1;
}

// The network on each device that called it. The ABI has no place for the state of a library, so it
// is the library's own.
struct Networks {
  std::mutex mutex;
  std::map<int32_t, KilnNetwork*> by_gpu;
  std::atomic<int> running{0};
  const pid_t process = getpid();
};
Networks* networks = nullptr;

[[gnu::constructor]] void MakeNetworks() { networks = new Networks; }

// A process that was forked has none of the networks' threads, and cannot wait for them.
[[gnu::destructor]] void FreeNetworks() {
  if (networks->running != 0 || networks->process != getpid()) return;
  for (const auto& [gpu, network] : networks->by_gpu) kiln_free(network);
  delete networks;
}

// A call that is running.
class Running {
 public:
  Running() { ++networks->running; }
  ~Running() { --networks->running; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

// Returns null after an error of kiln_last_error.
KilnNetwork* NetworkOn(int32_t gpu) {
  const std::lock_guard lock(networks->mutex);
  KilnNetwork*& network = networks->by_gpu[gpu];
  if (network != nullptr) return network;
  KilnLoadOptions options = {};
  options.size = sizeof(options);
  options.gpu = gpu;
  const auto* begin = const_cast<const char*>(reinterpret_cast<volatile char*>(&embedded));
  network = kiln_load_memory(begin + embedded.distance, embedded.bytes, &options);
  return network;
}

const KilnDLTensor* TensorOf(const TvmFfiAny& any) {
  if (any.type_index == kTvmFfiDLTensorPtr) return static_cast<const KilnDLTensor*>(any.v_ptr);
  if (any.type_index != kTvmFfiTensor) return nullptr;
  return reinterpret_cast<const KilnDLTensor*>(any.v_obj + 1);
}

// Code and bits of a type's name.
KilnDLDataType TypeOf(const char* dtype) {
  const std::string name(dtype);
  if (name == "bool") return {6, 8, 1};
  if (name == "bfloat16") return {4, 16, 1};
  if (name == "float8_e4m3fn") return {10, 8, 1};
  if (name == "float8_e5m2") return {12, 8, 1};
  const auto bits = static_cast<uint8_t>(std::stoi(name.substr(name.find_first_of("0123456789"))));
  return {static_cast<uint8_t>(name[0] == 'f' ? 2 : name[0] == 'u' ? 1 : 0), bits, 1};
}

// Tensors of the caller's framework, which this object lets go of.
struct Outputs {
  std::vector<TvmFfiAny> objects;
  ~Outputs() {
    for (const TvmFfiAny& object : objects) Ffi().release(object.v_obj);
  }
};

bool Allocate(const KilnNetwork* network, KilnDLDevice device, Outputs& outputs) {
  for (int32_t i = 0; i < kiln_num_outputs(network); ++i) {
    KilnTensorInfo info;
    kiln_output_info(network, i, &info);
    KilnDLTensor prototype = {};
    prototype.device = device;
    prototype.ndim = info.ndim;
    prototype.dtype = TypeOf(info.dtype);
    prototype.shape = const_cast<int64_t*>(info.shape);
    void* object = nullptr;
    if (Ffi().allocate(&prototype, &object) != 0) return false;
    TvmFfiAny any = {};
    any.type_index = kTvmFfiTensor;
    any.v_obj = static_cast<TvmFfiObject*>(object);
    outputs.objects.push_back(any);
  }
  return true;
}

// Returns the tensor, or an array of all of them.
int Return(Outputs& outputs, TvmFfiAny* result) {
  if (outputs.objects.size() == 1) {
    *result = outputs.objects[0];
    outputs.objects.clear();
    return 0;
  }
  constexpr std::string_view kName = "ffi.Array";
  const TvmFfiByteArray name = {kName.data(), kName.size()};
  void* make = nullptr;
  if (Ffi().global(&name, &make) != 0) return -1;
  if (make == nullptr) return Raise("RuntimeError", "this libtvm_ffi.so has no function ffi.Array");
  const int status = Ffi().call(make, outputs.objects.data(),
                                static_cast<int32_t>(outputs.objects.size()), result);
  Ffi().release(make);
  return status;
}

std::string SignatureOf(const KilnNetwork* network) {
  const auto tensor = [](const KilnTensorInfo& info) {
    std::string text = std::string(info.name) + ": " + info.dtype + "[";
    for (int32_t i = 0; i < info.ndim; ++i)
      text += (i > 0 ? ", " : "") + std::to_string(info.shape[i]);
    return text + "]";
  };
  std::string text = "main(";
  KilnTensorInfo info;
  for (int32_t i = 0; i < kiln_num_inputs(network); ++i) {
    kiln_input_info(network, i, &info);
    text += (i > 0 ? ", " : "") + tensor(info);
  }
  for (int32_t i = 0; i < kiln_num_outputs(network); ++i) {
    kiln_output_info(network, i, &info);
    text += (i + kiln_num_inputs(network) > 0 ? ", " : "") + ("out " + tensor(info));
  }
  return text + ")";
}

// The GPU of the first tensor that is on one; 0: there is none.
int32_t GpuOf(const std::vector<const KilnDLTensor*>& tensors) {
  constexpr int32_t kCuda = 2;
  for (const KilnDLTensor* tensor : tensors) {
    if (tensor->device.device_type == kCuda) return tensor->device.device_id;
  }
  return 0;
}

int Call(const TvmFfiAny* args, int32_t num_args, TvmFfiAny* result) {
  std::vector<const KilnDLTensor*> tensors;
  for (int32_t i = 0; i < num_args; ++i) {
    tensors.push_back(TensorOf(args[i]));
    if (tensors.back() != nullptr) continue;
    return Raise("TypeError", "argument " + std::to_string(i) +
                                  " is no tensor: its type index is " +
                                  std::to_string(args[i].type_index));
  }
  KilnNetwork* network = NetworkOn(GpuOf(tensors));
  if (network == nullptr) return Raise("RuntimeError", kiln_last_error());
  const int32_t inputs = kiln_num_inputs(network), outputs = kiln_num_outputs(network);
  Outputs made;
  if (num_args != inputs && num_args != inputs + outputs) {
    return Raise("TypeError", std::to_string(num_args) + " tensors are given, expected " +
                                  std::to_string(inputs) + ", or " +
                                  std::to_string(inputs + outputs) +
                                  " with the outputs: " + SignatureOf(network));
  }
  const KilnDLDevice device = kiln_device(network);
  if (num_args == inputs && outputs > 0) {
    if (!Allocate(network, device, made)) return -1;
    for (const TvmFfiAny& object : made.objects) tensors.push_back(TensorOf(object));
  }
  const auto* in = tensors.data();
  const auto* out = in + inputs;
  constexpr int32_t kCpu = 1;
  const int status = device.device_type == kCpu
                         ? kiln_run_tensors(network, in, inputs, out, outputs)
                         : kiln_run_on_stream(network, in, inputs, out, outputs,
                                              Ffi().stream(device.device_type, device.device_id));
  if (status != 0) return Raise("ValueError", kiln_last_error());
  return made.objects.empty() ? 0 : Return(made, result);
}

// Callers of C know no exceptions.
template <typename F>
int Guarded(const F& f) {
  const Running running;
  if (Ffi().raise == nullptr || Ffi().stream == nullptr || Ffi().allocate == nullptr ||
      Ffi().global == nullptr || Ffi().call == nullptr || Ffi().release == nullptr ||
      Ffi().text == nullptr)
    return Raise("RuntimeError", "there is no libtvm_ffi.so of version 0.1 in this process");
  try {
    return f();
  } catch (const std::exception& error) {
    return Raise("RuntimeError", error.what());
  }
}

}  // namespace
}  // namespace kiln::runtime

extern "C" {

int __tvm_ffi_main(void*, const TvmFfiAny* args, int32_t num_args, TvmFfiAny* result) {
  using namespace kiln::runtime;
  return Guarded([&] { return Call(args, num_args, result); });
}

// Returns the names, types and shapes of main's tensors.
int __tvm_ffi__doc_main(void*, const TvmFfiAny*, int32_t, TvmFfiAny* result) {
  using namespace kiln::runtime;
  return Guarded([&] {
    const KilnNetwork* network = NetworkOn(0);
    if (network == nullptr) return Raise("RuntimeError", kiln_last_error());
    const std::string text = SignatureOf(network);
    const TvmFfiByteArray bytes = {text.data(), text.size()};
    return Ffi().text(&bytes, result);
  });
}

}  // extern "C"
