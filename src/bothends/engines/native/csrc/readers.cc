#include "readers.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

namespace bothends {

std::vector<int32_t> token_ids(const Integers& tokens, int words) {
  std::vector<int32_t> ids(tokens.size());
  for (py::ssize_t i = 0; i < tokens.size(); ++i) {
    const int64_t id = tokens.data()[i];
    require(id >= 0 && id < words, "a token is outside the vocabulary");
    ids[i] = static_cast<int32_t>(id);
  }
  return ids;
}

std::vector<int32_t> rising_ids(const Integers& words, int target_words) {
  std::vector<int32_t> ids = token_ids(words, target_words);
  require(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end(),
          "allowed words must be in rising order, each once");
  return ids;
}

SourceBatch read_source(const Integers& source, int words, int64_t pad) {
  require(source.ndim() == 2, "source sentences must be an array (sentences, tokens)");
  const std::vector<int32_t> ids = token_ids(source, words);
  require(ids.size() < std::numeric_limits<int32_t>::max(), "too many source tokens");
  SourceBatch batch;
  batch.first.push_back(0);
  const int sentences = static_cast<int>(source.shape(0)), length = static_cast<int>(source.shape(1));
  for (int s = 0; s < sentences; ++s) {
    for (int n = 0; n < length; ++n) {
      const int32_t id = ids[static_cast<size_t>(s) * length + n];
      if (id == pad) continue;
      batch.tokens.push_back(id);
      batch.places.push_back(n);
    }
    batch.first.push_back(static_cast<int>(batch.tokens.size()));
  }
  return batch;
}

Configuration read_configuration(const py::dict& values) {
  const auto number = [&](const char* name) { return values[name].cast<int>(); };
  const auto flag = [&](const char* name) { return values[name].cast<bool>(); };
  Configuration c;
  c.source_words = number("source_words");
  c.target_words = number("target_words");
  c.encoder_layers = number("encoder_layers");
  c.decoder_layers = number("decoder_layers");
  c.width = number("width");
  c.heads = number("heads");
  c.feed_forward = number("feed_forward");
  c.direction_embeddings = number("direction_embeddings");
  const auto activation = values["activation"].cast<std::string>();
  c.activation = activation == "gelu"   ? Activation::gelu
                 : activation == "silu" ? Activation::silu
                                        : Activation::relu;
  c.pre_norm = flag("pre_norm");
  c.embedding_scale = flag("embedding_scale");
  c.output_bias = flag("output_bias");
  c.halves = flag("halves");
  c.last_pair = number("last_pair");
  const auto precision = values["sinusoid_precision"].cast<std::string>();
  c.sinusoid_precision = precision == "float16"    ? Rounding::float16
                         : precision == "bfloat16" ? Rounding::bfloat16
                                                   : Rounding::none;
  c.position_offset = number("position_offset");
  return c;
}

std::vector<std::vector<int32_t>> read_allowed(const AllowedArrays& arrays, int sentences,
                                               int target_words) {
  std::vector<std::vector<int32_t>> allowed;
  if (!arrays) return allowed;
  require(arrays->size() == static_cast<size_t>(sentences), "each sentence needs its allowed words");
  for (const Integers& own : *arrays) allowed.push_back(rising_ids(own, target_words));
  return allowed;
}

}  // namespace bothends
