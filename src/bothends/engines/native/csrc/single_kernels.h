// Kernels of one instruction set by themselves, for tests.
#pragma once

#include <pybind11/pybind11.h>

namespace bothends {

// Adds `multiply` and `quantise` to the module.
void define_single_kernels(pybind11::module_& module);

}  // namespace bothends
