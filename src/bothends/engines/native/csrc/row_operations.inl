// Everything between two products, row by row, over the vectors of one instruction set.
//
// Included by each `kernels_<name>.cc` inside its namespace, after its vector. Rounding to integers is
// that of ONNX's QuantizeLinear: divide, round half to even, clamp.

// Call `whole(i)` for every full vector of `n` numbers and `rest(i, count)` for what remains.
template <typename Whole, typename Rest>
inline void over_row(int n, Whole whole, Rest rest) {
  int i = 0;
  for (; i + kWidth <= n; i += kWidth) whole(i);
  if (i < n) rest(i, n - i);
}

// e^x to a relative error of 2e-7; 0 and infinity are approached, not reached.
inline Vector exponential(Vector x) {
  x = smaller(larger(x, set(-87.0f)), set(88.0f));
  const Vector n = round_even(x * set(1.44269504088896341f));
  // ln 2 in two parts, so that n * ln 2 is exact to more than a float
  Vector r = multiply_add(n, set(-0.693359375f), x);
  r = multiply_add(n, set(2.12194440e-4f), r);
  // Of all polynomials 1 + r + ..., the one with the least relative error (1e-7) for |r| < ln 2 / 2
  Vector p = set(8.312525228e-3f);
  p = multiply_add(p, r, set(4.189011455e-2f));
  p = multiply_add(p, r, set(1.666711420e-1f));
  p = multiply_add(p, r, set(4.999923110e-1f));
  p = multiply_add(p, r, set(1.0f));
  p = multiply_add(p, r, set(1.0f));
  return scale_by_power(p, n);
}

// Bytes of `row / scale + zero_point`, each between `lowest` and 255, padded to whole vectors.
inline void round_row(const float* x, int n, float scale, float zero_point, uint8_t* values) {
  const Vector divisor = set(scale), zero = set(zero_point);
  const Vector lowest = set(-zero_point), highest = set(255.0f - zero_point);
  const auto rounded = [&](Vector v) {
    return round_even(smaller(larger(v / divisor, lowest), highest)) + zero;
  };
  over_row(
      n, [&](int i) { store_bytes(values + i, rounded(load(x + i))); },
      [&](int i, int count) { store_bytes(values + i, rounded(load_some(x + i, count))); });
}

// The largest number of a row. A maximum passes over what is not a number, which must not be lost: a
// damaged model would go on with zeros. So each number times 0 is summed too.
struct Largest {
  Vector most = set(0.0f), poison = set(0.0f);

  void take(Vector size, Vector number) {
    most = larger(size, most);
    poison = multiply_add(number, set(0.0f), poison);
  }
  float value() const { return largest_of(most) + sum_of(poison); }
};

void quantise(const float* x, int n, uint8_t* values, float* scale) {
  Largest largest;
  const auto take = [&](Vector v) { largest.take(absolute(v), v); };
  over_row(
      n, [&](int i) { take(load(x + i)); },
      [&](int i, int count) { take(load_some(x + i, count)); });
  *scale = largest.value() * (1.0f / 127.0f);
  // A row of zeros has scale 0: any values do, and 0 / 0 is better avoided.
  round_row(x, n, *scale == 0.0f ? 1.0f : *scale, 128.0f, values);
}

void quantise_relu(const float* x, int n, uint8_t* values, float* scale) {
  Largest largest;
  const auto take = [&](Vector v) { largest.take(v, v); };
  over_row(
      n, [&](int i) { take(load(x + i)); },
      [&](int i, int count) { take(load_some(x + i, count)); });
  *scale = largest.value() * (1.0f / 255.0f);
  round_row(x, n, *scale == 0.0f ? 1.0f : *scale, 0.0f, values);
}

