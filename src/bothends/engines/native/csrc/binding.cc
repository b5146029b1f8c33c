// What Python sees: an engine, the state of a search, and a whole search in one call.
//
// Every array is checked here, so that nothing behind it has to be. The interpreter is released while
// the network works.

#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "arrays.h"
#include "decoder.h"
#include "encoder.h"
#include "instruction_set.h"
#include "network.h"
#include "readers.h"
#include "search.h"
#include "single_kernels.h"
#include "team.h"

namespace bothends {
namespace {

// A loaded network, and the memory that one search leaves to the next.
class Engine {
 public:
  Engine(const std::string& encoder, const std::string& decoder, const py::dict& configuration,
         const std::pair<std::vector<std::string>, std::vector<std::string>>& arrays,
         const std::string& instruction_set, int cores)
      : network(encoder, decoder, read_configuration(configuration), {arrays.first, arrays.second},
                choose_kernels(instruction_set)),
        team(std::clamp(cores, 1, kMostCores)) {}

  std::unique_ptr<DecoderBuffers> borrow() {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (idle_.empty()) return std::make_unique<DecoderBuffers>();
    std::unique_ptr<DecoderBuffers> buffers = std::move(idle_.back());
    idle_.pop_back();
    return buffers;
  }
  void give_back(std::unique_ptr<DecoderBuffers> buffers) {
    if (buffers->bytes() > kMostIdleBytes) return;  // of an unusual search, and nobody's for long
    buffers->work.team = nullptr;
    const std::lock_guard<std::mutex> guard(mutex_);
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(buffers));
  }

  // Words that most lists have are packed now, and not again for each sentence. None: no such words.
  void share_words(const Integers& words_in_order) {
    std::vector<int32_t> ids = rising_ids(words_in_order, network.configuration.target_words);
    std::shared_ptr<const OutputWords> words;
    if (!ids.empty()) words = std::make_shared<OutputWords>(network, std::move(ids));
    const std::lock_guard<std::mutex> guard(mutex_);
    shared_words_ = std::move(words);
  }
  std::shared_ptr<const OutputWords> shared_words() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return shared_words_;
  }

  const Network network;
  Team team;

 private:
  static constexpr int kMostCores = 8;  // of one search: its products are small
  static constexpr size_t kMostIdle = 64;
  static constexpr size_t kMostIdleBytes = size_t{32} << 20;  // of each
  std::mutex mutex_;
  std::shared_ptr<const OutputWords> shared_words_;
  std::vector<std::unique_ptr<DecoderBuffers>> idle_;
};

// Buffers that go back when they are no longer needed, whatever happens.
class Borrowed {
 public:
  explicit Borrowed(std::shared_ptr<Engine> engine)
      : engine_(std::move(engine)), buffers_(engine_->borrow()) {}
  ~Borrowed() { engine_->give_back(std::move(buffers_)); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  DecoderBuffers& operator*() const { return *buffers_; }
  const Network& network() const { return engine_->network; }

 private:
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<DecoderBuffers> buffers_;
};

// The state behind the engine protocol. One thread at a time.
class State {
 public:
  State(std::shared_ptr<Engine> engine, const SourceBatch& source,
        const std::vector<std::vector<int32_t>>& allowed)
      : words_(pack_words(engine->network, engine->shared_words(), allowed)),
        borrowed_(std::move(engine)) {
    encode(network(), source, (*borrowed_).work, &(*borrowed_).memory);
    decoder_ = std::make_unique<Decoder>(network(), *borrowed_);
    decoder_->allow(words_);
  }

  py::tuple step(const Integers& tokens, const Integers& positions, const Integers& directions,
                 const Flags& mask, int words) {
    return run_step(tokens, positions, directions, mask, words, {}, nullptr);
  }

  py::tuple step_and_force(const Integers& tokens, const Integers& positions,
                           const Integers& directions, const Flags& mask, int words,
                           const Integers& targets) {
    require(targets.ndim() == 2 && tokens.ndim() == 2 && targets.shape(0) == tokens.shape(0) &&
                targets.shape(1) == tokens.shape(1),
            "targets must have the shape of the tokens");
    const std::vector<int32_t> wanted = token_ids(targets, network().configuration.target_words);
    py::array_t<float> forced(std::vector<py::ssize_t>{tokens.shape(0), tokens.shape(1)});
    const py::tuple best =
        run_step(tokens, positions, directions, mask, words, wanted, forced.mutable_data());
    return py::make_tuple(best[0], best[1], forced);
  }

  void select(const Integers& rows) {
    std::vector<int> chosen(rows.size());
    for (py::ssize_t i = 0; i < rows.size(); ++i) {
      require(rows.data()[i] >= 0 && rows.data()[i] < decoder_->rows(), "no such row");
      chosen[i] = static_cast<int>(rows.data()[i]);
    }
    decoder_->select(chosen);
  }

