#include "weight_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace bothends {

namespace {

[[noreturn]] void complain(const std::string& what) { throw DamagedFile(what); }

// A stretch of protocol buffer that is read field by field. Nothing outside it is ever looked at.
class Message {
 public:
  Message(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  // The next field, or false at the end.
  bool next() {
    if (at_ == end_) return false;
    const uint64_t key = varint();
    number_ = key >> 3;
    switch (key & 7) {
      case 0: value_ = varint(); break;
      case 1: take(8); break;
      case 2: take(varint()); break;
      case 5: take(4); break;
      default: complain("damaged, not an exported graph (a field of unknown type)");
    }
    kind_ = key & 7;
    return true;
  }

  bool is(uint64_t number, unsigned kind) const { return number_ == number && kind_ == kind; }
  uint64_t value() const { return value_; }
  Message message() const { return {data_, size_}; }
  std::string text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool at_end() const { return at_ == end_; }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) complain("damaged, not an exported graph (it ends too early)");
      const uint8_t byte = *at_++;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    complain("damaged, not an exported graph (a number without end)");
  }

 private:
  void take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) {
      complain("damaged, not an exported graph (it ends too early)");
    }
    data_ = at_;
    size_ = size;
    at_ += size;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  uint64_t number_ = 0, value_ = 0;
  unsigned kind_ = 0;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

constexpr unsigned kNumber = 0, kBytes = 2;

void read_tensor(Message message, std::map<std::string, Tensor>* tensors) {
  Tensor tensor;
  std::string name;
  while (message.next()) {
    if (message.is(1, kNumber)) {
      tensor.shape.push_back(static_cast<int64_t>(message.value()));
    } else if (message.is(1, kBytes)) {  // the same, packed
      for (Message packed = message.message(); !packed.at_end();) {
        tensor.shape.push_back(static_cast<int64_t>(packed.varint()));
      }
    } else if (message.is(2, kNumber)) {
      tensor.type = static_cast<int>(message.value() & 0xffff);
    } else if (message.is(8, kBytes)) {
      name = message.text();
    } else if (message.is(9, kBytes)) {
      tensor.data = message.data();
      tensor.bytes = message.size();
    } else if (message.is(14, kNumber)) {
      tensor.elsewhere = message.value() != 0;
    }
  }
  (*tensors)[name] = std::move(tensor);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "a number" : text;
}

}  // namespace

WeightFile::WeightFile(const std::string& path, const WeightFile* beside)
    : path_(path), beside_(beside) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) complain(std::string("cannot be read (") + std::strerror(errno) + ")");
  struct stat status;
  const bool known = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  size_ = known ? static_cast<size_t>(status.st_size) : 0;
  void* mapped = size_ ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  const int error = errno;
  close(file);
  if (!size_) complain("damaged, not an exported graph (it is empty)");
  if (mapped == MAP_FAILED) {
    if (error == ENOMEM) throw std::bad_alloc();
    complain(std::string("cannot be mapped into memory (") + std::strerror(error) + ")");
  }
  data_ = static_cast<const uint8_t*>(mapped);
  try {
    read();
  } catch (...) {
    munmap(mapped, size_);
    throw;
  }
}

WeightFile::~WeightFile() { munmap(const_cast<uint8_t*>(data_), size_); }

void WeightFile::read() {
  Message model(data_, size_);
  while (model.next()) {
    if (model.is(7, kBytes)) {
      Message graph = model.message();
      while (graph.next()) {
        if (graph.is(5, kBytes)) read_tensor(graph.message(), &tensors_);
      }
    } else if (model.is(14, kBytes)) {
      std::string key, value;
      Message entry = model.message();
      while (entry.next()) {
        if (entry.is(1, kBytes)) key = entry.text();
        if (entry.is(2, kBytes)) value = entry.text();
      }
      metadata_[key] = value;
    }
  }
}

const uint8_t* WeightFile::tensor(const std::string& name, int type,
                                  const std::vector<int64_t>& shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) complain("damaged, tensor " + name + " is missing");
  const Tensor& tensor = found->second;
  if (tensor.elsewhere) {
    if (!beside_) complain("damaged, tensor " + name + " is in no file that is read");
    return beside_->tensor(name, type, shape);
  }
  if (tensor.type != type) {
    complain("damaged, tensor " + name + " is of type " + std::to_string(tensor.type) + ", not " +
             std::to_string(type));
  }
  if (tensor.shape != shape) {
    complain("damaged, tensor " + name + " is " + shape_text(tensor.shape) + ", not " +
             shape_text(shape));
  }
  // The shape wanted comes from a checked configuration: its product does not overflow.
  size_t bytes = type == Tensor::kFloat ? sizeof(float) : 1;
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  if (tensor.bytes != bytes) {
    complain("damaged, tensor " + name + " has " + std::to_string(tensor.bytes) + " bytes, not " +
             std::to_string(bytes));
  }
  return tensor.data;
}

}  // namespace bothends
