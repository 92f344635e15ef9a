// NumPy's .npy files: one tensor with its type and shape.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "kilter/base/tensor.h"

namespace kilter {

//! Any byte order and memory order; numbers, booleans and strings. Throws Error that names the file and what is wrong with it.
Tensor read_npy(const std::filesystem::path& path);

//! Every array of a .npz file, as numpy.savez or savez_compressed writes it, by name.
std::map<std::string, Tensor> read_npz(const std::filesystem::path& path);

//! Written aside and renamed. NumPy has no 4-bit integers and no floats of 8 bits or bfloat16: they are widened to i8, u8 and f32.
void write_npy(const Tensor& tensor, const std::filesystem::path& path);

}  // namespace kilter
