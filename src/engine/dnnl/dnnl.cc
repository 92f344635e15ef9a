#include "engine/dnnl/dnnl.h"

#include "ops/broadcast.h"

namespace kilter::engine {

// Generated code is kept for programs that differ in a few operators only, as a search over precisions makes them; oneDNN's
// own limit of 1024 is a handful of large models.
constexpr int kKeptPrimitives = 8192;

const dnnl::engine& cpu() {
    static const dnnl::engine engine = [] {
        dnnl::set_primitive_cache_capacity(kKeptPrimitives);
        return dnnl::engine(dnnl::engine::kind::cpu, 0);
    }();
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

dnnl::memory::desc channels_last_desc(DType dtype, const Shape& shape) {
    Shape strides(shape.size());
    int64_t stride = 1;
    const auto place = [&](size_t axis) {
        strides[axis] = stride;
        stride *= shape[axis];
    };
    place(1);
    for (size_t axis = shape.size(); axis-- > 2;) place(axis);
    place(0);
    return {shape, dnnl_type(dtype), strides};
}

bool equivalent(const dnnl::memory::desc& a, const dnnl::memory::desc& b) {
    if (a == b) return true;
    if (a.is_zero() || b.is_zero() || a.get_data_type() != b.get_data_type() || a.get_dims() != b.get_dims())
        return false;
    if (a.get_format_kind() != dnnl::memory::format_kind::blocked ||
        b.get_format_kind() != dnnl::memory::format_kind::blocked || !a.get_inner_blks().empty() ||
        !b.get_inner_blks().empty())
        return false;
    const dnnl::memory::dims dims = a.get_dims();
    const dnnl::memory::dims left = a.get_strides();
    const dnnl::memory::dims right = b.get_strides();
    for (size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis] != 1 && left[axis] != right[axis]) return false;
    return true;
}

bool is_row_major(const dnnl::memory::desc& desc) {
    if (desc.is_zero() || desc.get_format_kind() != dnnl::memory::format_kind::blocked) return false;
    const dnnl::memory::dims dims = desc.get_dims();
    return equivalent(desc, {dims, desc.get_data_type(), row_major_strides(dims)});
}

bool is_packed(const dnnl::memory::desc& desc) {
    if (desc.is_zero() || desc.get_format_kind() != dnnl::memory::format_kind::blocked) return false;
    size_t bytes = dnnl::memory::data_type_size(desc.get_data_type());
    for (const auto dim : desc.get_padded_dims()) bytes *= static_cast<size_t>(dim);
    return bytes == desc.get_size();
}

bool is_reference(const std::string& implementation) { return implementation.starts_with("ref"); }

bool has_bf16() {
    static const bool found = [] {
        const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
        const auto wanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
        return (isa & wanted) == wanted;
    }();
    return found;
}

}  // namespace kilter::engine
