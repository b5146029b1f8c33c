// Weights are fetched before they are needed: a core waits for memory far longer than it multiplies.
//
// Into the second-level cache: the first is too small for what is under way, and its own prefetcher
// brings the rest. Distances were measured on 40 MB of weights. With so few rows that memory is the
// limit, 1 kB ahead is best; where multiplying takes as long, 16 kB leave memory more time.
//
// Not where the weights of all steps stay in the third-level cache of a processor whose own prefetcher
// is quicker alone (`reads_cache_sooner_alone`).

// What a block of rows fetches while it goes through a panel.
struct Ahead {
  static constexpr int kNear = 1024, kFar = 16384;

  // Block `b` of `blocks` that go through `panel` one after another. A single one fetches ahead of
  // itself. Several find the panel in the cache after the first, so each of them fetches its share of
  // the next panel, and memory is busy all the time.
  Ahead(const PackedMatrix& matrix, int panel, int b, int blocks, bool multiplies_long)
      : step(64 / blocks) {
    const size_t bytes = matrix.panel_bytes();
    from = reinterpret_cast<const char*>(matrix.panel_values(panel)) +
           (blocks > 1 ? bytes + bytes / 64 * step * b : multiplies_long ? kFar : kNear);
  }

  // Called for every 64 bytes of a panel, with their number in it.
  void fetch(int line) const { _mm_prefetch(from + line * step, _MM_HINT_T1); }

  const char* from;
  int step;  // bytes fetched for every 64 bytes read
};

struct NothingAhead {
  NothingAhead(const PackedMatrix&, int, int, int, bool) {}
  void fetch(int) const {}
};