  // From a fresh state: its sentences in parts, each of at most `together` slots or one sentence.
  py::array_t<float> force(const Integers& tokens, const Integers& positions,
                           const Integers& directions, const Flags& mask, const Integers& targets,
                           int together) {
    require(decoder_->slots() == 0, "targets are forced from a fresh state");
    const int rows = decoder_->rows();
    for (int row = 0; row < rows; ++row) {
      require(decoder_->sentence(row) == row, "targets are forced before rows are selected");
    }
    const std::vector<int32_t> ids = check_block(tokens, rows, positions, directions, mask);
    require(targets.ndim() == 2 && targets.shape(0) == rows && targets.shape(1) == tokens.shape(1),
            "targets must have the shape of the tokens");
    const std::vector<int32_t> wanted = token_ids(targets, network().configuration.target_words);
    const int slots = static_cast<int>(tokens.shape(1));
    py::array_t<float> logprobs(std::vector<py::ssize_t>{rows, slots});
    float* out = logprobs.mutable_data();
    {
      py::gil_scoped_release release;
      const int each = std::max(1, together / slots);
      for (int first = 0; first < rows; first += each) {
        const size_t at = static_cast<size_t>(first) * slots;
        Decoder some(network(), *borrowed_, first, std::min(first + each, rows));
        some.allow(words_);
        some.force(&ids[at], block(positions, directions, mask), &wanted[at], out + at);
      }
    }
    return logprobs;
  }

 private:
  const Network& network() const { return borrowed_.network(); }

  py::tuple run_step(const Integers& tokens, const Integers& positions, const Integers& directions,
                     const Flags& mask, int words, const std::vector<int32_t>& targets,
                     float* forced) {
    const std::vector<int32_t> ids =
        check_block(tokens, decoder_->rows(), positions, directions, mask);
    require(words > 0, "at least one word must be asked for");
    Words best;
    {
      py::gil_scoped_release release;
      decoder_->step(ids.data(), block(positions, directions, mask), words, &best,
                     targets.empty() ? nullptr : targets.data(), forced);
    }
    const std::vector<py::ssize_t> shape = {tokens.shape(0), tokens.shape(1), best.words};
    py::array_t<float> logprobs(shape);
    py::array_t<int64_t> found(shape);
    std::copy(best.logprobs.begin(), best.logprobs.end(), logprobs.mutable_data());
    std::copy(best.ids.begin(), best.ids.end(), found.mutable_data());
    return py::make_tuple(logprobs, found);
  }

  std::vector<int32_t> check_block(const Integers& tokens, int rows, const Integers& positions,
                                   const Integers& directions, const Flags& mask) const {
    require(tokens.ndim() == 2 && tokens.shape(0) == rows && tokens.shape(1) > 0,
            "tokens must be an array (rows, slots of the block)");
    const py::ssize_t size = tokens.shape(1);
    require(positions.size() == size && directions.size() == size,
            "positions and directions must have one number for each slot of the block");
    require(mask.ndim() == 2 && mask.shape(0) == size && mask.shape(1) == decoder_->slots() + size,
            "the mask must have a row for each slot of the block, over all slots so far");
    const int known = network().configuration.direction_embeddings;
    for (py::ssize_t i = 0; i < size && known; ++i) {
      require(directions.data()[i] >= 0 && directions.data()[i] < known, "no such direction");
    }
    return token_ids(tokens, network().configuration.target_words);
  }

  static Block block(const Integers& positions, const Integers& directions, const Flags& mask) {
    return {static_cast<int>(positions.size()), positions.data(), directions.data(),
            reinterpret_cast<const uint8_t*>(mask.data())};
  }

