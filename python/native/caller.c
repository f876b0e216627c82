// The module kiln._caller: calls a compiled network with arrays of Python in less than a
// microsecond of its own.
//
// A Caller knows the type and shape of each input and output. run(stream, *inputs, *outputs) runs
// the network if all arrays fit, and returns True. It returns False if an array does not fit or the
// run was refused: kiln.network then goes its own way, which takes more kinds of arrays and says
// what is wrong. Arrays are described, by their type, by
//   * Python's buffer interface (numpy);
//   * __dlpack_c_exchange_api__, functions of C (PyTorch from 2.10 on, tvm-ffi);
//   * __dlpack__ (cupy, older PyTorch).
//
// A network on a GPU whose arrays are all there is queued on `stream`, a number; None is the stream
// on which the library of the first array works now, and False if that is not known. Arrays of the
// host are for networks on the CPU, or, without a stream, for runs that copy and wait.
//
// Block(bytes) is memory at a multiple of 64 bytes, as kernels want it, by the buffer interface.
//
// The module uses the stable ABI of Python 3.11, whose functions Python 3.10 has as well. It has no
// global state. Any thread may call it, and the network lets them take turns.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "python/native/dlpack.h"
#include "runtime/kiln_runtime.h"

enum { kMaxArrays = 64, kMostDimensions = 32, kMaxFormats = 4, kMaxTypes = 8, kAlignment = 64 };

typedef int (*RunTensors)(KilnNetwork*, const KilnDLTensor* const*, int32_t,
                          const KilnDLTensor* const*, int32_t);
typedef int (*RunOnStream)(KilnNetwork*, const KilnDLTensor* const*, int32_t,
                           const KilnDLTensor* const*, int32_t, void*);

typedef struct {
  KilnDLDataType dtype;
  // Characters of buffer formats that have the type.
  char formats[kMaxFormats + 1];
  int is_empty;
  int32_t ndim;
  int64_t shape[kMostDimensions];
} Wanted;

// How arrays of a type are described.
typedef enum { kNotAtAll, kByBuffer, kByExchange, kByDLPack } Way;

typedef struct {
  // A reference; NULL: no entry.
  PyObject* type;
  Way way;
  const DLPackExchangeAPI* api;
  // The tensors have a bit that negates them, and may need gradients.
  int is_torch;
  // Nothing may be written to its arrays.
  int is_immutable;
} Type;

typedef struct {
  PyObject_HEAD KilnNetwork* network;
  RunTensors run;
  RunOnStream run_on_stream;
  KilnDLDevice device;
  int32_t num_inputs;
  int32_t num_outputs;
  // Inputs, then outputs.
  Wanted* wanted;
  // The types that were seen last, and the entry that is replaced next.
  Type types[kMaxTypes];
  int next_type;
  // Names of attributes.
  PyObject *is_neg, *is_conj, *requires_grad, *dlpack, *dlpack_device, *stream;
} Caller;

// Reads (code, bits, formats, shape). Returns -1 with an exception set if it is no such tuple.
static int ReadWanted(PyObject* from, Wanted* wanted) {
  int code, bits;
  const char* formats;
  PyObject* shape;
  if (!PyArg_ParseTuple(from, "iisO!", &code, &bits, &formats, &PyTuple_Type, &shape)) return -1;
  const Py_ssize_t ndim = PyTuple_Size(shape);
  if (strlen(formats) > kMaxFormats || ndim > kMostDimensions) {
    PyErr_SetString(PyExc_ValueError, "too many formats or dimensions");
    return -1;
  }
  strcpy(wanted->formats, formats);
  wanted->dtype = (KilnDLDataType){(uint8_t)code, (uint8_t)bits, 1};
  wanted->ndim = (int32_t)ndim;
  for (Py_ssize_t i = 0; i < ndim; ++i) {
    wanted->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (PyErr_Occurred()) return -1;
    wanted->is_empty |= wanted->shape[i] == 0;
  }
  return 0;
}

