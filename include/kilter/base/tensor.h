// Tensor: a typed, shaped, dense (row-major) piece of memory that is owned, mapped from a file, or a view.
// Copying a Tensor shares its storage; clone() copies the data. Storage stays alive as long as a Tensor uses it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kilter/base/dtype.h"

namespace kilter {

using Shape = std::vector<int64_t>;

//! Number of elements; throws Error when a dimension is negative or the product overflows.
int64_t element_count(std::span<const int64_t> shape);
//! "2x3x224x224"; "scalar" for rank 0.
std::string to_string(const Shape& shape);

class Tensor {
  public:
    Tensor() = default;
    //! Owned, 64-byte aligned, not initialised (string tensors hold empty strings).
    Tensor(DType dtype, Shape shape);

    //! Memory of the caller, which must outlive the tensor and every copy of it.
    static Tensor view(DType dtype, Shape shape, void* data);
    static Tensor view(DType dtype, Shape shape, const void* data);
    //! Read-only memory kept alive by `keeper`, e.g. a mapped file. `data` may have any alignment.
    static Tensor mapped(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> keeper);
    //! Writable memory kept alive by `keeper`.
    static Tensor adopted(DType dtype, Shape shape, void* data, std::shared_ptr<const void> keeper);
    static Tensor strings(Shape shape, std::vector<std::string> values);
    //! A list of tensors. It travels through a graph as if it were a tensor of rank one whose elements are tensors.
    static Tensor sequence(std::vector<Tensor> items);
    //! An optional value that is absent; unlike an empty Tensor, it is a value.
    static Tensor nothing() { return {DType::nothing, {0}}; }

    template <class T>
    static Tensor of(Shape shape, const std::vector<T>& values);
    template <class T>
    static Tensor scalar(T value) {
        return of<T>({}, std::vector<T>{value});
    }
    static Tensor filled(DType dtype, Shape shape, double value);

    DType dtype() const { return dtype_; }
    const Shape& shape() const { return shape_; }
    int rank() const { return static_cast<int>(shape_.size()); }
    int64_t dim(int axis) const { return shape_[axis < 0 ? axis + shape_.size() : axis]; }
    int64_t size() const { return size_; }
    size_t bytes() const;
    bool empty() const { return dtype_ == DType::undefined; }  // holds no tensor at all
    bool writable() const { return writable_; }

    //! The bytes as stored; may be unaligned when mapped. Null for tensors without elements and for strings.
    const void* raw() const { return data_; }
    void* raw_mutable();

    //! Typed elements. Throws Error when T is not the element type. A misaligned mapped tensor is copied once, on first use.
    template <class T>
    std::span<const T> as() const {
        return {static_cast<const T*>(typed(dtype_of<T>)), static_cast<size_t>(size_)};
    }
    template <class T>
    std::span<T> as_mutable() {
        return {static_cast<T*>(typed_mutable(dtype_of<T>)), static_cast<size_t>(size_)};
    }
    const std::vector<std::string>& as_strings() const;
    std::vector<std::string>& as_strings_mutable();
    const std::vector<Tensor>& as_sequence() const;

    Tensor clone() const;
    //! Shares the storage under another shape with as many elements.
    Tensor reshaped(Shape shape) const;
    //! Element-wise conversion (numpy semantics: floats truncate towards zero; to boolean: != 0).
    Tensor converted(DType dtype) const;
    //! Elements of any integer or boolean type as int64; throws for others.
    std::vector<int64_t> to_ints() const;
    //! Elements of any numeric type as double.
    std::vector<double> to_doubles() const;
    //! Do both tensors refer to the same bytes?
    bool same_storage(const Tensor& other) const {
        return data_ == other.data_ && storage_ == other.storage_;
    }

  private:
    struct Storage;
    const void* typed(DType dtype) const;
    void* typed_mutable(DType dtype);

    DType dtype_ = DType::undefined;
    bool writable_ = false;
    Shape shape_;
    int64_t size_ = 0;
    const void* data_ = nullptr;
    std::shared_ptr<const Storage> storage_;
};

//! Equal type, shape and bytes.
bool identical(const Tensor& a, const Tensor& b);

}  // namespace kilter
