#include "encoder.h"

#include <algorithm>

namespace bothends {

namespace {

// Rows that go through the layers together: enough to share each reading of the weights, few enough
// that their activations stay in a core's cache. Sentences are never cut.
constexpr int kRowsTogether = 96;

void encode_some(const Network& network, const SourceBatch& source, int begin, int end,
                 Workspace& work, Buffer<float>& entries, Memory* memory) {
  const Configuration& c = network.configuration;
  const int first = source.first[begin], rows = source.first[end] - first;
  int longest = 0;
  for (int s = begin; s < end; ++s) longest = std::max(longest, source.length(s));
  work.reserve(network, rows, longest);
  const size_t stride = network.entry_stride();
  entries.reserve(rows * stride);
  Layers layers(network, work, rows);
  for (int m = 0; m < rows; ++m) {
    const int token = source.tokens[first + m];
    network.kernels.embed(network.source_embedding.values + static_cast<size_t>(token) * c.width,
                          network.source_embedding.scales[token],
                          network.encoding(source.places[first + m], work.row.data()), c.width,
                          layers.x(m));
  }
  layers.begin();
  for (const EncoderLayer& layer : network.encoder) {
    layers.enter(layer.self.norm);
    layers.project(layer.self.query, work.query.data(), network.width_stride());
    layers.project(layer.self.key_value, entries.data(), stride);
    for (int s = begin; s < end; ++s) {
      const int from = source.first[s] - first;
      const Entries sentence = {entries.data() + from * stride, stride,
                                static_cast<size_t>(c.width), nullptr, source.length(s)};
      for (int m = from; m < from + source.length(s); ++m) {
        network.kernels.attend(layers.query(m), sentence, c.heads, c.head_width(),
                               work.scores.data(), layers.attended(m));
      }
    }
    layers.take_attended();
    layers.leave(layer.self.output, layer.self.norm);
    layers.feed_forward(layer.feed_forward);
  }
  layers.end(network.encoder_norm);
  for (size_t i = 0; i < network.decoder.size(); ++i) {
    layers.project(network.decoder[i].cross.key_value,
                   memory->entries.data() + (i * memory->tokens + first) * stride, stride);
  }
}

}  // namespace

void encode(const Network& network, const SourceBatch& source, Workspace& workspace,
            Memory* memory) {
  memory->first = source.first;
  memory->tokens = source.tokens.size();
  memory->entries.reserve(network.decoder.size() * memory->tokens * network.entry_stride());
  Buffer<float> entries;
  for (int begin = 0, end; begin < source.sentences(); begin = end) {
    end = begin + 1;
    while (end < source.sentences() &&
           source.first[end + 1] - source.first[begin] <= kRowsTogether) {
      ++end;
    }
    if (source.first[end] > source.first[begin]) {
      encode_some(network, source, begin, end, workspace, entries, memory);
    }
  }
}

}  // namespace bothends
