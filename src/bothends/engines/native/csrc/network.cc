#include "network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "instruction_set.h"

namespace bothends {

namespace {

constexpr int kPositions = 256;  // the table of sinusoids reaches so far each way
// Sums of so many products of a uint8 and a 7-bit weight fit an int32.
constexpr int kMostInputs = 1 << 16;
// Beyond any network; below them, no size that is computed from these overflows.
constexpr int kMostLayers = 1 << 12, kMostWords = 1 << 27, kMostOffset = 1 << 20;

// Weights of a step that stay in the third-level cache of most processors.
constexpr size_t kCachedBytes = 12 << 20;

bool is_between(int value, int least, int most) { return value >= least && value <= most; }

// To the nearest number with so many bits after the first, ties to the even one. Below the least
// exponent, numbers are as far from each other as there.
float rounded(double value, Rounding to) {
  const float single = static_cast<float>(value);
  if (to == Rounding::none || single == 0) return single;
  const int bits = to == Rounding::float16 ? 10 : 7, least = to == Rounding::float16 ? -14 : -126;
  const float step = std::ldexp(1.0f, std::max(std::ilogb(single), least) - bits);
  return std::nearbyint(single / step) * step;
}

Configuration checked(const Configuration& c) {
  const bool possible =
      is_between(c.width, 2, kMostInputs) && is_between(c.feed_forward, 1, kMostInputs) &&
      is_between(c.encoder_layers, 1, kMostLayers) && is_between(c.decoder_layers, 1, kMostLayers) &&
      is_between(c.source_words, 1, kMostWords) && is_between(c.target_words, 1, kMostWords) &&
      is_between(c.heads, 1, c.width) && is_between(c.direction_embeddings, 0, kMostInputs) &&
      c.width % c.heads == 0 && c.width % 2 == 0 &&
      is_between(c.last_pair, std::max(1, c.width / 2 - 1), c.width / 2) &&
      is_between(c.position_offset, 0, kMostOffset);
  if (!possible) throw std::invalid_argument("a network of a shape that cannot be run");
  return c;
}

}  // namespace

// Reads arrays in the order in which a step uses them, and packs matrices side by side: what is fetched
// ahead at the end of one matrix is the beginning of the next.
class Network::Loader {
 public:
  Loader(Network* network, const WeightFile& file, const std::vector<std::string>& names)
      : network_(network), file_(file), names_(names) {}

  void linear(int outputs, int inputs, PackedMatrix* to) {
    slice(matrix(outputs, inputs, true), 0, outputs, to);
  }

  // The next matrix (outputs, inputs), as it lies in the file.
  struct Matrix {
    std::string name;
    PlainMatrix plain;
  };
  Matrix matrix(int outputs, int inputs, bool bias) {
    const std::string name = next();
    const uint8_t* values = file_.tensor(name, Tensor::kInt8, {outputs, inputs});
    const uint8_t* scales = floats({outputs});
    const uint8_t* shift = bias ? floats({outputs}) : nullptr;
    return {name, {reinterpret_cast<const int8_t*>(values), scales, shift, outputs, inputs}};
  }

  // Outputs `first` to `last` of a matrix, packed as a matrix of their own.
  void slice(const Matrix& whole, int first, int last, PackedMatrix* to,
             std::vector<uint8_t>* wide = nullptr) {
    const PlainMatrix& from = whole.plain;
    const PlainMatrix plain = {from.row(first),
                               from.scales + first * sizeof(float),
                               from.bias ? from.bias + first * sizeof(float) : nullptr, last - first,
                               from.inputs};
    const Layout layout = network_->kernels.layout;
    const size_t at = bytes_;
    bytes_ += packed_bytes(plain.outputs, plain.inputs, layout);
    jobs_.push_back([=, name = whole.name](uint8_t* memory) {
      if (!pack(plain, layout, memory + at, to, wide)) {
        throw DamagedFile("damaged, tensor " + name + " has weights of more than seven bits");
      }
      to->fetch_ahead = bytes_ > kCachedBytes || !reads_cache_sooner_alone();
    });
  }

  // The next array of floats, of this shape.
  const uint8_t* floats(const std::vector<int64_t>& shape) {
    return file_.tensor(next(), Tensor::kFloat, shape);
  }

  void norm(Norm* to) {
    const int width = network_->configuration.width;
    std::vector<float>& norms = network_->norms_;
    const size_t at = norms.size();
    norms.resize(at + 2 * width);  // reserved before: the pointers stay
    std::memcpy(&norms[at], floats({width}), width * sizeof(float));
    std::memcpy(&norms[at + width], floats({width}), width * sizeof(float));
    *to = {&norms[at], &norms[at + width]};
  }

  void self_attention(SelfAttention* to) {
    const int width = network_->configuration.width;
    const Matrix query_key_value = matrix(3 * width, width, true);
    slice(query_key_value, 0, width, &to->query);
    slice(query_key_value, width, 3 * width, &to->key_value);
    linear(width, width, &to->output);
    norm(&to->norm);
  }

  void cross_attention(CrossAttention* to) {
    const int width = network_->configuration.width;
    linear(width, width, &to->query);
    linear(width, width, &to->output);
    norm(&to->norm);
  }

