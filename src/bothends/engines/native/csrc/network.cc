#include "network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

namespace bothends {

namespace {

constexpr int kPositions = 256;  // the table of sinusoids reaches so far each way
// Sums of so many products of a uint8 and a 7-bit weight fit an int32.
constexpr int kMostInputs = 1 << 16;
// Beyond any network; below them, no size that is computed from these overflows.
constexpr int kMostLayers = 1 << 12, kMostWords = 1 << 27, kMostOffset = 1 << 20;

bool is_between(int value, int least, int most) { return value >= least && value <= most; }

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

// Reads tensors by name, in the order in which a step uses them, and packs them side by side: what is
// fetched ahead at the end of one matrix is the beginning of the next.
class Network::Loader {
 public:
  Loader(Network* network, const WeightFile& file) : network_(network), file_(file) {}

  void linear(const std::string& name, int outputs, int inputs, PackedMatrix* to) {
    slice(name, outputs, inputs, 0, outputs, true, to);
  }

  // Outputs `first` to `last` of a matrix, as a matrix of their own.
  void slice(const std::string& name, int outputs, int inputs, int first, int last, bool bias,
             PackedMatrix* to, PlainMatrix* from = nullptr, std::vector<uint8_t>* wide = nullptr) {
    const uint8_t* values = file_.tensor(name, Tensor::kInt8, {outputs, inputs});
    const uint8_t* scales = file_.tensor(name + ".scales", Tensor::kFloat, {outputs});
    const uint8_t* shift = bias ? file_.tensor(name + ".bias", Tensor::kFloat, {outputs}) : nullptr;
    const PlainMatrix plain = {
        reinterpret_cast<const int8_t*>(values) + static_cast<size_t>(first) * inputs,
        scales + first * sizeof(float), shift ? shift + first * sizeof(float) : nullptr,
        last - first, inputs};
    if (from != nullptr) *from = plain;
    const Layout layout = network_->kernels.layout;
    const size_t at = bytes_;
    bytes_ += packed_bytes(plain.outputs, inputs, layout);
    jobs_.push_back([=](uint8_t* memory) {
      if (!pack(plain, layout, memory + at, to, wide)) {
        throw DamagedFile("damaged, tensor " + name + " has weights of more than seven bits");
      }
    });
  }

  void norm(const std::string& name, Norm* to) {
    const int width = network_->configuration.width;
    std::vector<float>& norms = network_->norms_;
    const size_t at = norms.size();
    norms.resize(at + 2 * width);  // reserved before: the pointers stay
    std::memcpy(&norms[at], file_.tensor(name + ".weight", Tensor::kFloat, {width}),
                width * sizeof(float));
    std::memcpy(&norms[at + width], file_.tensor(name + ".bias", Tensor::kFloat, {width}),
                width * sizeof(float));
    *to = {&norms[at], &norms[at + width]};
  }

  void self_attention(const std::string& prefix, SelfAttention* to) {
    const int width = network_->configuration.width;
    const std::string name = prefix + ".self_attention.query_key_value";
    slice(name, 3 * width, width, 0, width, true, &to->query);
    slice(name, 3 * width, width, width, 3 * width, true, &to->key_value);
    linear(prefix + ".self_attention.output", width, width, &to->output);
    norm(prefix + ".self_attention_norm", &to->norm);
  }

  void feed_forward(const std::string& prefix, FeedForward* to) {
    const Configuration& c = network_->configuration;
    linear(prefix + ".feed_forward.inner", c.feed_forward, c.width, &to->inner);
    linear(prefix + ".feed_forward.outer", c.width, c.feed_forward, &to->outer);
    norm(prefix + ".feed_forward_norm", &to->norm);
  }

