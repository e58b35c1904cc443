// Regex and Choice: the whole text, read as UTF-8, is one string of a language.
#pragma once

#include <memory>

#include "constrain/json_theory.hpp"
#include "constrain/machine.hpp"

namespace constrain {

class TextMachine final : public Machine {
 public:
  // Throws UnsatisfiableConstraint if the language is empty.
  TextMachine(std::shared_ptr<const Program> program, LexicalPool& pool);

  Config start() override;
  bool step(Config& config, uint8_t byte) override;
  bool accepts(const Config& config) override;
  LexicalView lexical(const Config& config) override;
  bool live_bytes(const Config& config, ByteSet& out) override;
  bool exceptional_bytes(const Config& config, ByteSet& out) override;
  bool leave(Config&, uint32_t) override { return false; }  // raw text has no closing byte
  size_t bytes() const override { return sizeof(*this); }
  std::string describe(const Config& config) override;
  bool complete(const Config& config, std::string& out, size_t limit) override;
  uint32_t most_needed(const Config& config, uint32_t, uint32_t) override {
    return pool_.farthest({config.w[0], 0, config.w[1]});
  }
  uint64_t effort() const override { return pool_.effort(); }

 private:
  LexicalPool& pool_;
  LexId language_;
};

}  // namespace constrain
