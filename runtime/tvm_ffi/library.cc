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
// on each device, and freed when the library is unloaded unless a call is still running then.
#include <dlfcn.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "runtime/c_api.h"
#include "runtime/kiln_runtime.h"
#include "runtime/network_device_kinds.h"
#include "runtime/network_file.h"
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
  // All functions were found.
  bool is_complete = true;
};

// Python loads libtvm_ffi.so without making its symbols global.
TvmFfi FindTvmFfi() {
  void* library = dlopen("libtvm_ffi.so", RTLD_LAZY | RTLD_NOLOAD);
  TvmFfi ffi;
  const auto find = [&](const char* name, auto& function) {
    void* found = dlsym(RTLD_DEFAULT, name);
    if (found == nullptr && library != nullptr) found = dlsym(library, name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    ffi.is_complete &= found != nullptr;
  };
  find("TVMFFIErrorSetRaisedFromCStr", ffi.raise);
  find("TVMFFIEnvGetStream", ffi.stream);
  find("TVMFFIEnvTensorAlloc", ffi.allocate);
  find("TVMFFIFunctionGetGlobal", ffi.global);
  find("TVMFFIFunctionCall", ffi.call);
  find("TVMFFIObjectDecRef", ffi.release);
  find("TVMFFIStringFromByteArray", ffi.text);
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

int Raise(const Status& status) { return Raise("RuntimeError", std::string(Message(status))); }

// The network on each device that called it. The ABI has no place for the state of a library, so it
// is the library's own.
struct Networks {
  // Guards `file` and `by_gpu`.
  std::mutex mutex;
  // Null before the first call.
  std::shared_ptr<const NetworkFile> file;
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

std::span<const std::byte> EmbeddedBytes() {
  const auto* begin =
      const_cast<const std::byte*>(reinterpret_cast<volatile std::byte*>(&embedded));
  return {begin + embedded.distance, embedded.bytes};
}

// Returns the library's network, which is described and not loaded. The caller has the lock.
StatusOr<const NetworkFile*> FileLocked() {
  if (networks->file == nullptr) {
    KILN_ASSIGN_OR_RETURN(networks->file,
                          NetworkFile::InMemory(EmbeddedBytes(), {.check_constants = false}));
  }
  return networks->file.get();
}

// Returns the number of the first tensor's device that is of this kind; 0 if there is none, or if
// there is only one device of the kind.
int32_t NumberOf(const NetworkDeviceKind& kind, std::span<const KilnDLTensor* const> tensors) {
  if (!kind.is_numbered) return 0;
  for (const KilnDLTensor* tensor : tensors) {
    const int32_t type = tensor->device.device_type;
    if (type == kind.dl_type ||
        std::ranges::find(kind.shared_dl_types, type) != kind.shared_dl_types.end())
      return tensor->device.device_id;
  }
  return 0;
}

// Returns the network on the device of the tensors, and loads it there first if need be.
StatusOr<KilnNetwork*> NetworkFor(std::span<const KilnDLTensor* const> tensors) {
  const std::lock_guard lock(networks->mutex);
  KILN_ASSIGN_OR_RETURN(const NetworkFile* file, FileLocked());
  KILN_ASSIGN_OR_RETURN(
      const NetworkDeviceKind* kind,
      FindNetworkDeviceKind(file->network().target.kind, AllNetworkDeviceKinds()));
  const int32_t number = NumberOf(*kind, tensors);
  KilnNetwork*& network = networks->by_gpu[number];
  if (network != nullptr) return network;
  KilnLoadOptions options = {};
  options.size = sizeof(options);
  options.gpu = number;
  const std::span<const std::byte> bytes = EmbeddedBytes();
  network = kiln_load_memory(bytes.data(), bytes.size(), &options);
  if (network == nullptr) return Internal("{}", kiln_last_error());
  return network;
}

const KilnDLTensor* TensorOf(const TvmFfiAny& any) {
  if (any.type_index == kTvmFfiDLTensorPtr) return static_cast<const KilnDLTensor*>(any.v_ptr);
  if (any.type_index != kTvmFfiTensor) return nullptr;
  return reinterpret_cast<const KilnDLTensor*>(any.v_obj + 1);
}

// Tensors of the caller's framework, which this object lets go of.
struct Outputs {
  std::vector<TvmFfiAny> objects;
  ~Outputs() {
    for (const TvmFfiAny& object : objects) Ffi().release(object.v_obj);
  }
};

bool Allocate(const KilnNetwork& network, KilnDLDevice device, Outputs& outputs) {
  for (const WantedTensor& wanted : network.outputs) {
    const std::vector<int64_t>& shape = wanted.tensor->shape;
    KilnDLTensor prototype = {};
    prototype.device = device;
    prototype.ndim = static_cast<int32_t>(shape.size());
    prototype.dtype = wanted.type;
    prototype.shape = const_cast<int64_t*>(shape.data());
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

std::string TensorText(const NetworkTensor& tensor) {
  return fmt::format("{}: {}[{}]", tensor.name, tensor.dtype, fmt::join(tensor.shape, ", "));
}

std::string SignatureOf(const Network& network) {
  std::vector<std::string> tensors;
  for (const NetworkTensor& input : network.inputs) tensors.push_back(TensorText(input));
  for (const NetworkTensor& output : network.outputs)
    tensors.push_back("out " + TensorText(output));
  return fmt::format("main({})", fmt::join(tensors, ", "));
}

// Returns the signature without loading the network.
StatusOr<std::string> Signature() {
  const std::lock_guard lock(networks->mutex);
  KILN_ASSIGN_OR_RETURN(const NetworkFile* file, FileLocked());
  return SignatureOf(file->network());
}

int Describe(TvmFfiAny* result) {
  const StatusOr<std::string> text = Signature();
  if (!text.ok()) return Raise(text.status());
  const TvmFfiByteArray bytes = {text->data(), text->size()};
  return Ffi().text(&bytes, result);
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
  const StatusOr<KilnNetwork*> loaded = NetworkFor(tensors);
  if (!loaded.ok()) return Raise(loaded.status());
  KilnNetwork* network = *loaded;
  const int32_t inputs = kiln_num_inputs(network), outputs = kiln_num_outputs(network);
  Outputs made;
  if (num_args != inputs && num_args != inputs + outputs) {
    return Raise("TypeError",
                 std::to_string(num_args) + " tensors are given, expected " +
                     std::to_string(inputs) + ", or " + std::to_string(inputs + outputs) +
                     " with the outputs: " + SignatureOf(network->executor->network()));
  }
  const KilnDLDevice device = kiln_device(network);
  if (num_args == inputs && outputs > 0) {
    if (!Allocate(*network, device, made)) return -1;
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
  if (!Ffi().is_complete)
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

// Returns the names, types and shapes of main's tensors. Needs no device, and reads no weights.
int __tvm_ffi__doc_main(void*, const TvmFfiAny*, int32_t, TvmFfiAny* result) {
  using namespace kiln::runtime;
  return Guarded([&] { return Describe(result); });
}

}  // extern "C"
