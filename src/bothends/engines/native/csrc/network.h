// The network: its shape, and its weights packed for the kernels at hand. Never changes once loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels.h"
#include "memory.h"
#include "weight_file.h"

namespace bothends {

// What a table of sinusoids was stored in, and so is rounded to.
enum class Rounding { none, float16, bfloat16 };

struct Configuration {
  int source_words = 0, target_words = 0;
  int encoder_layers = 0, decoder_layers = 0;
  int width = 0, heads = 0, feed_forward = 0;
  int direction_embeddings = 0;  // 0: the order has none
  Activation activation = Activation::relu;
  bool pre_norm = false, embedding_scale = true;
  bool output_bias = false;
  bool halves = false;  // sinusoids: all sines before all cosines
  int last_pair = 1;    // the pair of a sinusoid, there or beyond the last, with wavelength 10000
  Rounding sinusoid_precision = Rounding::none;
  int position_offset = 0;

  int head_width() const { return width / heads; }
};

// Names of the arrays of each file, in the order in which the network reads them. They come from the
// description of the network, `bothends.model.spec`; nothing here spells one.
struct ArrayNames {
  std::vector<std::string> encoder, decoder;
};

// Rows of a word matrix as they lie in the file, for looking words up.
struct Embedding {
  const int8_t* values = nullptr;  // (words, width)
  std::vector<float> scales;       // (words,), the factor sqrt(width) among them
};

struct FeedForward {
  PackedMatrix inner, outer;
  Norm norm;
};

// Queries apart from keys and values: the latter go straight to where attention reads them.
struct SelfAttention {
  PackedMatrix query, key_value, output;
  Norm norm;
};

struct CrossAttention {
  PackedMatrix query, output;
  PackedMatrix key_value;  // of the source; used when a sentence is read
  Norm norm;
};

struct EncoderLayer {
  SelfAttention self;
  FeedForward feed_forward;
};

struct DecoderLayer {
  SelfAttention self;
  CrossAttention cross;
  FeedForward feed_forward;
};

class Network {
 public:
  // Throws DamagedFile, its message beginning with the file's path.
  Network(const std::string& encoder_path, const std::string& decoder_path,
          const Configuration& configuration, const ArrayNames& names, const Kernels& kernels);

  const Configuration configuration;
  const Kernels& kernels;

  Embedding source_embedding, target_embedding;
  std::vector<float> direction_embedding;  // (directions, width)
  std::vector<EncoderLayer> encoder;
  std::vector<DecoderLayer> decoder;
  Norm encoder_norm, decoder_norm;  // with pre-norm only
  PackedMatrix output;
  PlainMatrix plain_output;  // the same, where it lies in the file
  std::vector<uint8_t> wide_output;  // and which of its pairs are wide: see `pack`

  // Floats from one row of activations to the next: whole panels and whole vectors fit.
  size_t width_stride() const { return round_up(configuration.width, 64); }
  // From one entry of keys and values to the next. Not a power of two: entries would otherwise all
  // fall into the same few lines of the cache.
  size_t entry_stride() const { return round_up(2 * configuration.width, 64) + 16; }
  // The sinusoid of a position, `width` floats; `scratch` is written to if the table has none.
  const float* encoding(int64_t position, float* scratch) const;

 private:
  class Loader;
  void write_encoding(int64_t position, float* out) const;

  // The encoder may point into the decoder's file, which is therefore destroyed after it.
  std::unique_ptr<WeightFile> decoder_file_, encoder_file_;
  Bytes encoder_weights_, decoder_weights_;
  std::vector<float> norms_;
  std::vector<float> encodings_;  // of positions -kPositions to kPositions
};

}  // namespace bothends
