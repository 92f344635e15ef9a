#include "engine/dnnl/views.h"

namespace kilter::engine {

using Desc = dnnl::memory::desc;

Desc transposed(const Desc& desc) {
    std::vector<int> permutation(static_cast<size_t>(desc.get_ndims()));
    for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<int>(i);
    std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
    return desc.permute_axes(permutation);
}

Desc with_rank(const Desc& desc, size_t rank) {
    dnnl::memory::dims dims = desc.get_dims();
    if (dims.size() == rank) return desc;
    dims.insert(dims.begin(), rank - dims.size(), 1);
    return desc.reshape(dims);
}

Array plain(Builder& builder, const Value* value) {
    const Array array = builder.any(value);
    const bool strided = array.desc.get_format_kind() == dnnl::memory::format_kind::blocked &&
                         array.desc.get_inner_blks().empty();
    return strided ? array : builder.dense(value);
}

Array fitted(Builder& builder, const Array& array, const Desc& seen, const Desc& wanted) {
    Array source = array;
    source.desc = seen;
    if (seen == wanted) return source;
    const Array copy = builder.temporary(array.dtype, array.shape, wanted);
    builder.add_reorder(source, copy);
    return copy;
}

}  // namespace kilter::engine