  void embedding(const std::string& name, int words, Embedding* to) {
    const Configuration& c = network_->configuration;
    to->values =
        reinterpret_cast<const int8_t*>(file_.tensor(name, Tensor::kInt8, {words, c.width}));
    to->scales.resize(words);
    std::memcpy(to->scales.data(), file_.tensor(name + ".scales", Tensor::kFloat, {words}),
                words * sizeof(float));
    const float factor = c.embedding_scale ? std::sqrt(static_cast<double>(c.width)) : 1.0f;
    for (float& scale : to->scales) scale *= factor;
  }

  Bytes pack_all() {
    Bytes memory(bytes_);
    for (const auto& job : jobs_) job(memory.data());
    return memory;
  }

 private:
  Network* network_;
  const WeightFile& file_;
  size_t bytes_ = 0;
  std::vector<std::function<void(uint8_t*)>> jobs_;
};

Network::Network(const std::string& encoder_path, const std::string& decoder_path,
                 const Configuration& shape, const Kernels& chosen)
    : configuration(checked(shape)), kernels(chosen), encoder(configuration.encoder_layers),
      decoder(configuration.decoder_layers) {
  const Configuration& c = configuration;
  norms_.reserve(static_cast<size_t>(2 * c.width) * (2 * c.encoder_layers + 3 * c.decoder_layers + 2));
  std::string path = decoder_path;
  try {
    decoder_file_ = std::make_unique<WeightFile>(path);
    path = encoder_path;
    encoder_file_ = std::make_unique<WeightFile>(path, decoder_file_.get());
    Loader loader(this, *encoder_file_);
    loader.embedding("source_embedding.weight", c.source_words, &source_embedding);
    for (int i = 0; i < c.encoder_layers; ++i) {
      const std::string prefix = "encoder.layers." + std::to_string(i);
      loader.self_attention(prefix, &encoder[i].self);
      loader.feed_forward(prefix, &encoder[i].feed_forward);
    }
    if (c.pre_norm) loader.norm("encoder.norm", &encoder_norm);
    for (int i = 0; i < c.decoder_layers; ++i) {
      // Keys and values of all decoder layers are one product of the graph.
      loader.slice("memory.key_value", 2 * c.width * c.decoder_layers, c.width, 2 * c.width * i,
                   2 * c.width * (i + 1), true, &decoder[i].cross.key_value);
    }
    encoder_weights_ = loader.pack_all();

    path = decoder_path;
    Loader other(this, *decoder_file_);
    const std::string embedding =
        c.share_embeddings ? "source_embedding.weight" : "target_embedding.weight";
    other.embedding(embedding, c.target_words, &target_embedding);
    if (c.direction_embeddings) {
      direction_embedding.resize(static_cast<size_t>(c.direction_embeddings) * c.width);
      std::memcpy(direction_embedding.data(),
                  decoder_file_->tensor("direction_embedding.weight", Tensor::kFloat,
                                        {c.direction_embeddings, c.width}),
                  direction_embedding.size() * sizeof(float));
    }
    for (int i = 0; i < c.decoder_layers; ++i) {
      const std::string prefix = "decoder.layers." + std::to_string(i);
      other.self_attention(prefix, &decoder[i].self);
      other.linear(prefix + ".cross_attention.query", c.width, c.width, &decoder[i].cross.query);
      other.linear(prefix + ".cross_attention.output", c.width, c.width, &decoder[i].cross.output);
      other.norm(prefix + ".cross_attention_norm", &decoder[i].cross.norm);
      other.feed_forward(prefix, &decoder[i].feed_forward);
    }
    if (c.pre_norm) other.norm("decoder.norm", &decoder_norm);
    other.slice(c.tie_output ? embedding : "output.weight", c.target_words, c.width, 0,
                c.target_words, c.output_bias, &output, &plain_output, &wide_output);
    decoder_weights_ = other.pack_all();
  } catch (const DamagedFile& error) {
    throw DamagedFile(path + ": " + error.what());
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
    out[configuration.halves ? i : 2 * i] = static_cast<float>(std::sin(angle));
    out[configuration.halves ? width / 2 + i : 2 * i + 1] = static_cast<float>(std::cos(angle));
  }
}

}  // namespace bothends