void normalise(const float* x, Norm norm, int n, float* out, uint8_t* values, float* scale) {
  constexpr float kEpsilon = 1e-5f;
  Vector sum = set(0.0f);
  over_row(
      n, [&](int i) { sum = sum + load(x + i); },
      [&](int i, int count) { sum = sum + load_some(x + i, count); });
  const float mean = sum_of(sum) / static_cast<float>(n);
  const Vector centre = set(mean);
  Vector squares = set(0.0f);
  over_row(
      n,
      [&](int i) {
        const Vector d = load(x + i) - centre;
        squares = multiply_add(d, d, squares);
      },
      [&](int i, int count) {
        float tail[kWidth] = {};
        for (int j = 0; j < count; ++j) tail[j] = x[i + j] - mean;
        const Vector d = load(tail);
        squares = multiply_add(d, d, squares);
      });
  const float deviation = std::sqrt(sum_of(squares) / static_cast<float>(n) + kEpsilon);
  const Vector inverse = set(1.0f / deviation);
  Largest largest;
  over_row(
      n,
      [&](int i) {
        const Vector v = multiply_add((load(x + i) - centre) * inverse, load(norm.gain + i),
                                      load(norm.shift + i));
        store(out + i, v);
        largest.take(absolute(v), v);
      },
      [&](int i, int count) {
        const Vector v = multiply_add((load_some(x + i, count) - centre) * inverse,
                                      load_some(norm.gain + i, count),
                                      load_some(norm.shift + i, count));
        store_some(out + i, v, count);
        largest.take(absolute(v), v);  // lanes past the end have no gain and no shift: 0
      });
  *scale = largest.value() * (1.0f / 127.0f);
  round_row(out, n, *scale == 0.0f ? 1.0f : *scale, 128.0f, values);
}

// erf to 1.5e-7 (Abramowitz and Stegun 7.1.26), for |x|; the sign is put back by the caller.
inline Vector error_function(Vector x) {
  const Vector t = set(1.0f) / multiply_add(set(0.3275911f), x, set(1.0f));
  Vector p = set(1.061405429f);
  p = multiply_add(p, t, set(-1.453152027f));
  p = multiply_add(p, t, set(1.421413741f));
  p = multiply_add(p, t, set(-0.284496736f));
  p = multiply_add(p, t, set(0.254829592f));
  return set(1.0f) - p * t * exponential(set(0.0f) - x * x);
}

inline Vector gelu(Vector x) {
  // x Phi(x) = (x + |x| erf(|x| / sqrt 2)) / 2, because erf is odd
  const Vector size = absolute(x);
  return set(0.5f) * multiply_add(size, error_function(size * set(0.70710678f)), x);
}

inline Vector silu(Vector x) { return x / (set(1.0f) + exponential(set(0.0f) - x)); }

void activate(float* x, int n, Activation activation) {
  // Rows are padded to whole vectors: what stands there is written to and never read.
  for (int i = 0; i < n; i += kWidth) {
    const Vector v = load(x + i);
    switch (activation) {
      case Activation::relu: store(x + i, larger(v, set(0.0f))); break;
      case Activation::gelu: store(x + i, gelu(v)); break;
      case Activation::silu: store(x + i, silu(v)); break;
    }
  }
}

void embed(const int8_t* values, float scale, const float* encoding, int n, float* out) {
  const Vector factor = set(scale);
  int i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    store(out + i, load_bytes(values + i) * factor + load(encoding + i));
  }
  for (; i < n; ++i) out[i] = static_cast<float>(values[i]) * scale + encoding[i];
}

// --- attention ---

// Scores become shares that sum to 1.
inline void softmax(float* scores, int count) {
  Vector most = set(-INFINITY);
  over_row(
      count, [&](int i) { most = larger(load(scores + i), most); },
      [&](int i, int some) {
        for (int j = i; j < i + some; ++j) most = larger(set(scores[j]), most);
      });
  const Vector largest = set(largest_of(most));
  Vector sum = set(0.0f);
  over_row(
      count,
      [&](int i) {
        const Vector share = exponential(load(scores + i) - largest);
        store(scores + i, share);
        sum = sum + share;
      },
      [&](int i, int some) {
        store(scores + i, exponential(load(scores + i) - largest));  // scratch goes on past the end
        sum = sum + load_some(scores + i, some);
      });
  const Vector inverse = set(1.0f / sum_of(sum));
  for (int i = 0; i < count; i += kWidth) store(scores + i, load(scores + i) * inverse);
}

inline const float* entry(const Entries& entries, int t) {
  return entries.base + entries.stride * static_cast<size_t>(entries.indices ? entries.indices[t] : t);
}

