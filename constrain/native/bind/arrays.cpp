// Memory of NumPy arrays and torch tensors.
#include <nanobind/ndarray.h>

#include <cstring>
#include <string_view>

#include "bindings.hpp"

namespace constrain::bind {
namespace {

// The array that was asked for last.  An engine passes the same one at every step, and asking
// NumPy for its memory costs more than filling a mask.  A weak reference tells the same object from
// another one at its address, and keeps NumPy from moving the memory (ndarray.resize refuses);
// torch may move a tensor's memory, so there the pointer is asked for again.
struct LastArray {
  PyObject* weak = nullptr;
  bool torch = false;
  Rows rows;
};
LastArray last_array;

bool is_last(PyObject* array) {
  if (!last_array.weak) return false;
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* alive = nullptr;
  if (PyWeakref_GetRef(last_array.weak, &alive) < 0) PyErr_Clear();
  const bool same = alive == array;
  Py_XDECREF(alive);
  return same;
#else
  return PyWeakref_GetObject(last_array.weak) == array;
#endif
}

// Address of a tensor's memory, 0 on any error.
uintptr_t tensor_address(PyObject* tensor) {
  static PyObject* name = PyUnicode_InternFromString("data_ptr");
  PyObject* value = PyObject_CallMethodNoArgs(tensor, name);
  if (!value) {
    PyErr_Clear();
    return 0;
  }
  const auto address = static_cast<uintptr_t>(PyLong_AsUnsignedLongLong(value));
  Py_DECREF(value);
  if (PyErr_Occurred()) PyErr_Clear();
  return address;
}

void remember(PyObject* array, bool torch, const Rows& rows) {
  Py_XDECREF(last_array.weak);
  last_array.weak = PyWeakref_NewRef(array, nullptr);
  if (!last_array.weak) PyErr_Clear();
  last_array.torch = torch;
  last_array.rows = rows;
}

constexpr const char* kWanted =
    "the bitmask must be a writable int32 array of one or two dimensions in CPU memory, with the "
    "words of a row next to each other";

// 1-D arrays are one row.
Rows make_rows(void* data, size_t ndim, const int64_t* shape, const int64_t* strides) {
  Rows rows;
  rows.data = static_cast<uint32_t*>(data);
  if (ndim == 1) {
    rows.count = 1;
    rows.words = static_cast<size_t>(shape[0]);
    rows.stride = 0;
    if (shape[0] > 1 && strides[0] != 1) throw nb::type_error(kWanted);
  } else if (ndim == 2) {
    rows.count = static_cast<size_t>(shape[0]);
    rows.words = static_cast<size_t>(shape[1]);
    rows.stride = strides[0];
    if (shape[1] > 1 && strides[1] != 1) throw nb::type_error(kWanted);
  } else {
    throw nb::type_error(kWanted);
  }
  if (reinterpret_cast<uintptr_t>(data) % alignof(uint32_t) != 0) throw nb::type_error(kWanted);
  return rows;
}

bool is_int32(const Py_buffer& view) {
  if (view.itemsize != 4 || !view.format) return false;
  const std::string_view format(view.format);
  return format == "i" || format == "l" || format == "=i" || format == "@i" || format == "=l";
}

struct Buffer {
  Py_buffer view{};
  bool held = false;
  ~Buffer() {
    if (held) PyBuffer_Release(&view);
  }
};

}  // namespace

Rows writable_rows(nb::handle array) {
  PyObject* object = array.ptr();
  if (is_last(object)) {
    if (!last_array.torch) return last_array.rows;
    if (tensor_address(object) == reinterpret_cast<uintptr_t>(last_array.rows.data)) {
      return last_array.rows;
    }
  }
  if (PyObject_CheckBuffer(object)) {
    Buffer buffer;
    if (PyObject_GetBuffer(object, &buffer.view, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE)) {
      PyErr_Clear();
      throw nb::type_error(kWanted);
    }
    buffer.held = true;
    const Py_buffer& view = buffer.view;
    if (!is_int32(view) || view.ndim < 1 || view.ndim > 2) throw nb::type_error(kWanted);
    int64_t shape[2] = {0, 0}, strides[2] = {0, 0};
    for (int i = 0; i < view.ndim; ++i) {
      if (view.shape[i] > 1 && view.strides[i] % 4 != 0) throw nb::type_error(kWanted);
      shape[i] = view.shape[i];
      strides[i] = view.strides[i] / 4;
    }
    const Rows rows = make_rows(view.buf, static_cast<size_t>(view.ndim), shape, strides);
    if (std::strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") == 0) {
      remember(object, false, rows);
    }
    return rows;
  }
  nb::ndarray<int32_t, nb::device::cpu> tensor;
  if (!nb::try_cast(array, tensor, false) || tensor.ndim() < 1 || tensor.ndim() > 2) {
    throw nb::type_error(kWanted);
  }
  int64_t shape[2] = {0, 0}, strides[2] = {0, 0};
  for (size_t i = 0; i < tensor.ndim(); ++i) {
    shape[i] = static_cast<int64_t>(tensor.shape(i));
    strides[i] = tensor.stride(i);
  }
  const Rows rows = make_rows(tensor.data(), tensor.ndim(), shape, strides);
  if (tensor_address(object) == reinterpret_cast<uintptr_t>(rows.data)) {
    remember(object, true, rows);
  }
  return rows;
}

std::vector<int32_t> int32_values(nb::handle object) {
  Buffer buffer;
  if (PyObject_GetBuffer(object.ptr(), &buffer.view, PyBUF_ND | PyBUF_FORMAT)) {
    PyErr_Clear();
    throw nb::type_error("a program table must be a contiguous array of int32");
  }
  buffer.held = true;
  if (buffer.view.len != 0 && !is_int32(buffer.view)) {
    throw nb::type_error("a program table must be a contiguous array of int32");
  }
  std::vector<int32_t> values(static_cast<size_t>(buffer.view.len) / 4);
  if (!values.empty()) std::memcpy(values.data(), buffer.view.buf, values.size() * 4);
  return values;
}

}  // namespace constrain::bind