  void feed_forward(FeedForward* to) {
    const Configuration& c = network_->configuration;
    linear(c.feed_forward, c.width, &to->inner);
    linear(c.width, c.feed_forward, &to->outer);
    norm(&to->norm);
  }

  void embedding(int words, Embedding* to) {
    const Configuration& c = network_->configuration;
    const PlainMatrix plain = matrix(words, c.width, false).plain;
    to->values = plain.values;
    to->scales.resize(words);
    std::memcpy(to->scales.data(), plain.scales, words * sizeof(float));
    const float factor = c.embedding_scale ? std::sqrt(static_cast<double>(c.width)) : 1.0f;
    for (float& scale : to->scales) scale *= factor;
  }

  Bytes pack_all() {
    if (next_ != names_.size()) throw std::logic_error("array " + names_[next_] + " is not read");
    Bytes memory(bytes_);
    for (const auto& job : jobs_) job(memory.data());
    return memory;
  }

 private:
  const std::string& next() {
    if (next_ == names_.size()) throw std::logic_error("more arrays are read than have a name");
    return names_[next_++];
  }

  Network* network_;
  const WeightFile& file_;
  const std::vector<std::string>& names_;
  size_t next_ = 0;
  size_t bytes_ = 0;
  std::vector<std::function<void(uint8_t*)>> jobs_;
};

Network::Network(const std::string& encoder_path, const std::string& decoder_path,
                 const Configuration& shape, const ArrayNames& names, const Kernels& chosen)
    : configuration(checked(shape)), kernels(chosen), encoder(configuration.encoder_layers),
      decoder(configuration.decoder_layers) {
  const Configuration& c = configuration;
  norms_.reserve(static_cast<size_t>(2 * c.width) * (2 * c.encoder_layers + 3 * c.decoder_layers + 2));
  std::string path = decoder_path;
  try {
    decoder_file_ = std::make_unique<WeightFile>(path);
    path = encoder_path;
    encoder_file_ = std::make_unique<WeightFile>(path, decoder_file_.get());
    Loader loader(this, *encoder_file_, names.encoder);
    loader.embedding(c.source_words, &source_embedding);
    for (EncoderLayer& layer : encoder) {
      loader.self_attention(&layer.self);
      loader.feed_forward(&layer.feed_forward);
    }
    if (c.pre_norm) loader.norm(&encoder_norm);
    // Keys and values of all decoder layers are one product of the graph.
    const Loader::Matrix memory = loader.matrix(2 * c.width * c.decoder_layers, c.width, true);
    for (int i = 0; i < c.decoder_layers; ++i) {
      loader.slice(memory, 2 * c.width * i, 2 * c.width * (i + 1), &decoder[i].cross.key_value);
    }
    encoder_weights_ = loader.pack_all();

    path = decoder_path;
    Loader other(this, *decoder_file_, names.decoder);
    other.embedding(c.target_words, &target_embedding);
    if (c.direction_embeddings) {
      direction_embedding.resize(static_cast<size_t>(c.direction_embeddings) * c.width);
      std::memcpy(direction_embedding.data(), other.floats({c.direction_embeddings, c.width}),
                  direction_embedding.size() * sizeof(float));
    }
    for (DecoderLayer& layer : decoder) {
      other.self_attention(&layer.self);
      other.cross_attention(&layer.cross);
      other.feed_forward(&layer.feed_forward);
    }
    if (c.pre_norm) other.norm(&decoder_norm);
    const Loader::Matrix words = other.matrix(c.target_words, c.width, c.output_bias);
    plain_output = words.plain;
    other.slice(words, 0, c.target_words, &output, &wide_output);
    decoder_weights_ = other.pack_all();
  } catch (const DamagedFile& error) {
    // Its name alone: a message is UTF-8, which the rest of the path need not be.
    throw DamagedFile(path.substr(path.rfind('/') + 1) + ": " + error.what());
  }
  encodings_.resize(static_cast<size_t>(2 * kPositions + 1) * c.width);
  for (int p = -kPositions; p <= kPositions; ++p) {
    write_encoding(p, &encodings_[static_cast<size_t>(p + kPositions) * c.width]);
  }
}

const float* Network::encoding(int64_t position, float* scratch) const {
  if (position >= -kPositions && position <= kPositions) {
    return &encodings_[static_cast<size_t>(position + kPositions) * configuration.width];
  }
  write_encoding(position, scratch);
  return scratch;
}

// As `bothends.model.sinusoid` has it: pair `i` is sin(p / 10000^(i / last_pair)) and its cosine,
// where `p` is so much further from 0 than the position as the offset says.
void Network::write_encoding(int64_t position, float* out) const {
  const int width = configuration.width, offset = configuration.position_offset;
  const double counted = static_cast<double>(position < 0 ? position - offset : position + offset);
  for (int i = 0; i < width / 2; ++i) {
    const double angle =
        counted * std::pow(10000.0, -static_cast<double>(i) / configuration.last_pair);
    out[configuration.halves ? i : 2 * i] = rounded(std::sin(angle), configuration.sinusoid_precision);
    out[configuration.halves ? width / 2 + i : 2 * i + 1] =
        rounded(std::cos(angle), configuration.sinusoid_precision);
  }
}

}  // namespace bothends
