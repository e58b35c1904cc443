// Masks on logits in CPU memory.
#include <nanobind/ndarray.h>

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings.hpp"
#include "constrain/apply.hpp"

namespace constrain::bind {
namespace {

// Two-dimensional, words and logits of a row next to each other (the caller saw to that).
void apply_bitmask(nb::ndarray<nb::ndim<2>, nb::device::cpu> logits,
                   nb::ndarray<const int32_t, nb::ndim<2>, nb::device::cpu> bitmask,
                   std::optional<nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig,
                                             nb::device::cpu>> rows) {
  const nb::dlpack::dtype dtype = logits.dtype();
  LogitType type;
  if (dtype == nb::dtype<float>()) {
    type = LogitType::kFloat32;
  } else if (dtype == nb::dtype<double>()) {
    type = LogitType::kFloat64;
  } else if (dtype.code == static_cast<uint8_t>(nb::dlpack::dtype_code::Float) &&
             dtype.bits == 16) {
    type = LogitType::kFloat16;
  } else if (dtype.code == static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat) &&
             dtype.bits == 16) {
    type = LogitType::kBfloat16;
  } else {
    throw nb::type_error("logits must be float16, bfloat16, float32 or float64");
  }
  const size_t width = logits.shape(1), words = bitmask.shape(1);
  if ((width > 1 && logits.stride(1) != 1) || (words > 1 && bitmask.stride(1) != 1)) {
    throw nb::value_error("the values of a row must lie next to each other");
  }
  const size_t count = rows ? rows->shape(0) : logits.shape(0);
  for (size_t i = 0; i < count; ++i) {
    const int64_t row = rows ? rows->data()[i] : static_cast<int64_t>(i);
    if (row < 0 || row >= static_cast<int64_t>(logits.shape(0)) ||
        row >= static_cast<int64_t>(bitmask.shape(0))) {
      throw nb::index_error("a row is out of range");
    }
  }
  auto* const values = static_cast<char*>(logits.data());
  const auto* const masks = reinterpret_cast<const uint32_t*>(bitmask.data());
  const auto row_bytes = logits.stride(0) * static_cast<int64_t>(logit_bytes(type));
  const int64_t mask_stride = bitmask.stride(0);
  const int64_t* const indices = rows ? rows->data() : nullptr;
  nb::gil_scoped_release release;
  for (size_t i = 0; i < count; ++i) {
    const int64_t row = indices ? indices[i] : static_cast<int64_t>(i);
    apply_row(values + row * row_bytes, type, width, masks + row * mask_stride, words);
  }
}

}  // namespace

void bind_logits(nb::module_& m) {
  m.def("apply_bitmask", &apply_bitmask, nb::arg("logits"), nb::arg("bitmask"),
        nb::arg("rows").none() = nb::none(),
        "In place: logits whose bit is 0, and those behind the bitmask, become -inf.");
}

}  // namespace constrain::bind
