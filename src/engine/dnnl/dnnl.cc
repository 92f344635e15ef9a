#include "engine/dnnl/dnnl.h"

#include "ops/broadcast.h"

namespace kilter::engine {

const dnnl::engine& cpu() {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
}

dnnl::memory::data_type dnnl_type(DType dtype) {
    using Type = dnnl::memory::data_type;
    switch (dtype) {
        case DType::f32:
            return Type::f32;
        case DType::f16:
            return Type::f16;
        case DType::bf16:
            return Type::bf16;
        case DType::i32:
            return Type::s32;
        case DType::i8:
            return Type::s8;
        case DType::u8:
            return Type::u8;
        default:
            return Type::undef;
    }
}

dnnl::memory::dims dnnl_dims(const Shape& shape) { return shape.empty() ? dnnl::memory::dims{1} : shape; }

dnnl::memory::desc dense_desc(DType dtype, const Shape& shape) {
    const dnnl::memory::data_type type = dnnl_type(dtype);
    if (type == dnnl::memory::data_type::undef || shape.size() > DNNL_MAX_NDIMS) return {};
    const dnnl::memory::dims dims = dnnl_dims(shape);
    return {dims, type, row_major_strides(dims)};
}

dnnl::memory::desc any_desc(DType dtype, const Shape& shape) {
    return {dnnl_dims(shape), dnnl_type(dtype), dnnl::memory::format_tag::any};
}

bool is_reference(const std::string& implementation) { return implementation.starts_with("ref"); }

}  // namespace kilter::engine
