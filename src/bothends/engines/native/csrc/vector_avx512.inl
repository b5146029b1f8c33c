// Sixteen floats in an AVX-512 register. See vector_portable.inl for what the operations mean.

constexpr int kWidth = 16;

struct Vector {
  __m512 lanes;
};

inline __mmask16 first_lanes(int count) {
  return static_cast<__mmask16>((1u << count) - 1);
}
inline Vector set(float value) { return {_mm512_set1_ps(value)}; }
inline Vector load(const float* from) { return {_mm512_loadu_ps(from)}; }
inline Vector load_some(const float* from, int count) {
  return {_mm512_maskz_loadu_ps(first_lanes(count), from)};
}
inline Vector load_bytes(const int8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}
inline void store(float* to, Vector v) { _mm512_storeu_ps(to, v.lanes); }
inline void store_some(float* to, Vector v, int count) {
  _mm512_mask_storeu_ps(to, first_lanes(count), v.lanes);
}
inline Vector operator+(Vector a, Vector b) { return {_mm512_add_ps(a.lanes, b.lanes)}; }
inline Vector operator-(Vector a, Vector b) { return {_mm512_sub_ps(a.lanes, b.lanes)}; }
inline Vector operator*(Vector a, Vector b) { return {_mm512_mul_ps(a.lanes, b.lanes)}; }
inline Vector operator/(Vector a, Vector b) { return {_mm512_div_ps(a.lanes, b.lanes)}; }
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  return {_mm512_fmadd_ps(a.lanes, b.lanes, c.lanes)};
}
inline Vector larger(Vector a, Vector b) { return {_mm512_max_ps(a.lanes, b.lanes)}; }
inline Vector smaller(Vector a, Vector b) { return {_mm512_min_ps(a.lanes, b.lanes)}; }
inline Vector absolute(Vector a) { return {_mm512_abs_ps(a.lanes)}; }
inline Vector round_even(Vector a) {
  return {_mm512_roundscale_ps(a.lanes, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Vector scale_by_power(Vector a, Vector n) { return {_mm512_scalef_ps(a.lanes, n.lanes)}; }
inline void store_bytes(uint8_t* to, Vector a) {
  const __m512i whole = _mm512_cvtps_epi32(a.lanes);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtusepi32_epi8(whole));
}
inline float sum_of(Vector a) { return _mm512_reduce_add_ps(a.lanes); }
inline float largest_of(Vector a) { return _mm512_reduce_max_ps(a.lanes); }
inline bool any_above(Vector a, float limit) {
  return _mm512_cmp_ps_mask(a.lanes, _mm512_set1_ps(limit), _CMP_GT_OQ) != 0;
}