static int ReadAllWanted(Caller* self, PyObject* wanted) {
  const Py_ssize_t count = PyList_Size(wanted);
  self->wanted = PyMem_Calloc((size_t)count + 1, sizeof(Wanted));
  if (self->wanted == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (ReadWanted(PyList_GetItem(wanted, i), &self->wanted[i]) < 0) return -1;
  }
  return 0;
}

static int MakeNames(Caller* self) {
  self->is_neg = PyUnicode_InternFromString("is_neg");
  self->is_conj = PyUnicode_InternFromString("is_conj");
  self->requires_grad = PyUnicode_InternFromString("requires_grad");
  self->dlpack = PyUnicode_InternFromString("__dlpack__");
  self->dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
  self->stream = PyUnicode_InternFromString("stream");
  return self->is_neg && self->is_conj && self->requires_grad && self->dlpack &&
                 self->dlpack_device && self->stream
             ? 0
             : -1;
}

// Caller(network, run_tensors, run_on_stream, wanted, num_inputs, device_type, device_id):
// addresses as numbers, and a list of tuples.
static PyObject* CallerNew(PyTypeObject* type, PyObject* args, PyObject* named) {
  unsigned long long network, run, run_on_stream;
  PyObject* wanted;
  int num_inputs, device_type, device_id;
  if (named != NULL && PyDict_Size(named) != 0) {
    PyErr_SetString(PyExc_TypeError, "Caller takes no arguments by name");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "KKKO!iii", &network, &run, &run_on_stream, &PyList_Type, &wanted,
                        &num_inputs, &device_type, &device_id))
    return NULL;
  const Py_ssize_t count = PyList_Size(wanted);
  if (count > kMaxArrays || num_inputs < 0 || num_inputs > count) {
    PyErr_SetString(PyExc_ValueError, "too many arrays");
    return NULL;
  }
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  Caller* self = (Caller*)allocate(type, 0);
  if (self == NULL) return NULL;
  self->network = (KilnNetwork*)(uintptr_t)network;
  self->run = (RunTensors)(uintptr_t)run;
  self->run_on_stream = (RunOnStream)(uintptr_t)run_on_stream;
  self->device = (KilnDLDevice){device_type, device_id};
  self->num_inputs = num_inputs;
  self->num_outputs = (int32_t)count - num_inputs;
  if (MakeNames(self) < 0 || ReadAllWanted(self, wanted) < 0) {
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject*)self;
}

