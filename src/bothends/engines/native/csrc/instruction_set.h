// Which kernels this processor can run, and which of them are to run.
#pragma once

#include <string>
#include <vector>

#include "kernels.h"

namespace bothends {

// The names that BOTHENDS_ISA knows, slowest first: those that this processor and system can run.
std::vector<std::string> available_instruction_sets();

// The kernels called `name` ("portable", "avx2", "vnni", "amx"), or the fastest if it is empty.
// Throws std::invalid_argument where there are none.
const Kernels& choose_kernels(const std::string& name);

// Whether weights that stay in the third-level cache arrive sooner if nothing is fetched ahead.
bool reads_cache_sooner_alone();

}  // namespace bothends
