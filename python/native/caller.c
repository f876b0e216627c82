// The module kiln._caller: calls a compiled network with arrays of numpy, or anything else with
// Python's buffer interface, in less than a microsecond of its own.
//
// A Caller knows the type and shape of each input and output. run(*inputs, *outputs) runs the
// network if all arrays fit, and returns True. It returns False if an array does not fit or the run
// was refused: kiln.network then goes its own way, which takes more kinds of arrays and says what
// is wrong. The module uses the stable ABI of Python 3.11, whose functions Python 3.10 has as well.
// It has no global state. Any thread may call it, and the network lets them take turns.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "runtime/kiln_runtime.h"

enum { kMaxArrays = 64, kMostDimensions = 32, kMaxFormats = 4 };

typedef int (*RunTensors)(KilnNetwork*, const KilnDLTensor* const*, int32_t,
                          const KilnDLTensor* const*, int32_t);

typedef struct {
  KilnDLDataType dtype;
  // Characters of buffer formats that have the type.
  char formats[kMaxFormats + 1];
  int32_t ndim;
  int64_t shape[kMostDimensions];
} Wanted;

typedef struct {
  PyObject_HEAD KilnNetwork* network;
  RunTensors run;
  int32_t num_inputs;
  int32_t num_outputs;
  // Inputs, then outputs.
  Wanted* wanted;
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
  }
  return 0;
}

// Caller(network, run_tensors, wanted, num_inputs): addresses as numbers, and a list of tuples.
static PyObject* CallerNew(PyTypeObject* type, PyObject* args, PyObject* named) {
  unsigned long long network, run;
  PyObject* wanted;
  int num_inputs;
  if (named != NULL && PyDict_Size(named) != 0) {
    PyErr_SetString(PyExc_TypeError, "Caller takes no arguments by name");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "KKO!i", &network, &run, &PyList_Type, &wanted, &num_inputs))
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
  self->num_inputs = num_inputs;
  self->num_outputs = (int32_t)count - num_inputs;
  self->wanted = PyMem_Calloc((size_t)count + 1, sizeof(Wanted));
  for (Py_ssize_t i = 0; self->wanted != NULL && i < count; ++i) {
    if (ReadWanted(PyList_GetItem(wanted, i), &self->wanted[i]) < 0) {
      Py_DECREF(self);
      return NULL;
    }
  }
  if (self->wanted == NULL) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return (PyObject*)self;
}

static void CallerDealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyMem_Free(((Caller*)object)->wanted);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

static int Fits(const Py_buffer* view, const Wanted* wanted) {
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

static PyObject* CallerRun(PyObject* object, PyObject* const* arrays, Py_ssize_t count) {
  Caller* self = (Caller*)object;
  if (count != self->num_inputs + self->num_outputs) Py_RETURN_FALSE;
  Py_buffer views[kMaxArrays];
  KilnDLTensor tensors[kMaxArrays];
  const KilnDLTensor* pointers[kMaxArrays];
  Py_ssize_t held = 0;
  int fits = 1;
  for (; fits && held < count; ++held) {
    const int flags =
        PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (held < self->num_inputs ? 0 : PyBUF_WRITABLE);
    if (PyObject_GetBuffer(arrays[held], &views[held], flags) < 0) {
      PyErr_Clear();
      fits = 0;
      break;
    }
    Wanted* wanted = &self->wanted[held];
    fits = Fits(&views[held], wanted);
    tensors[held] = (KilnDLTensor){.data = views[held].buf,
                                   .device = {1, 0},
                                   .ndim = wanted->ndim,
                                   .dtype = wanted->dtype,
                                   .shape = wanted->shape};
    pointers[held] = &tensors[held];
  }
  if (fits) {
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = self->run(self->network, pointers, self->num_inputs, pointers + self->num_inputs,
                       self->num_outputs);
    Py_END_ALLOW_THREADS;
    fits = status == 0;
  }
  for (Py_ssize_t i = 0; i < held; ++i) PyBuffer_Release(&views[i]);
  return PyBool_FromLong(fits);
}

static PyMethodDef kMethods[] = {
    {"run", (PyCFunction)(void (*)(void))CallerRun, METH_FASTCALL,
     "run(*inputs, *outputs): True if the network has run, False if an array does not fit."},
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

static int Execute(PyObject* module) {
  PyObject* type = PyType_FromModuleAndSpec(module, &kSpec, NULL);
  if (type == NULL) return -1;
  const int status = PyModule_AddObjectRef(module, "Caller", type);
  Py_DECREF(type);
  return status;
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