static void CallerDealloc(PyObject* object) {
  Caller* self = (Caller*)object;
  PyTypeObject* type = Py_TYPE(object);
  for (int i = 0; i < kMaxTypes; ++i) Py_XDECREF(self->types[i].type);
  Py_XDECREF(self->is_neg);
  Py_XDECREF(self->is_conj);
  Py_XDECREF(self->requires_grad);
  Py_XDECREF(self->dlpack);
  Py_XDECREF(self->dlpack_device);
  Py_XDECREF(self->stream);
  PyMem_Free(self->wanted);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

// Returns whether the module of a class is of one of these packages.
static int IsOfPackage(PyObject* class, const char* const* packages) {
  PyObject* module = PyObject_GetAttrString(class, "__module__");
  if (module == NULL) PyErr_Clear();
  PyObject* bytes =
      module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8String(module) : NULL;
  const char* name = bytes != NULL ? PyBytes_AsString(bytes) : "";
  int is_of = 0;
  for (; name != NULL && *packages != NULL; ++packages) {
    const size_t length = strlen(*packages);
    is_of |= strncmp(name, *packages, length) == 0 && (name[length] == '.' || name[length] == '\0');
  }
  PyErr_Clear();
  Py_XDECREF(bytes);
  Py_XDECREF(module);
  return is_of;
}

// Returns a new reference to the class that defines an attribute of the type, NULL if none does.
static PyObject* DefiningClass(PyObject* type, const char* name) {
  PyObject* order = PyObject_GetAttrString(type, "__mro__");
  const Py_ssize_t count = order != NULL && PyTuple_Check(order) ? PyTuple_Size(order) : 0;
  PyObject* found = NULL;
  for (Py_ssize_t i = 0; found == NULL && i < count; ++i) {
    PyObject* members = PyObject_GetAttrString(PyTuple_GetItem(order, i), "__dict__");
    if (members != NULL && PyMapping_HasKeyString(members, name)) {
      found = PyTuple_GetItem(order, i);
      Py_INCREF(found);
    }
    Py_XDECREF(members);
  }
  PyErr_Clear();
  Py_XDECREF(order);
  return found;
}

// Returns the functions of C that a type has for its objects, NULL if it has none that can be used.
// They trust that the object is theirs, so a class that hands on another library's is not believed.
static const DLPackExchangeAPI* ExchangeOf(PyObject* type) {
  static const char* const kLibraries[] = {"torch",  "tvm_ffi", "cupy", "jax",
                                           "jaxlib", "paddle",  NULL};
  static const char kName[] = "__dlpack_c_exchange_api__";
  PyObject* definer = DefiningClass(type, kName);
  const int is_trusted = definer != NULL && IsOfPackage(definer, kLibraries);
  Py_XDECREF(definer);
  if (!is_trusted) return NULL;
  PyObject* capsule = PyObject_GetAttrString(type, kName);
  const DLPackExchangeAPIHeader* header =
      capsule != NULL ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
  PyErr_Clear();
  Py_XDECREF(capsule);
  while (header != NULL && header->version.major > 1) header = header->prev_api;
  if (header == NULL || header->version.major != 1) return NULL;
  const DLPackExchangeAPI* api = (const DLPackExchangeAPI*)header;
  return api->dltensor_from_py_object_no_sync != NULL && api->current_work_stream != NULL ? api
                                                                                          : NULL;
}

static Type LookAt(PyObject* array, PyObject* type) {
  static const char* const kTorch[] = {"torch", NULL};
  static const char* const kJax[] = {"jax", "jaxlib", NULL};
  Type seen = {.type = type, .way = kNotAtAll};
  if (PyObject_CheckBuffer(array)) {
    seen.way = kByBuffer;
    return seen;
  }
  seen.api = ExchangeOf(type);
  if (seen.api != NULL) {
    seen.way = kByExchange;
  } else if (PyObject_HasAttrString(type, "__dlpack__")) {
    seen.way = kByDLPack;
  }
  PyObject* base = DefiningClass(type, "__dlpack__");
  seen.is_torch = base != NULL && IsOfPackage(base, kTorch);
  seen.is_immutable = base != NULL && IsOfPackage(base, kJax);
  Py_XDECREF(base);
  return seen;
}

static const Type* TypeOf(Caller* self, PyObject* array) {
  PyObject* type = (PyObject*)Py_TYPE(array);
  for (int i = 0; i < kMaxTypes; ++i) {
    if (self->types[i].type == type) return &self->types[i];
  }
  const Type seen = LookAt(array, type);
  // LookAt may have run Python code, and that another call.
  Type* entry = &self->types[self->next_type];
  self->next_type = (self->next_type + 1) % kMaxTypes;
  PyObject* before = entry->type;
  Py_INCREF(type);
  *entry = seen;
  Py_XDECREF(before);
  return entry;
}

static int HasShape(const Wanted* wanted, int32_t ndim, const int64_t* shape) {
  if (ndim != wanted->ndim) return 0;
  for (int32_t i = 0; i < ndim; ++i) {
    if (shape[i] != wanted->shape[i]) return 0;
  }
  return 1;
}

static int FitsBuffer(const Py_buffer* view, const Wanted* wanted) {
  const char* format = view->format != NULL ? view->format : "B";
  // Marks of this machine's byte order.
  if (*format == '<' || *format == '=' || *format == '@') ++format;
  if (format[0] == '\0' || format[1] != '\0' || strchr(wanted->formats, format[0]) == NULL)
    return 0;
  if (view->ndim != wanted->ndim || view->itemsize * 8 != wanted->dtype.bits) return 0;
  for (int32_t i = 0; i < wanted->ndim; ++i) {
    if (view->shape[i] != wanted->shape[i]) return 0;
  }
  return 1;
}

static int FitsTensor(const KilnDLTensor* tensor, const Wanted* wanted) {
  if (tensor->dtype.code != wanted->dtype.code || tensor->dtype.bits != wanted->dtype.bits ||
      tensor->dtype.lanes != 1 || !HasShape(wanted, tensor->ndim, tensor->shape))
    return 0;
  if (wanted->is_empty) return 1;
  if (tensor->data == NULL) return 0;
  int64_t expected = 1;
  for (int32_t i = tensor->ndim; tensor->strides != NULL && i-- > 0; expected *= tensor->shape[i]) {
    if (tensor->shape[i] != 1 && tensor->strides[i] != expected) return 0;
  }
  return 1;
}

// The references and views of a call, which it holds until the network has taken its arrays.
typedef struct {
  Py_buffer views[kMaxArrays];
  Py_ssize_t num_views;
  PyObject* capsules[kMaxArrays];
  Py_ssize_t num_capsules;
  KilnDLTensor tensors[kMaxArrays];
  const KilnDLTensor* pointers[kMaxArrays];
  // Arrays in a GPU's memory.
  int num_on_gpu;
  // The functions of the first array that has some.
  const DLPackExchangeAPI* api;
} Held;

static void Release(Held* held) {
  for (Py_ssize_t i = 0; i < held->num_views; ++i) PyBuffer_Release(&held->views[i]);
  for (Py_ssize_t i = 0; i < held->num_capsules; ++i) Py_DECREF(held->capsules[i]);
}

// The functions that follow return 1 if the array fits, else 0 with no exception.

static int TakeBuffer(PyObject* array, const Wanted* wanted, int is_output, Held* held,
                      KilnDLTensor* tensor) {
  const int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (is_output ? PyBUF_WRITABLE : 0);
  Py_buffer* view = &held->views[held->num_views];
  if (PyObject_GetBuffer(array, view, flags) < 0) return 0;
  ++held->num_views;
  if (!FitsBuffer(view, wanted)) return 0;
  tensor->data = view->buf;
  tensor->device = (KilnDLDevice){kDLCPU, 0};
  return 1;
}

// Takes the address and device of a tensor that fits. Its shape may go when Python runs.
static int TakeTensor(const KilnDLTensor* from, const Wanted* wanted, KilnDLTensor* tensor) {
  if (!FitsTensor(from, wanted)) return 0;
  tensor->data = from->data;
  tensor->byte_offset = from->byte_offset;
  tensor->device = from->device;
  return 1;
}

// A tensor of PyTorch may be negated when it is read, and may take part in a computation of
// gradients.
static int IsPlain(Caller* self, PyObject* array) {
  PyObject* negated = PyObject_CallMethodObjArgs(array, self->is_neg, NULL);
  PyObject* needed = negated != NULL ? PyObject_GetAttr(array, self->requires_grad) : NULL;
  const int is_plain = negated == Py_False && needed == Py_False;
  Py_XDECREF(negated);
  Py_XDECREF(needed);
  return is_plain;
}

static int TakeExchange(Caller* self, PyObject* array, const Type* type, const Wanted* wanted,
                        Held* held, KilnDLTensor* tensor) {
  const DLPackExchangeAPI* api = type->api;
  if (type->is_torch && !IsPlain(self, array)) return 0;
  KilnDLTensor from;
  if (api->dltensor_from_py_object_no_sync(array, &from) != 0) return 0;
  if (held->api == NULL) held->api = api;
  return TakeTensor(&from, wanted, tensor);
}

static int DeviceOf(Caller* self, PyObject* array, KilnDLDevice* device) {
  PyObject* pair = PyObject_CallMethodObjArgs(array, self->dlpack_device, NULL);
  const int is_pair = pair != NULL && PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
  if (is_pair) {
    device->device_type = (int32_t)PyLong_AsLong(PyTuple_GetItem(pair, 0));
    device->device_id = (int32_t)PyLong_AsLong(PyTuple_GetItem(pair, 1));
  }
  Py_XDECREF(pair);
  return is_pair && !PyErr_Occurred();
}

// Returns a new reference to the array's capsule, NULL with an exception.
static PyObject* CapsuleOf(Caller* self, PyObject* array, PyObject* stream) {
  if (stream == NULL) return PyObject_CallMethodObjArgs(array, self->dlpack, NULL);
  PyObject* method = PyObject_GetAttr(array, self->dlpack);
  PyObject* none = PyTuple_New(0);
  PyObject* named = PyDict_New();
  PyObject* capsule = NULL;
  if (method && none && named && PyDict_SetItem(named, self->stream, stream) == 0)
    capsule = PyObject_Call(method, none, named);
  Py_XDECREF(named);
  Py_XDECREF(none);
  Py_XDECREF(method);
  return capsule;
}

// The library makes `stream` wait for the work on the array, if that is in another stream.
static int TakeDLPack(Caller* self, PyObject* array, const Type* type, PyObject* stream,
                      const Wanted* wanted, Held* held, KilnDLTensor* tensor) {
  // Others that have such bits are for kiln.arrays, which resolves them.
  if (type->is_torch
          ? !IsPlain(self, array)
          : PyObject_HasAttr(array, self->is_neg) || PyObject_HasAttr(array, self->is_conj))
    return 0;
  KilnDLDevice device;
  if (!DeviceOf(self, array, &device)) return 0;
  const int is_on_host = device.device_type == kDLCPU || device.device_type == kDLCUDAHost;
  PyObject* awaited = NULL;
  if (!is_on_host) {
    if (stream == Py_None) return 0;
    // DLPack calls the default stream 1.
    awaited = PyLong_AsLongLong(stream) == 0 ? PyLong_FromLong(1) : stream;
    if (awaited == NULL) return 0;
  }
  PyObject* capsule = CapsuleOf(self, array, awaited);
  if (awaited != stream) Py_XDECREF(awaited);
  if (capsule == NULL) return 0;
  held->capsules[held->num_capsules++] = capsule;
  const KilnDLTensor* from = PyCapsule_GetPointer(capsule, "dltensor");
  return from != NULL && TakeTensor(from, wanted, tensor);
}

static int Take(Caller* self, PyObject* array, int index, PyObject* stream, Held* held) {
  Wanted* wanted = &self->wanted[index];
  // A copy, because Python code that an array runs may call the network.
  const Type type = *TypeOf(self, array);
  const int is_output = index >= self->num_inputs;
  KilnDLTensor* tensor = &held->tensors[index];
  *tensor = (KilnDLTensor){.ndim = wanted->ndim, .dtype = wanted->dtype, .shape = wanted->shape};
  held->pointers[index] = tensor;
  int fits = 0;
  if (is_output && type.is_immutable) return 0;
  if (type.way == kByBuffer) fits = TakeBuffer(array, wanted, is_output, held, tensor);
  if (type.way == kByExchange) fits = TakeExchange(self, array, &type, wanted, held, tensor);
  if (type.way == kByDLPack) fits = TakeDLPack(self, array, &type, stream, wanted, held, tensor);
  if (!fits) PyErr_Clear();
  held->num_on_gpu += fits && (tensor->device.device_type == kDLCUDA ||
                               tensor->device.device_type == kDLCUDAManaged);
  return fits;
}

// Finds the stream of a run whose arrays are all on the GPU. Returns 0 if it is not known.
static int FindStream(Caller* self, PyObject* given, const Held* held, void** stream) {
  if (given != Py_None) {
    *stream = PyLong_AsVoidPtr(given);
    if (!PyErr_Occurred()) return 1;
  } else if (held->api != NULL &&
             held->api->current_work_stream(kDLCUDA, self->device.device_id, stream) == 0) {
    return 1;
  }
  PyErr_Clear();
  return 0;
}

// Runs the network, without the interpreter's lock. Returns whether it has run.
static int Run(Caller* self, PyObject* given, const Held* held) {
  const int count = self->num_inputs + self->num_outputs;
  const KilnDLTensor* const* outputs = held->pointers + self->num_inputs;
  const int is_queued = held->num_on_gpu > 0 && held->num_on_gpu == count;
  void* stream = NULL;
  if (is_queued ? !FindStream(self, given, held, &stream)
                : held->num_on_gpu > 0 || given != Py_None)
    return 0;
  int status;
  Py_BEGIN_ALLOW_THREADS;
  status = is_queued ? self->run_on_stream(self->network, held->pointers, self->num_inputs, outputs,
                                           self->num_outputs, stream)
                     : self->run(self->network, held->pointers, self->num_inputs, outputs,
                                 self->num_outputs);
  Py_END_ALLOW_THREADS;
  return status == 0;
}

static PyObject* CallerRun(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  Caller* self = (Caller*)object;
  const int arrays = self->num_inputs + self->num_outputs;
  if (count != arrays + 1) Py_RETURN_FALSE;
  Held held;
  held.num_views = held.num_capsules = 0;
  held.num_on_gpu = 0;
  held.api = NULL;
  int fits = 1;
  for (int i = 0; fits && i < arrays; ++i) fits = Take(self, args[i + 1], i, args[0], &held);
  fits = fits && Run(self, args[0], &held);
  Release(&held);
  return PyBool_FromLong(fits);
}

typedef struct {
  PyObject_HEAD void* memory;
  Py_ssize_t bytes;
} Block;

static PyObject* BlockNew(PyTypeObject* type, PyObject* args, PyObject* named) {
  Py_ssize_t bytes;
  if (named != NULL && PyDict_Size(named) != 0) {
    PyErr_SetString(PyExc_TypeError, "Block takes no arguments by name");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "n", &bytes)) return NULL;
  if (bytes < 0 || bytes > PY_SSIZE_T_MAX - kAlignment) {
    PyErr_SetString(PyExc_ValueError, "a block has 0 bytes or more");
    return NULL;
  }
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  Block* self = (Block*)allocate(type, 0);
  if (self == NULL) return NULL;
  self->bytes = bytes;
  if (posix_memalign(&self->memory, kAlignment, (size_t)bytes + 1) != 0) {
    self->memory = NULL;
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return (PyObject*)self;
}

static void BlockDealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  free(((Block*)object)->memory);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

static int BlockGetBuffer(PyObject* object, Py_buffer* view, int flags) {
  Block* self = (Block*)object;
  return PyBuffer_FillInfo(view, object, self->memory, self->bytes, 0, flags);
}

static PyMethodDef kMethods[] = {
    {"run", (PyCFunction)(void (*)(void))CallerRun, METH_FASTCALL,
     "run(stream, *inputs, *outputs): True if the network has run, False if an array does not "
     "fit."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, (void*)CallerNew},
    {Py_tp_dealloc, (void*)CallerDealloc},
    {Py_tp_methods, (void*)kMethods},
    {0, NULL},
};

static PyType_Spec kSpec = {
    .name = "kiln._caller.Caller",
    .basicsize = sizeof(Caller),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = kSlots,
};

static PyType_Slot kBlockSlots[] = {
    {Py_tp_new, (void*)BlockNew},
    {Py_tp_dealloc, (void*)BlockDealloc},
    {Py_bf_getbuffer, (void*)BlockGetBuffer},
    {0, NULL},
};

static PyType_Spec kBlockSpec = {
    .name = "kiln._caller.Block",
    .basicsize = sizeof(Block),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = kBlockSlots,
};

static int AddType(PyObject* module, const char* name, PyType_Spec* spec) {
  PyObject* type = PyType_FromModuleAndSpec(module, spec, NULL);
  if (type == NULL) return -1;
  const int status = PyModule_AddObjectRef(module, name, type);
  Py_DECREF(type);
  return status;
}

static int Execute(PyObject* module) {
  if (AddType(module, "Caller", &kSpec) < 0) return -1;
  return AddType(module, "Block", &kBlockSpec);
}

static PyModuleDef_Slot kModuleSlots[] = {
    {Py_mod_exec, (void*)Execute},
    {0, NULL},
};

static struct PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kiln._caller",
    .m_slots = kModuleSlots,
};

PyMODINIT_FUNC PyInit__caller(void) { return PyModuleDef_Init(&kModule); }