  WordsOfSentences words_;
  Borrowed borrowed_;
  std::unique_ptr<Decoder> decoder_;
};

constexpr int64_t kLongestLimit = 1 << 30;  // slots are counted in 32 bits

OrderTables read_order(int block_size, const Integers& positions, const Integers& directions,
                       const Flags& same, const Flags& earlier, int known_directions) {
  require(block_size > 0 && same.ndim() == 2 && same.shape(0) > 0, "an order has no slots");
  const py::ssize_t period = same.shape(0);
  require(same.shape(1) == period && earlier.ndim() == 2 && earlier.shape(0) == period &&
              earlier.shape(1) == period && positions.size() == 2 * period &&
              directions.size() == period,
          "the tables of an order do not fit each other");
  OrderTables order;
  order.block_size = block_size;
  order.period = static_cast<int>(period);
  order.positions.assign(positions.data(), positions.data() + positions.size());
  order.directions.assign(directions.data(), directions.data() + directions.size());
  order.same.assign(same.data(), same.data() + same.size());
  order.earlier.assign(earlier.data(), earlier.data() + earlier.size());
  for (const int64_t direction : order.directions) {
    require(!known_directions || (direction >= 0 && direction < known_directions),
            "no such direction");
  }
  return order;
}

py::tuple run_search(std::shared_ptr<Engine> engine, const Integers& source, int block_size,
                     const Integers& positions, const Integers& directions, const Flags& same,
                     const Flags& earlier, int beam, int min_length, const Integers& limits,
                     int start, int end, int pad, const AllowedArrays& allowed) {
  const Configuration& c = engine->network.configuration;
  const SourceBatch batch = read_source(source, c.source_words, pad);
  const OrderTables order =
      read_order(block_size, positions, directions, same, earlier, c.direction_embeddings);
  SearchRequest request;
  require(beam > 0 && min_length >= 0, "the beam must be positive, and the minimum not negative");
  require(start >= 0 && start < c.target_words && pad >= 0 && pad < c.target_words,
          "a special token is outside the vocabulary");
  require(limits.size() == batch.sentences(), "each sentence needs a limit");
  request.beam = beam;
  request.min_length = min_length;
  request.start = start;
  request.end = end;
  request.pad = pad;
  for (int s = 0; s < batch.sentences(); ++s) {
    const int64_t limit = limits.data()[s];
    require(limit >= 0 && limit <= kLongestLimit, "a limit is negative, or too large");
    request.limits.push_back(static_cast<int>(limit));
  }
  request.allowed = read_allowed(allowed, batch.sentences(), c.target_words);
  SearchResult result;
  {
    py::gil_scoped_release release;
    const Team::Turn turn(engine->team);
    Borrowed buffers(engine);
    (*buffers).work.team = turn.team();
    result = search(engine->network, order, request, batch, engine->shared_words(), *buffers);
  }
  py::list pools;
  for (const std::vector<Hypothesis>& pool : result.pools) {
    py::list hypotheses;
    for (const Hypothesis& each : pool) {
      hypotheses.append(py::make_tuple(each.tokens, each.logprob, each.finished));
    }
    pools.append(std::move(hypotheses));
  }
  return py::make_tuple(pools, result.encoder_seconds, result.decoder_seconds,
                        result.search_seconds, result.steps);
}

}  // namespace
}  // namespace bothends

PYBIND11_MODULE(_native, module) {
  using namespace bothends;
  module.doc() = "The native engine: network and search in compiled code.";
  py::register_exception<DamagedFile>(module, "DamagedFile", PyExc_ValueError);
  module.def("instruction_sets", &available_instruction_sets,
             "Names of the instruction sets that this processor has, slowest first.");
  define_single_kernels(module);
  module.def(
      "read_metadata", [](const std::string& path) { return WeightFile(path).metadata(); },
      "What an exported graph says of itself.");
  py::class_<State>(module, "State")
      .def("step", &State::step)
      .def("step_and_force", &State::step_and_force)
      .def("select", &State::select)
      .def("force", &State::force);
  py::class_<Engine, std::shared_ptr<Engine>>(module, "Engine")
      .def(py::init<const std::string&, const std::string&, const py::dict&,
                    const std::pair<std::vector<std::string>, std::vector<std::string>>&,
                    const std::string&, int>(),
           py::arg("encoder"), py::arg("decoder"), py::arg("configuration"), py::arg("arrays"),
           py::arg("instruction_set"), py::arg("cores") = 1)
      .def_property_readonly("kernels", [](const Engine& self) { return self.network.kernels.name; })
      .def_property_readonly("helped", [](const Engine& self) { return self.team.helped(); })
      .def("share_words", &Engine::share_words, py::arg("words"))
      .def("encoding",  // of a position, for tests
           [](const Engine& self, int64_t position) {
             std::vector<float> scratch(self.network.configuration.width);
             const float* encoding = self.network.encoding(position, scratch.data());
             return py::array_t<float>(static_cast<py::ssize_t>(scratch.size()), encoding);
           })
      .def("encode",
           [](std::shared_ptr<Engine> self, const Integers& source, int64_t pad,
              const AllowedArrays& allowed) {
             const Configuration& c = self->network.configuration;
             const SourceBatch batch = read_source(source, c.source_words, pad);
             const auto words = read_allowed(allowed, batch.sentences(), c.target_words);
             py::gil_scoped_release release;
             return std::make_unique<State>(std::move(self), batch, words);
           },
           py::arg("source"), py::arg("pad"), py::arg("allowed") = py::none())
      .def("search", &run_search, py::arg("source"), py::arg("block_size"), py::arg("positions"),
           py::arg("directions"), py::arg("same"), py::arg("earlier"), py::arg("beam"),
           py::arg("min_length"), py::arg("limits"), py::arg("start"), py::arg("end"),
           py::arg("pad"), py::arg("allowed") = py::none());
}