// One head of `kVectors` full vectors, which stay in registers.
template <int kVectors>
inline void attend_head(const float* query, const Entries& entries, size_t first, float* scores,
                        float* out) {
  Vector q[kVectors], sum[kVectors];
  for (int v = 0; v < kVectors; ++v) q[v] = load(query + v * kWidth);
  for (int t = 0; t < entries.count; ++t) {
    const float* key = entry(entries, t) + first;
    Vector products = q[0] * load(key);
    for (int v = 1; v < kVectors; ++v) {
      products = multiply_add(q[v], load(key + v * kWidth), products);
    }
    scores[t] = sum_of(products);
  }
  softmax(scores, entries.count);
  for (int v = 0; v < kVectors; ++v) sum[v] = set(0.0f);
  for (int t = 0; t < entries.count; ++t) {
    const float* value = entry(entries, t) + entries.value_offset + first;
    const Vector share = set(scores[t]);
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = multiply_add(share, load(value + v * kWidth), sum[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) store(out + v * kWidth, sum[v]);
}

// One head of any width.
inline void attend_odd_head(const float* query, const Entries& entries, size_t first, int width,
                            float* scores, float* out) {
  for (int t = 0; t < entries.count; ++t) {
    const float* key = entry(entries, t) + first;
    Vector products = set(0.0f);
    over_row(
        width,
        [&](int i) { products = multiply_add(load(query + i), load(key + i), products); },
        [&](int i, int some) {
          products = multiply_add(load_some(query + i, some), load_some(key + i, some), products);
        });
    scores[t] = sum_of(products);
  }
  softmax(scores, entries.count);
  for (int i = 0; i < width; ++i) out[i] = 0.0f;
  for (int t = 0; t < entries.count; ++t) {
    const float* value = entry(entries, t) + entries.value_offset + first;
    for (int i = 0; i < width; ++i) out[i] += scores[t] * value[i];
  }
}

void attend(const float* query, const Entries& entries, int heads, int head_width, float* scores,
            float* out) {
  for (int head = 0; head < heads; ++head) {
    const size_t first = static_cast<size_t>(head) * head_width;
    switch (head_width % kWidth == 0 ? head_width / kWidth : 0) {
      case 1: attend_head<1>(query + first, entries, first, scores, out + first); break;
      case 2: attend_head<2>(query + first, entries, first, scores, out + first); break;
      case 4: attend_head<4>(query + first, entries, first, scores, out + first); break;
      case 8: attend_head<8>(query + first, entries, first, scores, out + first); break;
      default: attend_odd_head(query + first, entries, first, head_width, scores, out + first);
    }
  }
}

// --- words ---

// Put a word where it belongs in a list of falling logits. Of equals the one that came first stays
// ahead, which is the one of the lower id.
inline void insert_word(BestWords* best, float logit, int32_t id) {
  int place = best->found < best->wanted ? best->found++ : best->wanted - 1;
  for (; place > 0 && best->logits[place - 1] < logit; --place) {
    best->logits[place] = best->logits[place - 1];
    best->ids[place] = best->ids[place - 1];
  }
  best->logits[place] = logit;
  best->ids[place] = id;
}

void scan_words(const float* logits, int n, int first_id, BestWords* best) {
  constexpr int kStretch = 4 * kWidth;
  Vector all = set(-INFINITY);
  for (int i = 0; i < n; i += kStretch) {
    const int count = n - i < kStretch ? n - i : kStretch;
    Vector most = set(-INFINITY);
    if (count == kStretch) {
      for (int v = 0; v < 4; ++v) most = larger(load(logits + i + v * kWidth), most);
    } else {
      for (int j = i; j < i + count; ++j) most = larger(set(logits[j]), most);
    }
    all = larger(most, all);
    if (best->wanted == 0) continue;  // only the sum is wanted
    const float threshold =
        best->found < best->wanted ? -INFINITY : best->logits[best->wanted - 1];
    if (!any_above(most, threshold)) continue;
    for (int j = i; j < i + count; ++j) {
      const bool better = best->found < best->wanted ? logits[j] > -INFINITY
                                                     : logits[j] > best->logits[best->wanted - 1];
      if (better) insert_word(best, logits[j], first_id + j);
    }
  }
  const float largest = largest_of(all);
  if (largest > best->largest) {
    // exp(-infinity) is 0: nothing has been summed before the first words
    best->sum *= std::exp(static_cast<double>(best->largest) - largest);
    best->largest = largest;
  }
  if (!(best->largest > -INFINITY)) return;
  const Vector reference = set(best->largest);
  Vector sum = set(0.0f);
  double rest = 0;
  over_row(
      n, [&](int i) { sum = sum + exponential(load(logits + i) - reference); },
      [&](int i, int count) {
        for (int j = i; j < i + count; ++j) rest += std::exp(logits[j] - best->largest);
      });
  best->sum += static_cast<double>(sum_of(sum)) + rest;
}
