// Eight floats in an AVX2 register. See vector_portable.inl for what the operations mean.

constexpr int kWidth = 8;

struct Vector {
  __m256 lanes;
};

inline __m256i first_lanes(int count) {
  const __m256i number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), number);
}
inline Vector set(float value) { return {_mm256_set1_ps(value)}; }
inline Vector load(const float* from) { return {_mm256_loadu_ps(from)}; }
inline Vector load_some(const float* from, int count) {
  return {_mm256_maskload_ps(from, first_lanes(count))};
}
inline Vector load_bytes(const int8_t* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))};
}
inline void store(float* to, Vector v) { _mm256_storeu_ps(to, v.lanes); }
inline void store_some(float* to, Vector v, int count) {
  _mm256_maskstore_ps(to, first_lanes(count), v.lanes);
}
inline Vector operator+(Vector a, Vector b) { return {_mm256_add_ps(a.lanes, b.lanes)}; }
inline Vector operator-(Vector a, Vector b) { return {_mm256_sub_ps(a.lanes, b.lanes)}; }
inline Vector operator*(Vector a, Vector b) { return {_mm256_mul_ps(a.lanes, b.lanes)}; }
inline Vector operator/(Vector a, Vector b) { return {_mm256_div_ps(a.lanes, b.lanes)}; }
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return {_mm256_fmadd_ps(a.lanes, b.lanes, c.lanes)};
}
inline Vector larger(Vector a, Vector b) { return {_mm256_max_ps(a.lanes, b.lanes)}; }
inline Vector smaller(Vector a, Vector b) { return {_mm256_min_ps(a.lanes, b.lanes)}; }
inline Vector absolute(Vector a) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.lanes)};
}
inline Vector round_even(Vector a) {
  return {_mm256_round_ps(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Vector scale_by_power(Vector a, Vector n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n.lanes), _mm256_set1_epi32(127));
  return {_mm256_mul_ps(a.lanes, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)))};
}
inline void store_bytes(uint8_t* to, Vector a) {
  const __m256i whole = _mm256_cvtps_epi32(a.lanes);
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}
inline float sum_of(Vector a) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(a.lanes), _mm256_extractf128_ps(a.lanes, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
inline float largest_of(Vector a) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(a.lanes), _mm256_extractf128_ps(a.lanes, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}
inline bool any_above(Vector a, float limit) {
  return _mm256_movemask_ps(_mm256_cmp_ps(a.lanes, _mm256_set1_ps(limit), _CMP_GT_OQ)) != 0;
}
