#include "instruction_set.h"

#include <cstring>
#include <stdexcept>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace bothends {

namespace {

using Choice = std::pair<std::string, const Kernels*>;

#if defined(__x86_64__)

bool bit(unsigned value, int number) { return (value >> number) & 1; }

// Registers that the system saves when it changes threads: XCR0.
unsigned saved_registers() {
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Tiles are 8 kB of state: Linux gives them to a process that asks.
[[maybe_unused]] bool may_use_tiles() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

std::vector<Choice> find_x86_kernels() {
  std::vector<Choice> found;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !bit(c, 27)) return found;  // the system uses XSAVE
  const bool fma = bit(c, 12);
  const unsigned saved = saved_registers();
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  const bool avx_state = (saved & 0x6) == 0x6, avx512_state = (saved & 0xe6) == 0xe6;
  const bool avx2 = avx_state && fma && bit(b, 5);
  const bool avx512 = avx2 && avx512_state && bit(b, 16) && bit(b, 17) && bit(b, 30) && bit(b, 31);
  const bool avx512_vnni = avx512 && bit(c, 11);
  [[maybe_unused]] const bool tiles = bit(d, 24) && bit(d, 25) && (saved & 0x60000) == 0x60000;
  if (avx2) found.emplace_back("avx2", &kAvx2Kernels);
  if (avx512_vnni) found.emplace_back("vnni", &kAvx512VnniKernels);
#if defined(BOTHENDS_AVXVNNI)
  const bool avx_vnni = avx2 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && bit(a, 4);
  if (!avx512_vnni && avx_vnni) found.emplace_back("vnni", &kAvxVnniKernels);
#endif
#if defined(BOTHENDS_AMX)
  // The size of a tile is the architecture's. CPUID tells it too, but virtual machines leave it out.
  if (avx512_vnni && tiles && may_use_tiles()) found.emplace_back("amx", &kAmxKernels);
#endif
  return found;
}

// AMD, by the name that the processor gives.
bool is_amd() {
  unsigned most, name[3];
  return __get_cpuid(0, &most, &name[0], &name[2], &name[1]) &&
         std::memcmp(name, "AuthenticAMD", sizeof name) == 0;
}

#endif

const std::vector<Choice>& choices() {
  static const std::vector<Choice> found = [] {
    std::vector<Choice> all = {{"portable", &kPortableKernels}};
#if defined(__x86_64__)
    for (Choice& choice : find_x86_kernels()) all.push_back(std::move(choice));
#endif
    return all;
  }();
  return found;
}

}  // namespace

std::vector<std::string> available_instruction_sets() {
  std::vector<std::string> names;
  for (const Choice& choice : choices()) names.push_back(choice.first);
  return names;
}

const Kernels& choose_kernels(const std::string& name) {
  if (name.empty()) return *choices().back().second;
  for (const Choice& choice : choices()) {
    if (choice.first == name) return *choice.second;
  }
#if defined(__x86_64__)
  for (const Choice& choice : choices()) {
    if (name == "amx-emulated" && choice.second == &kAvx512VnniKernels) return kAmxEmulatedKernels;
  }
#endif
  throw std::invalid_argument("no kernels for " + name);
}

bool reads_cache_sooner_alone() {
#if defined(__x86_64__)
  // One core of Zen 4 reads 5 MB again and again at 101 GB/s, and at 83 GB/s with instructions that
  // fetch ahead. Cascade Lake, whose third-level cache is farther away, is quicker with them.
  static const bool alone = is_amd();
  return alone;
#else
  return false;
#endif
}

}  // namespace bothends
