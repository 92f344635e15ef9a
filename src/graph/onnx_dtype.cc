#include "graph/onnx_dtype.h"

#include <algorithm>
#include <array>

#include "base/fail.h"

namespace kilter {
namespace {

// The position is the code.
constexpr std::array<DType, 27> kByCode{
    DType::undefined,  DType::f32,    DType::u8,         DType::i8,         DType::u16,  DType::i16,
    DType::i32,        DType::i64,    DType::string,     DType::boolean,    DType::f16,  DType::f64,
    DType::u32,        DType::u64,    DType::complex64,  DType::complex128, DType::bf16, DType::f8e4m3fn,
    DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::u4,         DType::i4,   DType::f4e2m1,
    DType::f8e8m0,     DType::u2,     DType::i2,
};

}  // namespace

bool is_onnx_dtype(int64_t code) { return code > 0 && code < static_cast<int64_t>(kByCode.size()); }

DType dtype_from_onnx(int64_t code) {
    require(is_onnx_dtype(code), "{} is not an ONNX element type", code);
    return kByCode[static_cast<size_t>(code)];
}

int64_t onnx_code(DType dtype) { return std::ranges::find(kByCode, dtype) - kByCode.begin(); }

}  // namespace kilter
