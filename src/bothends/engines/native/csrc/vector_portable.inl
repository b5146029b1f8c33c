// A vector of floats in plain C++: the meaning of the operations that the other vectors have too.

constexpr int kWidth = 8;

struct Vector {
  float lane[kWidth];
};

#define FOR_LANES for (int i = 0; i < kWidth; ++i)

inline Vector set(float value) {
  Vector v;
  FOR_LANES v.lane[i] = value;
  return v;
}
inline Vector load(const float* from) {
  Vector v;
  FOR_LANES v.lane[i] = from[i];
  return v;
}
// The first `count` lanes; the others are zero.
inline Vector load_some(const float* from, int count) {
  Vector v;
  FOR_LANES v.lane[i] = i < count ? from[i] : 0.0f;
  return v;
}
inline Vector load_bytes(const int8_t* from) {
  Vector v;
  FOR_LANES v.lane[i] = from[i];
  return v;
}
inline void store(float* to, Vector v) { FOR_LANES to[i] = v.lane[i]; }
inline void store_some(float* to, Vector v, int count) {
  for (int i = 0; i < count; ++i) to[i] = v.lane[i];
}
inline Vector operator+(Vector a, Vector b) {
  FOR_LANES a.lane[i] += b.lane[i];
  return a;
}
inline Vector operator-(Vector a, Vector b) {
  FOR_LANES a.lane[i] -= b.lane[i];
  return a;
}
inline Vector operator*(Vector a, Vector b) {
  FOR_LANES a.lane[i] *= b.lane[i];
  return a;
}
inline Vector operator/(Vector a, Vector b) {
  FOR_LANES a.lane[i] /= b.lane[i];
  return a;
}
// a * b + c
inline Vector multiply_add(Vector a, Vector b, Vector c) {
  FOR_LANES c.lane[i] += a.lane[i] * b.lane[i];
  return c;
}
// Where `a` is not a number, `b`.
inline Vector larger(Vector a, Vector b) {
  FOR_LANES a.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
  return a;
}
inline Vector smaller(Vector a, Vector b) {
  FOR_LANES a.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
  return a;
}
inline Vector absolute(Vector a) {
  FOR_LANES a.lane[i] = a.lane[i] < 0 ? -a.lane[i] : a.lane[i];
  return a;
}
// Half to even, for |a| < 2^22.
inline Vector round_even(Vector a) {
  FOR_LANES {
    volatile float shifted = a.lane[i] + 12582912.0f;  // 1.5 * 2^23: no bits are left for fractions
    a.lane[i] = shifted - 12582912.0f;
  }
  return a;
}
// a * 2^n for a whole number -126 <= n <= 127.
inline Vector scale_by_power(Vector a, Vector n) {
  FOR_LANES {
    const uint32_t bits = static_cast<uint32_t>(static_cast<int32_t>(n.lane[i]) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    a.lane[i] *= power;
  }
  return a;
}
// Whole numbers from 0 to 255 as bytes.
inline void store_bytes(uint8_t* to, Vector a) {
  FOR_LANES to[i] = static_cast<uint8_t>(a.lane[i]);
}
inline float sum_of(Vector a) {
  float sum = 0;
  FOR_LANES sum += a.lane[i];
  return sum;
}
inline float largest_of(Vector a) {
  float largest = a.lane[0];
  FOR_LANES largest = a.lane[i] > largest ? a.lane[i] : largest;
  return largest;
}
inline bool any_above(Vector a, float limit) {
  bool any = false;
  FOR_LANES any = any || a.lane[i] > limit;
  return any;
}

#undef FOR_LANES
